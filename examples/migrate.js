// Migrates files, each on its own way through three stages: analyse, rewrite, check. What a check finds is mended
// once. Run it in a clean checkout: agents edit the files in place, each only its own.
//
//   offline   fanfold run examples/migrate.js --args '{"offline": true}'
//   for real  fanfold run examples/migrate.js --agents command --agent-command "claude -p" \
//                 --args '{"goal": "Replace callbacks by async functions", "files": ["src/a.js", "src/b.js"]}'
//
// args, all optional: `goal`, `files` (paths), `offline`.

/** @type {WorkflowMeta} */
export const meta = {
  name: "migrate",
  description: "Applies one change to many files: each is analysed, rewritten, checked, and mended once",
  phases: [{ title: "Analyse" }, { title: "Rewrite" }, { title: "Check" }],
}

const goal = args?.goal ?? "Replace callbacks by async functions"
const files = args?.files ?? ["src/store.js", "src/queue.js", "src/mail.js", "src/config.js"]

const PLAN = /** @type {const} */ ({
  type: "object",
  properties: {
    needed: { type: "boolean" },
    steps: { type: "array", items: { type: "string" } },
    callers: { type: "array", items: { type: "string" } },
  },
  required: ["needed", "steps", "callers"],
  additionalProperties: false,
})
const VERDICT = /** @type {const} */ ({
  type: "object",
  properties: { problems: { type: "array", items: { type: "string" } } },
  required: ["problems"],
  additionalProperties: false,
})

// The prompt for a real agent or, offline, the order to a scripted one: the object it shall answer, or a text such
// as "sleep:400" or "fail:why".
const ask = (prompt, sample) =>
  !args?.offline ? prompt : typeof sample === "string" ? sample : `json:${JSON.stringify(sample)}`

const label = (verb, file, i) => `${verb} ${file} (${i + 1}/${files.length})`

// A stage that throws makes its item null and skips the item's later stages: right for a file that cannot go on.
const analyse = async (file, _, i) => {
  const plan = await agent(
    ask(
      `We migrate this repository: ${goal}. Read ${file} and everybody who uses it, and plan the change of this file
alone. Change nothing yet. List the callers that depend on what will change.`,
      i === 2
        ? "fail:the file is too large to read"
        : { needed: i !== 3, steps: ["Make load() async", "Await it in init()"], callers: ["src/main.js"] },
    ),
    { label: label("analyse", file, i), phase: "Analyse", schema: PLAN },
  )
  if (plan === null) throw new Error(`nobody could analyse ${file}`)
  return plan
}

// A stage that returns null does not end its item: the next stage sees the null.
const rewrite = async (plan, file, i) => {
  if (!plan.needed) return null
  const report = await agent(
    ask(
      `We migrate this repository: ${goal}. Edit ${file}, no other file, by this plan, and report what you changed:
${plan.steps.join("\n")}`,
      `sleep:${600 + 500 * i}`,
    ),
    { label: label("rewrite", file, i), phase: "Rewrite" },
  )
  if (report === null) throw new Error(`nobody could rewrite ${file}`)
  return { report, callers: plan.callers }
}

const check = async (change, file, i) => {
  if (change === null) return { file, outcome: "nothing to do", problems: [] }
  const problems = await problemsOf(change, file, i, 1)
  if (problems.length === 0) return { file, outcome: "migrated", problems }

  log(`${file}: to mend: ${problems.join("; ")}`)
  await agent(ask(`Mend these problems in ${file}, no other file:\n${problems.join("\n")}`, "sleep:300"), {
    label: label("mend", file, i),
    phase: "Rewrite",
  })
  const left = await problemsOf(change, file, i, 2)
  return { file, outcome: left.length === 0 ? "migrated" : "needs a person", problems: left }
}

// A check that gives no answer is a problem, not a pass.
async function problemsOf(change, file, i, attempt) {
  const verdict = await agent(
    ask(
      `${file} was changed: ${goal}. The author reports: ${change.report}
Do not trust the report. Read the file and these callers, run their tests, and list what is broken, incomplete or
changed without need: ${change.callers.join(", ")}`,
      { problems: i === 1 && attempt === 1 ? ["A failed load() is swallowed"] : [] },
    ),
    { label: label("check", file, i), phase: "Check", schema: VERDICT },
  )
  return verdict === null ? ["It was not checked: the agent gave no answer"] : verdict.problems
}

// Results come in the order of the files, so that the place of a null tells which file it was.
const results = await pipeline(files, analyse, rewrite, check)
const report = results.map(
  (result, i) => result ?? { file: files[i], outcome: "failed", problems: ["An agent ended without success"] },
)
const count = (outcome) => report.filter((item) => item.outcome === outcome).length

return {
  goal,
  statistics: {
    migrated: count("migrated"),
    untouched: count("nothing to do"),
    needsAPerson: count("needs a person"),
    failed: count("failed"),
  },
  files: report,
}

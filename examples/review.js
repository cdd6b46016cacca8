// Reviews files: each through several lenses, and every finding put to the vote of agents that did not make it.
//
//   offline   fanfold run examples/review.js --args '{"offline": true}'
//   for real  fanfold run examples/review.js --agents command --agent-command "claude -p" \
//                 --args @examples/review.args.json
//
// args, all optional: `files` (paths), `lenses` (what to look for, by name), `votes` (on each finding), `offline`.

/** @type {WorkflowMeta} */
export const meta = {
  name: "review",
  description: "Reviews files through several lenses and reports the findings that survive a vote",
  whenToUse: "Before a release, or for code that nobody has read for a long time",
  phases: [
    { title: "Read", detail: "what each file is for" },
    { title: "Review", detail: "one agent for each file and lens" },
    { title: "Verify", detail: "votes on every finding" },
    { title: "Summary" },
  ],
  args: {
    type: "object",
    properties: {
      files: { type: "array", items: { type: "string" } },
      lenses: { type: "object", additionalProperties: { type: "string" } },
      votes: { type: "integer", minimum: 1 },
      offline: { type: "boolean" },
    },
    additionalProperties: false,
  },
}

const files = args?.files ?? ["src/server.js", "src/session.js", "src/cache.js"]
const lenses = args?.lenses ?? {
  correctness: "wrong results, failures that nobody handles, races, cases at the edges",
  security: "input that is trusted too early, secrets, rights that are too wide",
  clarity: "names that mislead, code that nobody calls, two ways of doing one thing",
}
const votes = args?.votes ?? 3

const FINDINGS = /** @type {const} */ ({
  type: "object",
  properties: {
    findings: {
      type: "array",
      items: {
        type: "object",
        properties: {
          key: { type: "string", description: "function-and-fault in kebab-case; the same fault gets the same key" },
          line: { type: "integer" },
          severity: { type: "string", enum: ["low", "medium", "high"] },
          title: { type: "string" },
        },
        required: ["key", "line", "severity", "title"],
        additionalProperties: false,
      },
    },
  },
  required: ["findings"],
  additionalProperties: false,
})
const VOTE = /** @type {const} */ ({
  type: "object",
  properties: { real: { type: "boolean" }, reason: { type: "string" } },
  required: ["real", "reason"],
  additionalProperties: false,
})

// The prompt for a real agent or, offline, the order to a scripted one: the object it shall answer, or a text such
// as "sleep:400" or "fail:why".
const ask = (prompt, sample) =>
  !args?.offline ? prompt : typeof sample === "string" ? sample : `json:${JSON.stringify(sample)}`

// Offline, all lenses but one see the same fault, and one agent fails.
const sampleReview = (lens, i) => {
  if (lens === "security" && i === 1) return "fail:the agent lost its connection"
  const seen = lens === "clarity"
    ? { key: "retry-twice", line: 40, severity: "low", title: "Two functions retry, and differ by a comma" }
    : { key: "send-unchecked", line: 12, severity: "high", title: "The status of the answer is never looked at" }
  return { findings: [seen] }
}

const notReviewed = []
let unanswered = 0
let duplicates = 0
const answered = (answers) => {
  const given = answers.filter((answer) => answer !== null)
  unanswered += answers.length - given.length
  return given
}

// No file waits for another, so the phases of different files overlap: each call says to which it belongs.
const judged = await pipeline(
  files,

  (file, _, i) =>
    agent(ask(`Read ${file} and tell in five lines what it is for and who calls it.`, `sleep:${400 * (i + 1)}`), {
      label: `read ${file}`,
      phase: "Read",
    }),

  async (purpose, file, i) => {
    const reviews = await parallel(
      Object.entries(lenses).map(([lens, faults]) => async () => {
        const prompt = `Review ${file} for ${lens} alone: ${faults}. Report only what you can show in the code, with
the line. No findings is a good answer. What the file is for, in another reader's words:
${purpose ?? "(not known)"}`
        const label = `${lens} of ${file}`
        const review = await agent(ask(prompt, sampleReview(lens, i)), { label, phase: "Review", schema: FINDINGS })
        // A file that was not reviewed is not a file without findings.
        if (review === null) notReviewed.push({ file, lens })
        return review && review.findings.map((finding) => ({ file, ...finding, lenses: [lens] }))
      }),
    )
    // One fault that several lenses saw is one finding.
    const byKey = new Map()
    for (const finding of answered(reviews).flat()) {
      const known = byKey.get(finding.key)
      if (known === undefined) {
        byKey.set(finding.key, finding)
      } else {
        known.lenses.push(...finding.lenses)
        duplicates++
      }
    }
    log(`${file}: findings to verify: ${byKey.size}`)
    return [...byKey.values()]
  },

  (findings) =>
    parallel(
      findings.map((finding) => async () => {
        const prompt = `Another reviewer claims of ${finding.file}, line ${finding.line}: "${finding.title}". Try to
refute it in the code. It is real only if you cannot, and if a maintainer would want to change something.`
        const ballots = await parallel(
          Array.from({ length: votes }, (_, i) => () => {
            const sample = { real: finding.severity === "high" || i === 0, reason: "as the sample says" }
            const label = `vote ${i + 1} on ${finding.file}:${finding.line}`
            return agent(ask(prompt, sample), { label, phase: "Verify", schema: VOTE })
          }),
        )
        const cast = answered(ballots)
        const real = cast.filter((ballot) => ballot.real).length
        // An agent that failed has not voted. A verdict is what no vote that is missing could change.
        const verdict = real * 2 > votes ? "confirmed" : (cast.length - real) * 2 >= votes ? "refuted" : "undecided"
        return { ...finding, verdict, votes: { real, notReal: cast.length - real, missing: votes - cast.length } }
      }),
    ),
)

const findings = judged.flat().filter((finding) => finding !== null)
const having = (verdict) => findings.filter((finding) => finding.verdict === verdict)
const confirmed = having("confirmed")

phase("Summary")
const statistics = {
  files: files.length,
  findings: findings.length,
  duplicates,
  confirmed: confirmed.length,
  refuted: having("refuted").length,
  undecided: having("undecided").length,
  notReviewed: notReviewed.length,
  unanswered,
}
const closing = await agent(
  ask(
    `Summarise this review for the maintainers in ten lines, the worst first. Figures: ${JSON.stringify(statistics)}.
Findings: ${JSON.stringify(confirmed)}`,
    { summary: `${confirmed.length} of ${findings.length} findings survived the vote.` },
  ),
  {
    label: "summary",
    schema: { type: "object", properties: { summary: { type: "string" } }, required: ["summary"] },
  },
)

return { summary: closing?.summary ?? null, confirmed, undecided: having("undecided"), notReviewed, statistics }

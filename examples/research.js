// Answers a question from several independent angles. Every claim is verified by three agents before it counts.
//
//   offline   fanfold run examples/research.js --args '{"offline": true}'
//   for real  fanfold run examples/research.js --agents command --agent-command "claude -p" \
//                 --args '{"question": "When is SQLite a good choice for a server?"}'
//
// args, all optional: `question`, `angles` (how many, 3 by default), `offline`.

/** @type {WorkflowMeta} */
export const meta = {
  name: "research",
  description: "Answers a question from several angles, with claims that independent agents have verified",
  phases: [
    { title: "Plan", detail: "angles that do not overlap" },
    { title: "Research", detail: "one agent for each angle, then its claims" },
    { title: "Verify", detail: "three checks of every claim" },
    { title: "Answer" },
  ],
  args: {
    type: "object",
    properties: {
      question: { type: "string", minLength: 1 },
      angles: { type: "integer", minimum: 1 },
      offline: { type: "boolean" },
    },
    additionalProperties: false,
  },
}

const question = args?.question ?? "When is SQLite a good choice for a server?"
const angleCount = args?.angles ?? 3

const PLAN = /** @type {const} */ ({
  type: "object",
  properties: { angles: { type: "array", items: { type: "string" } } },
  required: ["angles"],
  additionalProperties: false,
})
const CLAIMS = /** @type {const} */ ({
  type: "object",
  properties: {
    claims: {
      type: "array",
      items: {
        type: "object",
        properties: { claim: { type: "string" }, source: { type: "string" }, passage: { type: "string" } },
        required: ["claim", "source", "passage"],
        additionalProperties: false,
      },
    },
  },
  required: ["claims"],
  additionalProperties: false,
})
const CHECK = /** @type {const} */ ({
  type: "object",
  properties: { holds: { type: "boolean" }, reason: { type: "string" } },
  required: ["holds", "reason"],
  additionalProperties: false,
})
const ANSWER = /** @type {const} */ ({
  type: "object",
  properties: {
    answer: { type: "string" },
    confidence: { type: "string", enum: ["low", "medium", "high"] },
    gaps: { type: "array", items: { type: "string" } },
  },
  required: ["answer", "confidence", "gaps"],
  additionalProperties: false,
})

// The prompt for a real agent or, offline, the order to a scripted one: the object it shall answer, or a text such
// as "sleep:400" or "fail:why".
const ask = (prompt, sample) =>
  !args?.offline ? prompt : typeof sample === "string" ? sample : `json:${JSON.stringify(sample)}`

const sampleAngles = ["limits under load", "operating it", "what its authors say"]
const sampleClaims = [
  { claim: "One writer at a time", source: "the manual on locking", passage: "only one process can write" },
  { claim: "Readers never wait", source: "a comparison of databases", passage: "reads are always instant" },
]

phase("Plan")
const plan = await agent(
  ask(
    `Someone asks: "${question}" Name ${angleCount} angles to research it from. Together they should cover it, and no
two should lead to the same sources.`,
    { angles: sampleAngles },
  ),
  { label: "plan", schema: PLAN },
)
// Without a plan, the question itself is the only angle.
const planned = plan !== null && plan.angles.length > 0
if (!planned) log("There is no plan: the question itself is the only angle")
const angles = planned ? plan.angles.slice(0, angleCount) : [question]

phase("Research")
const found = await pipeline(
  angles,
  (angle, _, i) =>
    agent(
      ask(
        `Research "${question}" from this angle alone: ${angle}. Prefer primary sources. Note each with the passages
that matter, word for word.`,
        i === 2 ? "fail:no source could be reached" : `sleep:${500 + 400 * i}`,
      ),
      { label: `research ${angle}` },
    ),
  // A failed agent gives null, and null goes on to the next stage: here an angle without notes ends.
  (notes, angle, i) =>
    notes === null
      ? null
      : agent(
          ask(
            `List the claims in these notes that help to answer "${question}", each with its source and the passage
that supports it. Leave out what no passage supports.\n\n${notes}`,
            { claims: sampleClaims.slice(0, i + 1) },
          ),
          { label: `claims of ${angle}`, schema: CLAIMS },
        ),
)

// Two angles may have met the same claim. Checking starts only when all are known, so that none is checked twice.
const claims = new Map()
for (const item of found.flatMap((list) => list?.claims ?? [])) {
  const key = item.claim.toLowerCase().replace(/[^\p{L}\p{N}]+/gu, " ").trim()
  if (!claims.has(key)) claims.set(key, item)
}
const unanswered = found.filter((list) => list === null).length
log(`claims: ${claims.size}, angles that gave any: ${angles.length - unanswered} of ${angles.length}`)

phase("Verify")
const checks = {
  source: "Open the source. Does it exist, is it about this, and does the passage stand there, in this sense?",
  contradiction: "Look for the best source that contradicts the claim. Does the claim survive it?",
  scope: "Is the claim true as generally as it is put, today, and with these figures?",
}
const verified = await parallel(
  [...claims.values()].map((item, i) => async () => {
    // Each agent sees the claim only, neither the notes nor the other checks.
    const results = await parallel(
      Object.entries(checks).map(([name, task]) => () => {
        const prompt = `Claim: "${item.claim}"\nSource: ${item.source}\nPassage: "${item.passage}"\n\n${task} If you
cannot tell, it does not hold.`
        const sample = { holds: i === 0 || name === "source", reason: "as the sample says" }
        return agent(ask(prompt, sample), { label: `${name}: ${item.claim}`, schema: CHECK })
      }),
    )
    // Two of three decide. A check that failed says nothing: it neither confirms the claim nor rejects it.
    const holds = results.filter((result) => result?.holds === true).length
    const objections = results.flatMap((result) => (result?.holds === false ? [result.reason] : []))
    const verdict = holds >= 2 ? "confirmed" : objections.length >= 2 ? "rejected" : "undecided"
    return { ...item, verdict, holds, objections, missing: results.length - holds - objections.length }
  }),
)
const having = (verdict) => verified.filter((item) => item?.verdict === verdict)
const [survivors, rejected, undecided] = ["confirmed", "rejected", "undecided"].map(having)

phase("Answer")
const answer =
  survivors.length === 0
    ? null
    : await agent(
        ask(
          `Answer "${question}" from these verified claims and nothing else, and name the source of each sentence.
Then say what they leave open.\n\n${JSON.stringify(survivors)}`,
          { answer: "Where one writer at a time is enough.", confidence: "medium", gaps: ["No figures under load"] },
        ),
        { label: "answer", schema: ANSWER },
      )

const noAnswer = survivors.length === 0 ? "no claim was confirmed" : "the agent that writes the answer failed"
return {
  question,
  answer,
  ...(answer === null ? { noAnswer } : {}),
  claims: survivors,
  rejected,
  undecided,
  statistics: {
    planned,
    angles: angles.length,
    unanswered,
    claims: claims.size,
    survived: survivors.length,
    rejected: rejected.length,
    undecided: undecided.length,
  },
}

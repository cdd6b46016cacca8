// A script as its author's editor sees it: every line here is right.
const LENSES = ["correctness", "security"]
const FINDING = /** @type {const} */ ({
  type: "object",
  properties: { title: { type: "string" }, severity: { enum: ["low", "high"] }, line: { type: ["integer", "null"] } },
  required: ["title", "severity"],
})

phase("Review")
const reviews = await pipeline(
  ["a.js", "b.js"],
  (file, _, index) => agent(`Review ${file}.`, { label: `${index}: ${file}`, schema: FINDING, timeoutMs: 60_000 }),
  (finding, file) => finding && { ...finding, file, title: finding.title.trim(), line: finding.line ?? 0 },
)
for (const review of reviews) if (review?.severity === "high") log(`${review.file}:${review.line} ${review.title}`)

// Nested, with answers of different types side by side.
const [texts, count] = await parallel([
  () => parallel(LENSES.map((lens) => () => agent(`Look for ${lens}.`, { effort: "low", model: args?.model }))),
  async () => reviews.length,
])
const lengths = (texts ?? []).map((text) => text?.length ?? 0)

// More stages than have types of their own.
const same = (prev) => prev
const long = await pipeline([1], same, same, same, same, same, same, same, (prev, item, index) => prev + item + index)

// Workflows inside, and the budget.
const audit = await workflow("audit", { part: "core" })
await workflow({ script: audit.script })
const fleet = budget.total === null ? 3 : Math.floor(budget.remaining() / 1000)
log(`${budget.spent()} spent, ${fleet} readers`)

// What scripts with a header have.
const sleep = (ms) => new Promise((resolve) => setTimeout(resolve, ms))
await sleep(100)
const timer = setTimeout((name) => console.log("late", name), 1000, "x")
clearTimeout(timer)
const url = new URL("/a", "https://example.com")
url.searchParams.set("q", "1")
for (const [name, value] of url.searchParams) console.warn(name, value, url.hostname)

try {
  await agent(args.prompt, { isolation: "worktree", retries: 2, stallMs: 1000, agentType: "reader", provider: "p", _note: 1 })
} catch (thrown) {
  const error = /** @type {WorkflowError} */ (thrown)
  if (error.code === "AGENT_CAP" || error.code === "CANCELLED") throw error
  log(`${error.code} at ${error.path ?? "nowhere"}: ${error.message}`)
}

return { reviews, lengths, count, long, at: new Date().toISOString(), random: Math.random() }

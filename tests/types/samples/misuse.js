// What the declarations refuse: what would end a script is an error in the editor already.

// ── agent ──
// expect TS2554
await agent()
// expect TS2345
await agent(5)
// expect TS2345
await agent("a", "label")
// expect TS2345
await agent("a", null)
// expect TS2353
await agent("a", { priority: 1 })
// expect TS2561
await agent("a", { lable: "typo" })
// expect TS2322
await agent("a", { label: 1 })
// expect TS2322
await agent("a", { model: null })
// expect TS2322
await agent("a", { isolation: "container" })
// expect TS2322
await agent("a", { timeoutMs: "10s" })
// expect TS2322
await agent("a", { schema: "object" })
// expect TS2322
await agent("a", { schema: { type: "array", items: { type: "string" } } })
// expect TS2322
await agent("a", { schema: true })
// expect TS2322
await agent("a", { schema: { type: "object", required: "title" } })

// What is not there, or may not be.
const text = await agent("a")
// expect TS18047
text.length
const found = await agent("a", {
  schema: {
    type: "object",
    properties: { title: { type: "string" }, line: { type: "integer" } },
    required: ["title"],
  },
})
// expect TS18047
found.title
// expect TS2551
found?.tilte
// expect TS18048
found && found.line + 1
// A promise is not its answer.
// expect TS2339
agent("a").length

// ── workflow, budget, timers ──
// expect TS2345
await workflow(5)
// expect TS2353
await workflow({ name: "x" })
// expect TS2540
budget.total = 5
// expect TS2345
setTimeout("code", 5)
// expect TS2339
console.clear()

// ── parallel ──
// expect TS2345
await parallel("abc")
// expect TS2322
await parallel([() => 1, 2])
// expect TS2322
await parallel([agent("a")])
// expect TS2345
await parallel(["a", "b"].map((x) => agent(x)))
// expect TS2322
await parallel([(/** @type {string} */ needs) => needs])

// ── pipeline ──
// expect TS2555
await pipeline([1])
// expect TS2345
await pipeline("abc", (x) => x)
// expect TS2345
await pipeline([1], (x) => x, 5)
await pipeline(
  ["a"],
  (file) => agent(file),
  // expect TS18047
  (review) => review.length,
)

// ── narration ──
// expect TS2345
log({ a: 1 })
// expect TS2345
phase(1)

// ── metadata ──
/** @type {WorkflowMeta} */
// expect TS2741
const nameless = { name: "a" }
/** @type {WorkflowMeta} */
// expect TS2353
const strange = { name: "a", description: "b", version: 1 }

// ── errors ──
// expect TS2693
new WorkflowError("forged")
/** @type {WorkflowErrorCode} */
// expect TS2322
const code = "TIMEOUT"

// ── what a script cannot reach ──
// expect TS2304
fetch("")
// expect TS2304
setInterval
// expect TS2591
process
// expect TS2591
require
// expect TS2304
structuredClone

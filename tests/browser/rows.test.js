// What the page works out without a browser: rows, time scales, how many ran at once.

import assert from "node:assert/strict"
import { test } from "node:test"
import { rowsOf, span, stairs, ticks } from "../../crates/view/page/rows.js"

const agent = (index, phase, state = "running", label = `agent ${index}`) => ({ index, phase, state, label })
const everything = { text: "", state: "all" }
const shown = (input) =>
  rowsOf({ phases: [], planned: [], agents: [], closed: new Set(), asks: everything, ...input }).map((row) =>
    row.kind === "agent" ? row.agent.index : (row.title ?? "loose"),
  )
const phases = [{ index: 0, title: "A" }, { index: 1, title: "" }]

test("agents are under their phases, in the order in which those started", () => {
  assert.deepEqual(shown({ phases, agents: [agent(0, 1), agent(1, 0), agent(2, 1)] }), ["A", 1, "", 0, 2])
})

test("no phase is not a phase with an empty title", () => {
  assert.deepEqual(shown({ phases, agents: [agent(0), agent(1, 1)] }), ["loose", 0, "A", "", 1])
  assert.deepEqual(shown({ agents: [agent(0), agent(1)] }), [0, 1])
})

test("phases that are only planned are last, and not there while something is looked for", () => {
  const input = { phases, planned: ["Z"], agents: [agent(0, 0, "failed"), agent(1, 1)] }
  assert.deepEqual(shown(input), ["A", 0, "", 1, "Z"])
  assert.deepEqual(shown({ ...input, asks: { text: "", state: "failed" } }), ["A", 0])
  assert.deepEqual(shown({ ...input, asks: { text: "AGENT 1 ", state: "all" } }), ["", 1])
})

test("a phase that is closed keeps its agents to itself", () => {
  assert.deepEqual(shown({ phases, agents: [agent(0, 0), agent(1, 1)], closed: new Set([0]) }), ["A", "", 1])
})

test("the timeline stands still for a while, and fits in the end", () => {
  assert.equal(span(0, true), 1000)
  assert.equal(span(1_990, true), 3000)
  assert.equal(span(59_000, true), 120_000)
  assert.equal(span(5 * 3600_000, true), 8 * 3600_000)
  assert.equal(span(1_234, false), 1_234)
  for (const length of [1, 40, 999, 12_345, 3_600_000, 10 * 86_400_000]) {
    const marks = ticks(length)
    assert.ok(marks.length >= 1 && marks.length <= 12, `${length}: ${marks}`)
  }
})

test("an agent that makes room and the one that takes it did not run at once", () => {
  const run = (began, ended) => ({ began, ended })
  assert.deepEqual(stairs([run(0, 10), run(0, 5), run(5, undefined), run(undefined, undefined)]), [[0, 2], [5, 2], [10, 1]])
})

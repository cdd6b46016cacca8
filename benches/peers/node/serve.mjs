// The protocol of benches/peers/protocol for engines in JavaScript: does jobs until the input ends.
//
// An engine is { name, version, run(script), park(script), cancel(parked) }: run gives the value, park what cancel
// takes, once the script has called its agent.
import { readFileSync } from "node:fs"
import { createInterface } from "node:readline"

const since = (began) => performance.now() - began
const say = (line) => process.stdout.write(`${JSON.stringify(line)}\n`)

/** Memory that this process takes up, in bytes: pages that several mappings share count once. */
const memory = () => 1024 * readFileSync("/proc/self/smaps_rollup", "utf8").match(/^Pss: *(\d+)/m)[1]

/** The same promise, and who settles it. */
export const deferred = () => {
  let resolve
  const promise = new Promise((settle) => { resolve = settle })
  return { promise, resolve }
}

export async function serve({ name, version, run, park, cancel }) {
  say({ name, version: `${version}, Node ${process.versions.node}` })
  let nonce = 0
  for await (const line of createInterface({ input: process.stdin })) {
    const { job, script, expect, count, forMs, fresh } = JSON.parse(line)
    if (job === "run") {
      const ms = []
      const turn = performance.now()
      while (since(turn) < forMs) {
        if (fresh) nonce++
        const text = `${script}\n// ${nonce}`
        const began = performance.now()
        const value = await run(text)
        ms.push(since(began))
        if (JSON.stringify(value) !== expect) throw new Error(`the script gave ${JSON.stringify(value)}, not ${expect}`)
      }
      say({ answer: "ran", ms })
    } else {
      const before = memory()
      const began = performance.now()
      const parked = await Promise.all(Array.from({ length: count }, () => park(script)))
      const startMs = since(began)
      const bytes = memory() - before
      const cancelMs = []
      for (const one of parked) {
        const began = performance.now()
        await cancel(one)
        cancelMs.push(since(began))
      }
      say({ answer: "parked", startMs, bytes, cancelMs })
    }
  }
  process.exit(0)
}

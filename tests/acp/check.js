// Runs workflows whose agents are the one in agent.js, through the fanfold command ($FANFOLD).
import assert from "node:assert/strict"
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { setTimeout as sleep } from "node:timers/promises"
import { after, test } from "node:test"

const fanfold = process.env.FANFOLD
assert.ok(fanfold, "set FANFOLD to the path of the fanfold command")
const agent = join(import.meta.dirname, "agent.js")
const folders = []
const runs = []
after(() => {
  // Those of a test that failed midway.
  for (const run of runs) run.child?.kill("SIGKILL")
  for (const folder of folders) rmSync(folder, { recursive: true, force: true })
})

/** Starts a run. Its agents note their processes in `pids`. */
function start(script, { permissions = "deny", limits = { maxConcurrentAgents: 4 } } = {}) {
  const folder = mkdtempSync(join(tmpdir(), "fanfold-acp-"))
  folders.push(folder)
  const config = join(folder, "fanfold.toml")
  const toml = [`[agents.acp]`, `command = ${JSON.stringify(`node '${agent}'`)}`, `env = ["PIDS"]`, `permissions = "${permissions}"`]
  writeFileSync(config, toml.join("\n"))
  const args = ["run", "-", "--json", "--config", config, "--limits", JSON.stringify(limits)]
  const child = spawn(fanfold, args, { env: { ...process.env, PIDS: folder }, stdio: ["pipe", "pipe", "pipe"] })
  let [out, err] = ["", ""]
  child.stdout.on("data", (data) => (out += data))
  child.stderr.on("data", (data) => (err += data))
  child.stdin.end(script)
  const done = new Promise((resolve) =>
    child.on("close", (status) => {
      const lines = out.trim().split("\n").map((line) => JSON.parse(line))
      resolve({ status, err, result: lines.at(-1) })
    }),
  )
  const run = { child, done, noted: () => readdirSync(folder) }
  runs.push(run)
  return run
}

async function value(script, options) {
  const { result, err } = await start(script, options).done
  assert.equal(result.stopReason, "completed", JSON.stringify(result) + err)
  return result
}

async function until(what, condition) {
  for (let tries = 0; !condition(); tries++) {
    assert.ok(tries < 3000, `waited too long for ${what}`)
    await sleep(20)
  }
}

/** The processes that were noted, and are still there. */
const alive = (run) => run.noted().filter((name) => /^\d+$/.test(name) && existsSync(`/proc/${name}`))
const waiting = (run) => run.noted().filter((name) => name.startsWith("waiting-")).length

test("an agent answers", async () => {
  assert.equal((await value("return await agent('greet')")).value, "Hello, wörld")
})

test("a megabyte is an answer", async () => {
  assert.equal((await value("return (await agent('big')).length")).value, 1 << 20)
})

test("a value is asked for until it satisfies the schema", async () => {
  const schema = `{ type: "object", properties: { n: { type: "integer" } }, required: ["n"] }`
  assert.deepEqual((await value(`return await agent("count", { schema: ${schema} })`)).value, { n: 3 })
})

for (const [permissions, expected] of [
  ["deny", ["no", "no"]],
  ["read", ["yes", "no"]],
  ["allow", ["yes", "yes"]],
]) {
  test(`permission requests, policy ${permissions}`, async () => {
    const script = "return await parallel(['read', 'edit'].map((verb) => () => agent(verb)))"
    assert.deepEqual((await value(script, { permissions })).value, expected)
  })
}

test("our files are not offered", async () => {
  assert.equal((await value("return await agent('files')", { permissions: "allow" })).value, "refused")
})

test("every bad end is null, with its reason", async () => {
  const script = "return await parallel(['crash', 'decline', 'full', 'error'].map((verb) => () => agent(verb)))"
  const { value: values, failures } = await value(script)
  assert.deepEqual(values, [null, null, null, null])
  const reason = (label) => failures.find((failure) => failure.label === label).reason
  assert.equal(reason("crash"), "exit: the agent closed its output; exit status 3; standard error: boom")
  assert.equal(reason("decline"), "refusal: the agent declined: No.")
  assert.match(reason("full"), /^length: /)
  assert.match(reason("error"), /^server: .*[Ii]nternal error/)
})

test("an agent that wants a login ends the run's starts", async () => {
  const script = "const codes = []; for (const verb of ['login', 'greet']) await agent(verb).catch((e) => codes.push(e.code)); return codes"
  assert.deepEqual((await value(script)).value, ["AGENT_RESULT", "AGENT_START"])
})

test("time and silence end", async () => {
  const script = "return await parallel([{ timeoutMs: 3000 }, { stallMs: 3000 }].map((options) => () => agent('hang', options)))"
  const run = start(script)
  const { result } = await run.done
  assert.deepEqual(result.failures.map((failure) => failure.reason.split(":")[0]).sort(), ["stall", "timeout"])
  assert.equal(run.noted().filter((name) => name.startsWith("cancelled-")).length, 2)
  assert.deepEqual(alive(run), [])
})

test("a cancelled agent hears of it, and gets no permission any more", async () => {
  const run = start("return await parallel(['hang', 'ask'].map((verb) => () => agent(verb)))", { permissions: "allow" })
  await until("the agents", () => waiting(run) === 2)
  run.child.kill("SIGINT")
  const { status } = await run.done
  assert.equal(status, 130)
  assert.ok(run.noted().some((name) => name.startsWith("cancelled-")))
  assert.ok(run.noted().includes("outcome-cancelled"))
  assert.deepEqual(alive(run), [])
})

test("forty at once, some of them stubborn, leave no process behind", async () => {
  const verbs = ["greet", "hang", "stubborn", "crash"]
  const script = `return await parallel(Array.from({ length: 40 }, (_, n) => () => agent(${JSON.stringify(verbs)}[n % 4])))`
  const run = start(script, { limits: { maxConcurrentAgents: 40, disposeGraceMs: 20000 } })
  await until("the agents", () => waiting(run) === 20)
  run.child.kill("SIGINT")
  const { status } = await run.done
  assert.equal(status, 130)
  assert.equal(run.noted().filter((name) => /^\d+$/.test(name)).length, 50)
  await until("the processes to go", () => alive(run).length === 0)
})

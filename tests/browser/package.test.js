// The npm package as others get it: from a tarball, in an empty folder; in Node, in a browser, and through a bundler.

import assert from "node:assert/strict"
import { createServer } from "node:http"
import { mkdir, mkdtemp, readFile, readdir, rm, symlink, writeFile } from "node:fs/promises"
import { tmpdir } from "node:os"
import { extname, join } from "node:path"
import { after, before, test } from "node:test"
import { fileURLToPath } from "node:url"
import { gzipSync } from "node:zlib"
import { browser, ROOT, run } from "./support.js"

const HERE = fileURLToPath(new URL(".", import.meta.url))
let folder

before(async () => {
  folder = await mkdtemp(join(tmpdir(), "fanfold-package-"))
  await writeFile(join(folder, "package.json"), '{"name": "empty", "private": true, "type": "module"}')
  await run("npm", ["pack", join(ROOT, "web"), "--pack-destination", folder, "--silent"])
  const [tarball] = (await readdir(folder)).filter((name) => name.endsWith(".tgz"))
  await run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", `./${tarball}`], { cwd: folder })
})
after(() => rm(folder, { recursive: true, force: true }))

/** What both Node and browsers must say of a run. */
const USE = `
import init, { RecordChecker, RunView, pretty } from "fanfold-types"

export async function use() {
  await init()
  await init()
  const view = new RunView()
  const at = (n, more) => ({ id: "r", n, at: 1000 * n, ...more })
  const agent = { seq: 1, label: "<b>reader</b>", phase: "Read", childId: "c" }
  view.event(at(2, { type: "workflow/agent-start", agent }))
  view.line(JSON.stringify(at(1, { type: "workflow/start", meta: { name: "demo", description: "d" } })))
  const early = view.since(0)
  view.event(at(3, { type: "workflow/agent-end", agent: { ...agent, outcome: "completed" } }))
  view.event(at(3, { type: "workflow/agent-end", agent: { ...agent, outcome: "completed" } }))
  view.event(at(4, { type: "workflow/end", result: { stopReason: "completed", agentsStarted: 1 } }))
  const late = view.since(early.revision)
  const checker = new RecordChecker()
  const start = { type: "tool-workflow/run-start", payload: { runId: "r", name: "demo" } }
  checker.check(start)
  let refused = ""
  try { checker.check(start) } catch (error) { refused = error.message }
  let torn = ""
  try { view.line("{") } catch (error) { torn = error.constructor.name }
  return {
    early: [early.run.state, early.agents.map((agent) => agent.state)],
    late: [late.run.state, late.run.ended, late.agents.map((agent) => [agent.label, agent.state, agent.ended]), late.phases.map((phase) => phase.title)],
    refused, torn, pretty: pretty('{"n":12345678901234567890}'),
  }
}
`
const EXPECTED = {
  early: ["running", ["running"]],
  late: ["completed", 4000, [["<b>reader</b>", "completed", 3000]], ["Read"]],
  refused: 'run "r" starts twice',
  torn: "Error",
  pretty: '{\n  "n": 12345678901234567890\n}',
}

test("the wasm is less than 110 KB, compressed", async () => {
  const wasm = await readFile(join(folder, "node_modules/fanfold-types/fanfold_types_bg.wasm"))
  const size = gzipSync(wasm, { level: 9 }).length
  assert.ok(size < 110_000, `${size} bytes`)
})

test("it works in Node", async () => {
  await writeFile(join(folder, "use.js"), USE)
  const { use } = await import(join(folder, "use.js"))
  assert.deepEqual(await use(), EXPECTED)
})

test("its types are those of the Rust types", async () => {
  const sample = `
import init, { RunView, type AgentView, type ErrorCode, type Event, type ResultLine, type SessionRecord, type ViewChanges } from "fanfold-types"
await init()
const view = new RunView()
const changes: ViewChanges = view.since(0)
const agents: AgentView[] = changes.agents
const state: "queued" | "refused" | "running" | "completed" | "failed" | "cancelled" | "interrupted" = agents[0]!.state
const code: ErrorCode | undefined = changes.run.error?.code
const event: Event = { type: "workflow/log", id: "r", n: 1, at: 1, message: "m" }
const taken: boolean = view.event(event)
const record: SessionRecord = { type: "tool-workflow/run-end", payload: { runId: "r", stopReason: "completed" } }
const began: number | undefined = changes.run.began
declare const result: ResultLine
const value: unknown = result.value
// @ts-expect-error there is no such state
const wrong: AgentView["state"] = "sleeping"
// @ts-expect-error a log has a message
const bad: Event = { type: "workflow/log", id: "r", n: 1, at: 1 }
export { agents, bad, began, code, record, state, taken, value, wrong }
`
  await writeFile(join(folder, "sample.ts"), sample)
  const options = { strict: true, noEmit: true, target: "es2022", module: "nodenext", moduleResolution: "nodenext", lib: ["es2023", "dom"], types: [] }
  await writeFile(join(folder, "tsconfig.json"), JSON.stringify({ compilerOptions: options, files: ["sample.ts"] }))
  await run("node", [join(HERE, "node_modules/typescript/bin/tsc"), "-p", folder]).catch(({ stdout }) => assert.fail(stdout))
})

/** Serves a folder on loopback. */
async function serve(root) {
  const kinds = { ".html": "text/html", ".js": "text/javascript", ".wasm": "application/wasm" }
  const server = createServer(async (request, response) => {
    try {
      const path = new URL(request.url, "http://localhost").pathname
      const body = await readFile(join(root, path === "/" ? "index.html" : path))
      response.writeHead(200, { "content-type": kinds[extname(path) || ".html"] ?? "application/octet-stream" }).end(body)
    } catch {
      response.writeHead(404).end()
    }
  })
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve))
  return { url: `http://127.0.0.1:${server.address().port}/`, close: () => server.close() }
}

async function inBrowser(root) {
  const server = await serve(root)
  const chrome = await browser()
  try {
    const page = await chrome.context.newPage()
    const faults = []
    page.on("pageerror", (error) => faults.push(String(error)))
    await page.goto(server.url)
    await page.waitForFunction(() => window.used || window.failed)
    assert.equal(await page.evaluate(() => window.failed), undefined)
    assert.deepEqual(await page.evaluate(() => window.used), EXPECTED)
    assert.deepEqual(faults, [])
  } finally {
    await chrome.close()
    server.close()
  }
}

const MAIN = `import { use } from "./use.js"
use().then((used) => (window.used = used), (error) => (window.failed = String(error)))`

test("it works in a browser without a bundler", async () => {
  const page = `<!doctype html><title>t</title>
<script type="importmap">{"imports": {"fanfold-types": "/node_modules/fanfold-types/index.js"}}</script>
<script type="module" src="main.js"></script>`
  await writeFile(join(folder, "use.js"), USE)
  await writeFile(join(folder, "main.js"), MAIN)
  await writeFile(join(folder, "index.html"), page)
  await inBrowser(folder)
})

test("a Vite project that imports it builds, and works", async () => {
  const project = join(folder, "project")
  await mkdir(join(project, "node_modules"), { recursive: true })
  await symlink(join(folder, "node_modules/fanfold-types"), join(project, "node_modules/fanfold-types"))
  await writeFile(join(project, "package.json"), '{"name": "project", "private": true, "type": "module"}')
  await writeFile(join(project, "use.js"), USE)
  await writeFile(join(project, "main.js"), MAIN)
  await writeFile(join(project, "index.html"), '<!doctype html><title>t</title><script type="module" src="/main.js"></script>')
  await run("node", [join(HERE, "node_modules/vite/bin/vite.js"), "build", "--logLevel", "error"], { cwd: project })
  await inBrowser(join(project, "dist"))
})

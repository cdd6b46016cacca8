// The engine that Fanfold replaces: a worker thread for each run.
import { createRequire } from "node:module"
import { Context, Service } from "@deepseek-ai/cordis"
import WorkerEngine from "@deepseek-ai/dsh-workflow-worker-thread"
import * as workflowTool from "@deepseek-ai/dsh-tool-workflow"
import { deferred, serve } from "./serve.mjs"

// Runs that are to call their agent, in the order they were started.
const parking = []

const answer = (text) => ({ output: [{ type: "text", text }], stopReason: "completed" })

class Agents extends Service {
  constructor(context) {
    super(context, "subagents")
    this.started = 0
  }
  getProvider(name) {
    return name === "spawn" ? { name } : undefined
  }
  async start(_provider, request) {
    const prompt = request.prompt.map((block) => block.text).join("")
    const hang = () => {
      parking.shift()?.()
      return new Promise((resolve) => {
        request.signal.addEventListener("abort", () => resolve({ output: [], stopReason: "aborted" }), { once: true })
      })
    }
    const result = prompt === "hang" ? hang() : Promise.resolve(answer(prompt))
    return { id: `child-${++this.started}`, result, dispose: async () => {} }
  }
}

class SystemPrompt extends Service {
  constructor(context) {
    super(context, "systemPrompt")
  }
  section() {}
}

let tool
class Tools extends Service {
  constructor(context) {
    super(context, "tools")
  }
  register(definition) {
    tool = definition
  }
}

const root = new Context()
await root.plugin(Agents)
await root.plugin(SystemPrompt)
await root.plugin(Tools)
await root.plugin(WorkerEngine, { maxConcurrentAgents: 16 })
await root.plugin(workflowTool, {})

const meta = { name: "bench", description: "a script that is measured" }
const call = (script, signal) =>
  tool.execute({ meta, script }, { agent: { session: { append() {} } }, signal })

const { version } = createRequire(import.meta.url)("@deepseek-ai/dsh-workflow-worker-thread/package.json")
await serve({
  name: "the replaced engine",
  version: `dsh-workflow-worker-thread ${version}`,
  run: async (script) => (await call(script, new AbortController().signal)).result,
  park: async (script) => {
    const { promise: asked, resolve } = deferred()
    const stop = new AbortController()
    parking.push(resolve)
    const ended = call(script, stop.signal).then(() => false, () => true)
    await asked
    return { stop, ended }
  },
  cancel: async ({ stop, ended }) => {
    stop.abort("enough")
    if (!(await ended)) throw new Error("a cancelled run completed")
  },
})

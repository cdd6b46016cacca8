// quickjs-emscripten: QuickJS as WebAssembly in Node, a runtime and a context for each run, on the host's thread.
import { createRequire } from "node:module"
import { getQuickJS } from "quickjs-emscripten"
import { body, hooks } from "./hooks.mjs"
import { deferred, serve } from "./serve.mjs"

const quickjs = await getQuickJS()

// Starts a script. Whoever answers an agent must run the jobs that wait for it.
function start(script, onHang) {
  const context = quickjs.newContext()
  const { runtime } = context
  const held = []
  let turn
  const runJobs = () => {
    turn = undefined
    runtime.executePendingJobs().dispose()
  }
  const ask = context.newFunction("ask", (handle) => {
    const prompt = context.getString(handle)
    const promise = context.newPromise()
    if (prompt === "hang") {
      held.push(promise)
      onHang()
    } else {
      // The answers of a turn of the host's event loop are taken in one go.
      Promise.resolve(prompt).then((text) => {
        context.newString(text).consume((value) => promise.resolve(value))
        promise.dispose()
        turn ??= Promise.resolve().then(runJobs)
      })
    }
    return promise.handle
  })
  context.setProp(context.global, "ask", ask)
  ask.dispose()
  const promise = context.unwrapResult(context.evalCode(hooks + body(script)))
  const value = context.resolvePromise(promise).then((settled) => {
    promise.dispose()
    return context.unwrapResult(settled).consume((handle) => context.dump(handle))
  })
  runJobs()
  return {
    value,
    end: () => context.dispose(),
    // What waits for an agent is told that there will be none, or it could not be freed.
    cancel: async () => {
      for (const promise of held) {
        context.newError("cancelled").consume((error) => promise.reject(error))
        promise.dispose()
      }
      runJobs()
      await value.catch(() => {})
      context.dispose()
    },
  }
}

const { version } = createRequire(import.meta.url)("quickjs-emscripten/package.json")
await serve({
  name: "quickjs-emscripten",
  version,
  run: async (script) => {
    const { value, end } = start(script)
    const result = await value
    end()
    return result
  },
  park: async (script) => {
    const { promise: asked, resolve } = deferred()
    const run = start(script, resolve)
    await asked
    return run
  },
  cancel: (run) => run.cancel(),
})

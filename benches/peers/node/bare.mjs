// A bare worker thread with a vm context for each run: what Node gives anyone.
import { Worker } from "node:worker_threads"
import { body, hooks } from "./hooks.mjs"
import { deferred, serve } from "./serve.mjs"

const inside = `
  const { parentPort, workerData } = require("node:worker_threads");
  const vm = require("node:vm");
  const waiting = new Map();
  let calls = 0;
  parentPort.on("message", ({ id, text }) => { waiting.get(id)(text); waiting.delete(id) });
  const ask = (prompt) => new Promise((resolve) => {
    waiting.set(++calls, resolve);
    parentPort.postMessage({ id: calls, prompt });
  });
  vm.runInContext(workerData, vm.createContext({ ask })).then((value) => parentPort.postMessage({ value: JSON.stringify(value) }));
`

function start(script, onHang) {
  const worker = new Worker(inside, { eval: true, workerData: hooks + body(script) })
  const { promise, resolve } = deferred()
  worker.on("message", ({ id, prompt, value }) => {
    if (value !== undefined) resolve(JSON.parse(value))
    else if (prompt === "hang") onHang()
    else worker.postMessage({ id, text: prompt })
  })
  return { worker, value: promise }
}

await serve({
  name: "a bare worker thread",
  version: "worker_threads and vm",
  run: async (script) => {
    const { worker, value } = start(script)
    const result = await value
    await worker.terminate()
    return result
  },
  park: async (script) => {
    const { promise: asked, resolve } = deferred()
    const { worker } = start(script, resolve)
    await asked
    return worker
  },
  cancel: (worker) => worker.terminate(),
})

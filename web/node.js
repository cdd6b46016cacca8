// For Node, which fetches no files: reads the wasm that lies beside this file.
import { readFile } from "node:fs/promises"
import load from "./fanfold_types.js"

export { RecordChecker, RunView, pretty } from "./fanfold_types.js"

let loading

/** Loads the wasm, once; everything else of this package needs it. */
export default function init(source) {
  const file = new URL("./fanfold_types_bg.wasm", import.meta.url)
  loading ??= Promise.resolve(source ?? readFile(file))
    .then((wasm) => load({ module_or_path: wasm }))
    .then(() => undefined)
  return loading
}

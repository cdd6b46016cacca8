// For browsers and bundlers: fetches the wasm that lies beside this file.
import load from "./fanfold_types.js"

export { RecordChecker, RunView, pretty } from "./fanfold_types.js"

let loading

/** Loads the wasm, once; everything else of this package needs it. */
export default function init(source) {
  loading ??= load(source === undefined ? undefined : { module_or_path: source }).then(() => undefined)
  return loading
}

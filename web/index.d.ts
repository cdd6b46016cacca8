/// <reference lib="esnext.disposable" />
// The types are made from the Rust types; only how to load them is written here.
export type * from "./fanfold_types.js"
export { RecordChecker, RunView, pretty } from "./fanfold_types.js"

/**
 * Loads the wasm, once; everything else of this package needs it.
 *
 * @param source where it is, if not beside this package: a URL, a response, its bytes, or a compiled module
 */
export default function init(
  source?: string | URL | Response | BufferSource | WebAssembly.Module | Promise<Response>,
): Promise<void>

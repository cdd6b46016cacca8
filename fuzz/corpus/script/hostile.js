Promise.prototype.then = Array.prototype.map = Object.prototype.toJSON = function () { return this }
const p = new Proxy({}, { get: (t, k) => (k === "then" ? undefined : p), ownKeys: () => ["label"], getOwnPropertyDescriptor: () => ({ value: "l", enumerable: true, configurable: true }) })
agent("x", p); parallel.constructor("return globalThis")
function f() { return f() + 1 }
try { f() } catch (e) { await null }
setTimeout(() => {}, 1); while (true) log("x".repeat(99))

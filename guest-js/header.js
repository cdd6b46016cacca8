// What scripts with an `export const meta = {…}` header have besides the hooks: `console`, which tells observers, and
// timers, which the host keeps. Others have none of it. The other half is crates/guest/src/timers.rs.
//
// Like hooks.js, a function expression that is evaluated when the guest is built.
(host, tools, urls) => {
  "use strict";

  const { misuse, workflowError, kind, fix, log } = tools;
  const { apply } = Reflect;
  const { stringify } = JSON;
  const { defineProperty } = Object;
  const NativeString = String;
  const { get: mapGet, set: mapSet, delete: mapDelete } = Map.prototype;

  // ── console ─────────────────────────────────────────────────────────────────────────────────────────────
  // A value as text: strings as they are, errors by what they say, other data as JSON.
  const show = (value) => {
    if (typeof value === "string") return value;
    try {
      if (typeof value === "object" && value !== null && !host.isError(value)) {
        const json = stringify(value);
        if (typeof json === "string") return json;
      }
      return NativeString(value);
    } catch {
      // A cycle, a BigInt inside, or a toString() that throws.
      return kind(value);
    }
  };
  const write = (...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i === 0 ? "" : " ") + show(values[i]);
    log(line);
  };
  const console = {};
  const also = () => (...values) => write(...values);
  fix(console, {
    log: also(), info: also(), debug: also(), warn: also(), error: also(), trace: also(), dir: also(), table: also(),
    group: also(),
    groupEnd: () => {},
    assert: (condition, ...values) => {
      if (!condition) write("Assertion failed:", ...values);
    },
  });
  Object.freeze(console);

  // ── Timers ──────────────────────────────────────────────────────────────────────────────────────────────
  const maxDelay = 2 ** 31 - 1;
  // What each timer calls, by the host's number for it.
  const timers = new Map();

  const setTimeout = (callback, delay, ...args) => {
    if (typeof callback !== "function") throw misuse(`setTimeout() takes a function first, got ${kind(callback)}`);
    const ms = +delay;
    if (ms > maxDelay) throw misuse(`setTimeout() waits for at most ${maxDelay} ms, got ${ms}`);
    // As everywhere, at least one; a fraction of one is none.
    const timer = host.setTimer(ms >= 1 ? ms : 1);
    if (typeof timer !== "number") throw workflowError(timer);
    apply(mapSet, timers, [timer, { __proto__: null, callback, args }]);
    return timer;
  };
  const clearTimeout = (timer) => {
    if (apply(mapDelete, timers, [timer])) host.clearTimer(timer);
  };

  return {
    // Makes the globals.
    install: () => {
      fix(globalThis, { setTimeout, clearTimeout });
      defineProperty(globalThis, "console", { value: console, enumerable: true });
      for (const name in urls) {
        defineProperty(globalThis, name, { value: urls[name], writable: true, configurable: true });
      }
    },
    // A timer has fired. What its function throws is a rejection that nobody handles: it harms nothing else.
    fire: async (timer) => {
      const due = apply(mapGet, timers, [timer]);
      if (due === undefined) return;
      apply(mapDelete, timers, [timer]);
      const { callback, args } = due;
      await apply(callback, undefined, args);
    },
  };
}

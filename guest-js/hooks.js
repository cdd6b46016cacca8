// The script's half of every hook: what the globals `agent`, `workflow`, `parallel`, `pipeline`, `phase`, `log` and
// `budget` do before and after they ask the host. The other half is crates/guest/src/hooks.rs and agent.rs. What the header
// dialect has besides is in header.js and url.js.
//
// This is one function expression, evaluated once when the guest is built; what it makes is part of the memory
// image that every run starts from. Nothing here trusts what a script can replace: every intrinsic is captured
// now, promises are awaited natively, and the host checks again whatever it is told.
(host) => {
  "use strict";

  const { defineProperty, defineProperties, freeze, create } = Object;
  const { apply, ownKeys } = Reflect;
  const { slice } = String.prototype;
  const NativeError = Error;
  const NativePromise = Promise;
  const NativeString = String;
  const { isArray: isNativeArray } = Array;
  const { stringify } = JSON;
  const { set: setLimit } = Object.getOwnPropertyDescriptor(NativeError, "stackTraceLimit");
  const size = Object.getOwnPropertyDescriptor(Map.prototype, "size").get;
  const { get: mapGet, set: mapSet, delete: mapDelete, forEach: mapForEach } = Map.prototype;
  const { add: brand, has: branded } = WeakSet.prototype;
  const unboxers = [Number, String, Boolean, BigInt].map((type) => type.prototype.valueOf);

  // ── Errors ──────────────────────────────────────────────────────────────────────────────────────────────
  // A WorkflowError is an Error that this file made. Scripts can read one and throw it on, but not make one:
  // being genuine is membership here, not a name or a prototype.
  const genuine = new WeakSet();
  const isGenuine = (error) => apply(branded, genuine, [error]);

  const become = (error, { code, message, path }) => {
    // Without a prototype: a script may have put `get` on that of every object.
    const fixed = (value, enumerable) =>
      ({ __proto__: null, value, enumerable, writable: false, configurable: false });
    defineProperties(error, { name: fixed("WorkflowError", false), code: fixed(code, true) });
    defineProperty(error, "message", fixed(message, false));
    if (path !== undefined) defineProperty(error, "path", fixed(path, true));
    apply(brand, genuine, [error]);
    return freeze(error);
  };
  // Adds an element, whatever the script has put on the prototype of every array.
  const put = (list, i, value) =>
    defineProperty(list, i, { __proto__: null, value, enumerable: true, writable: true, configurable: true });

  const workflowError = (failure) => become(new NativeError(), failure);
  const misuse = (message, path) => workflowError({ code: "INVALID_ARGUMENT", message, path });

  // A proxy that was revoked is not an array, and no more than an object.
  const isArray = (value) => {
    try {
      return isNativeArray(value);
    } catch {
      return false;
    }
  };
  const kind = (value) =>
    value === null ? "null" : host.isPromise(value) ? "a promise" : isArray(value) ? "an array" : value === undefined ? "undefined"
    : typeof value === "object" ? "an object" : `a ${typeof value}`;

  // With this a script could have the functions on the stack, these ones here, handed to it.
  delete NativeError.prepareStackTrace;

  // ── What a thrown value says ────────────────────────────────────────────────────────────────────────────
  const { getOwnPropertyDescriptor, getPrototypeOf, hasOwn } = Object;
  const maxText = 4000;
  const cut = (text) => text.length > maxText ? apply(slice, text, [0, maxText]) : text;

  // A property that holds a value. Runs none of the script's code: of a getter or a proxy there is nothing.
  const ownValue = (object, name) => {
    const found = host.isProxy(object) ? undefined : getOwnPropertyDescriptor(object, name);
    return found !== undefined && hasOwn(found, "value") ? found.value : undefined;
  };

  // The beginning of data as JSON, for people, without what is behind getters and proxies. Runs none of the script's code.
  const maxPreview = 500, maxLevels = 4;
  let room = 0;
  const preview = (value) => {
    room = maxPreview;
    return piece(value, 0);
  };
  const piece = (value, level) => {
    if (typeof value === "string") {
      room -= value.length;
      return stringify(room < 0 ? `${apply(slice, value, [0, maxPreview])}…` : value);
    }
    if (value === null || typeof value === "number" || typeof value === "boolean") return `${value}`;
    if (typeof value !== "object" || host.isProxy(value) || host.isPromise(value)) return kind(value);
    const isList = isArray(value);
    if (level === maxLevels) return isList ? "[…]" : "{…}";
    const keys = isList ? undefined : ownKeys(value);
    const length = isList ? value.length : keys.length;
    let text = "";
    for (let i = 0; i < length; i++) {
      const key = isList ? i : keys[i];
      const member = typeof key === "symbol" ? undefined : ownValue(value, key);
      if (member === undefined && !isList) continue;
      if (text !== "") text += ",";
      // Each member counts, be it ever so short.
      if (--room < 0) {
        text += "…";
        break;
      }
      text += isList ? piece(member, level + 1) : `${piece(key, level)}:${piece(member, level + 1)}`;
    }
    return isList ? `[${text}]` : `{${text}}`;
  };

  // What an error, or what looks like one, says besides its message: its code, what caused it and, of an error that
  // stands for several, the first of those.
  const maxCauses = 4;
  const details = (thrown, how, level) => {
    const code = how.get(thrown, "code");
    let text = typeof code === "string" || typeof code === "number" ? `\n  code: ${cut(`${code}`)}` : "";
    if (level === maxCauses) return text;
    const cause = how.get(thrown, "cause");
    if (cause !== undefined) text += `\n  caused by: ${cut(say(cause, how, level + 1))}`;
    const errors = level === 0 && host.isError(thrown) ? how.get(thrown, "errors") : undefined;
    for (let i = 0; i < maxCauses && isArray(errors); i++) {
      const error = how.get(errors, i);
      if (error !== undefined) text += `\n  error ${i + 1}: ${cut(say(error, how, level + 1))}`;
    }
    return text;
  };

  // The text of a thrown value: what an error says; the message of what looks like one; other data as JSON.
  const say = (thrown, how, level = 0) => {
    const isError = host.isError(thrown);
    const isObject = (typeof thrown === "object" && thrown !== null) || typeof thrown === "function";
    if (isError || !isObject) {
      const text = how.text(thrown, level);
      return isError && !isGenuine(thrown) ? text + details(thrown, how, level) : text;
    }
    const message = how.get(thrown, "message");
    if (typeof message === "string" && message !== "") {
      const name = how.get(thrown, "name");
      const text = typeof name === "string" && name !== "" ? `${name}: ${message}` : message;
      return text + details(thrown, how, level);
    }
    return isArray(thrown) ? preview(thrown) : how.text(thrown, level);
  };

  // How a value is read that ended the script: its getters and its toString() may run.
  const freely = {
    __proto__: null,
    get: (object, name) => {
      try {
        return object[name];
      } catch {}
    },
    text: (thrown, level) => {
      let own;
      try {
        own = NativeString(thrown);
      } catch {}
      if ((own === undefined || own === "[object Object]") && typeof thrown === "object" && !host.isError(thrown)) {
        return level === 0 ? `[object Object]\n  ${preview(thrown)}` : preview(thrown);
      }
      return own ?? "the script threw a value that cannot be shown as text";
    },
  };
  const describe = (thrown) => say(thrown, freely);
  const stackOf = (thrown) => {
    try {
      const stack = host.isError(thrown) ? thrown.stack : undefined;
      return typeof stack === "string" ? stack : "";
    } catch {
      return "";
    }
  };

  // How other values are read: the script goes on, or is over, and none of its code may run.
  const errorNames = new Map();
  for (const type of [Error, EvalError, RangeError, ReferenceError, SyntaxError, TypeError, URIError, AggregateError]) {
    errorNames.set(type.prototype, type.name);
  }
  const ownText = (object, name) => {
    const value = ownValue(object, name);
    return typeof value === "string" ? cut(value) : undefined;
  };
  const quietly = {
    __proto__: null,
    get: ownValue,
    text: (thrown) => {
      if (host.isError(thrown)) {
        const name = ownText(thrown, "name") ?? apply(mapGet, errorNames, [getPrototypeOf(thrown)]) ?? "Error";
        return `${name}: ${ownText(thrown, "message") ?? ""}`;
      }
      const type = typeof thrown;
      return type === "object" && thrown !== null ? preview(thrown)
        : type === "function" || type === "bigint" ? kind(thrown)
        : cut(NativeString(thrown));
    },
  };
  const describeQuietly = (thrown) => {
    const text = cut(say(thrown, quietly));
    const stack = host.isError(thrown) ? ownText(thrown, "stack") : undefined;
    return stack ? `${text}\n${stack}` : text;
  };

  // ── Promises ────────────────────────────────────────────────────────────────────────────────────────────
  // A promise of agent() is unseen until anything looks at it. `await`, then(), catch(), finally() and Promise.all()
  // all read its `constructor` first.
  const { seen } = host;
  const agentPromise = freeze(create(NativePromise.prototype, {
    constructor: {
      get() {
        seen(this);
        return NativePromise;
      },
    },
  }));

  // Rejections without a handler, by promise, in the order they happened; the first few are told.
  const maxRejections = 10;
  const unhandled = new Map();
  const rejected = (promise, reason, handled) => {
    if (handled) apply(mapDelete, unhandled, [promise]);
    else apply(mapSet, unhandled, [promise, reason]);
  };

  // Errors that became null in parallel() and pipeline(): how many, and for the first few which item and what is said
  // of it. The error itself may hold much: it is let go.
  const maxSwallowed = 10;
  const swallowedItems = [], swallowedErrors = [];
  let swallowedCount = 0;
  const swallow = (item, error) => {
    if (swallowedCount < maxSwallowed) {
      put(swallowedItems, swallowedCount, item);
      put(swallowedErrors, swallowedCount, describeQuietly(error));
    }
    swallowedCount++;
  };

  // Takes `count` items through `steps` steps, each item on its own, and gathers what comes of them in order.
  // `call(i, step, value)` does a step of item i with what the step before gave. What throws gives null, unless it is a
  // WorkflowError: that rejects the whole.
  const gather = (what, count, steps, call) =>
    new NativePromise((resolve, reject) => {
      const results = host.nulls(count);
      const at = host.nulls(count);
      let left = count;
      const finish = (i, value) => {
        results[i] = value;
        if (--left === 0) resolve(results);
      };
      const failed = (i, error) => {
        if (isGenuine(error)) return reject(error);
        swallow(`${what}[${i}]`, error);
        finish(i, null);
      };
      const go = (i, step, value) => {
        at[i] = step;
        let result;
        try {
          result = call(i, step, value);
        } catch (error) {
          return failed(i, error);
        }
        // Most steps give the promise of a call and nothing else: then the answer comes here without an await.
        if (!host.watch(result, i, gave, failed)) later(i, result);
      };
      const gave = (i, value) => {
        const step = at[i] + 1;
        if (step === steps) finish(i, value);
        else go(i, step, value);
      };
      const later = async (i, result) => {
        let value;
        try {
          value = await result;
        } catch (error) {
          return failed(i, error);
        }
        gave(i, value);
      };
      if (count === 0) resolve(results);
      for (let i = 0; i < count; i++) go(i, 0);
    });

  // ── Hooks ───────────────────────────────────────────────────────────────────────────────────────────────
  let maxItems = 0;

  // The elements of an array, read once.
  const elements = (hook, what, array) => {
    if (!isArray(array)) throw misuse(`${hook}() takes an array of ${what}, got ${kind(array)}`);
    const length = +array.length;
    if (!(length <= maxItems)) {
      throw workflowError({
        code: "ITEM_CAP",
        message:
          `${hook}() takes at most ${maxItems} items (maxItemsPerCall), got ${length}; pass them in several calls`,
      });
    }
    const list = host.nulls(length);
    for (let i = 0; i < length; i++) list[i] = array[i];
    return list;
  };
  const functions = (hook, what, list) => {
    for (let i = 0; i < list.length; i++) {
      if (typeof list[i] === "function") continue;
      throw misuse(`${hook}(): ${what}[${i}] must be a function, got ${kind(list[i])}${
        host.isPromise(list[i]) ? ": write () => agent(…)" : ""}`, `${what}[${i}]`);
    }
    return list;
  };

  // A value as JSON text. What is not plain data is refused; in the header dialect, from a level of the value on, it is
  // taken as JSON.stringify takes it, and the report says so.
  const noLevel = 1e9;
  const toJson = (what, value, level = noLevel) => {
    const json = host.json(value, what, level);
    if (typeof json === "string") return json;
    const { message, path } = json;
    throw misuse(`${what} must be plain data: ${path === "" ? "the value" : path} ${message}`, path);
  };

  const agent = (prompt, options) => {
    let json = "{}";
    try {
      if (typeof prompt !== "string") throw misuse(`agent() takes a prompt string first, got ${kind(prompt)}`);
      // The options themselves are never guessed at; what is in a schema is data.
      if (options !== undefined) json = toJson("agent() options", options, 2);
    } catch (error) {
      return host.refuse(error);
    }
    return host.agent(prompt, json);
  };
  // What a call that failed rejects with. Its stack was written down when the call was made.
  const agentError = (stack, failure) => {
    const error = new NativeError();
    defineProperty(error, "stack", { __proto__: null, value: stack, writable: true, configurable: true });
    return become(error, failure);
  };

  // A workflow that failed by an error of its own is an ordinary error: parallel() and pipeline() make it null.
  const failed = (error, failure) => {
    if (failure.code !== undefined) return become(error, failure);
    const { message } = failure;
    return defineProperty(error, "message", { __proto__: null, value: message, writable: true, configurable: true });
  };

  const workflow = (target, input) => {
    const error = new NativeError();
    return new NativePromise((resolve, reject) => {
      if (typeof target !== "string" && (typeof target !== "object" || target === null)) {
        throw misuse(`workflow() takes a name, {scriptPath} or {script} first, got ${kind(target)}`);
      }
      const json = toJson("workflow() targets", target);
      // JSON.stringify gives nothing for a function, and nothing of a promise: that cannot be meant.
      const isData = typeof input !== "function" && typeof input !== "symbol" && !host.isPromise(input);
      const args = input === undefined ? undefined : toJson("workflow() args", input, isData ? 0 : noLevel);
      host.workflow(json, args, resolve, (failure) => reject(failed(error, failure)));
    });
  };

  const parallel = async (thunks) => {
    const list = functions("parallel", "thunks", elements("parallel", "functions", thunks));
    return await gather("parallel(): thunks", list.length, 1, (i) => (0, list[i])());
  };

  const pipeline = async (items, ...stages) => {
    const list = elements("pipeline", "items", items);
    if (stages.length === 0) throw misuse("pipeline() takes at least one stage function after the items");
    functions("pipeline", "stages", stages);
    return await gather("pipeline(): items", list.length, stages.length, (i, s, value) =>
      (0, stages[s])(s === 0 ? list[i] : value, list[i], i));
  };

  const narrate = (hook, what, tell) => (text) => {
    if (typeof text !== "string") throw misuse(`${hook}() takes a ${what} string, got ${kind(text)}`);
    const failure = tell(text);
    if (failure !== undefined) throw workflowError(failure);
  };
  const phase = narrate("phase", "title", host.phase);
  const log = narrate("log", "message", host.log);

  // Functions and objects for scripts, which cannot change them.
  const fix = (target, members) => {
    for (const name in members) {
      defineProperty(members[name], "name", { value: name });
      freeze(members[name]);
      defineProperty(target, name, { value: members[name], enumerable: true });
    }
  };
  fix(globalThis, { agent, workflow, parallel, pipeline, phase, log });

  const makeBudget = (total) => {
    const spent = () => host.spent();
    const remaining = () => {
      const left = total - host.spent();
      return total === null ? Infinity : left > 0 ? left : 0;
    };
    const budget = {};
    defineProperty(budget, "total", { value: total, enumerable: true });
    fix(budget, { spent, remaining });
    return freeze(budget);
  };
  // Most runs have this one. It is fixed when the run begins.
  defineProperty(globalThis, "budget", { value: makeBudget(null), enumerable: true, configurable: true });

  // Not ECMAScript, or not for scripts.
  for (const name of ["console", "queueMicrotask", "DOMException", "navigator", "performance"]) {
    delete globalThis[name];
  }

  // ── What the Rust half calls ────────────────────────────────────────────────────────────────────────────
  return {
    objectPrototype: Object.prototype,
    // The primitive value in an object around one; any other value as it is.
    unbox: (value) => {
      for (let i = 0; i < unboxers.length; i++) {
        try {
          return apply(unboxers[i], value, []);
        } catch {}
      }
      return value;
    },
    place: () => new NativeError().stack,
    agent,
    agentPromise,
    agentError,
    rejected,
    // What header.js is made with.
    tools: { misuse, workflowError, kind, fix, log },
    // Makes what depends on the run, before any of the script runs. `dialect` adds the globals of the header dialect.
    begin: (maxItemsPerCall, budgetTotal, dialect) => {
      maxItems = maxItemsPerCall;
      if (budgetTotal !== null) defineProperty(globalThis, "budget", { value: makeBudget(budgetTotal) });
      defineProperty(globalThis, "budget", { configurable: false });
      dialect?.();
    },
    // Runs the script's function and reports how it settled, once.
    drive: async (script) => {
      try {
        host.returned(await script());
      } catch (error) {
        const failure = isGenuine(error) ? error : undefined;
        host.threw(describe(error), stackOf(error), failure?.code, failure?.message, failure?.path);
      }
    },
    // What nobody saw of the script: `undefined` if there is nothing, as in most runs.
    looseEnds: () => {
      if (swallowedCount === 0 && apply(size, unhandled, []) === 0) return;
      // If this were an object of the script's, making an error would run its code.
      apply(setLimit, NativeError, [0]);
      const rejections = [];
      apply(mapForEach, unhandled, [(reason) => {
        if (rejections.length < maxRejections) put(rejections, rejections.length, describeQuietly(reason));
      }]);
      return { __proto__: null, rejections, items: swallowedItems, errors: swallowedErrors, count: swallowedCount };
    },
  };
}

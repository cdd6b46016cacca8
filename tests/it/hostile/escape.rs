//! Ways out of the sandbox, and ways to make the hooks lie. What a script can reach is pinned.

use fanfold::ErrorCode::{
    AgentCap, AgentStart, InvalidArgument, MemoryLimit, ResultUnserializable, StackLimit, TimeLimit,
    UnsupportedOption,
};
use serde_json::{Value, json};

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

const HEADER: &str = "export const meta = { name: 'h', description: 'a header' };";

pub(super) fn rows() -> Vec<Row> {
    [reach(), intrinsics(), forgeries(), time(), options()].into_iter().flatten().collect()
}

/// Ways to a global object: each finds ECMAScript's and the hooks, and nothing else.
fn reach() -> Vec<Row> {
    let absent = "['process', 'require', 'module', 'fetch', 'console', 'setTimeout', 'Javy', 'std', 'os', 'bjson',
        'WebAssembly', 'Deno', 'Bun', 'navigator', 'performance', 'queueMicrotask', 'DOMException', 'load', 'print',
        'host', 'global', 'window', 'self', 'readFile', 'gc', 'scriptArgs'].filter((name) => name in found)";
    let ways = [
        ("globalThis", "globalThis"),
        ("a hook's constructor", "agent.constructor.constructor('return globalThis')()"),
        ("an agent's promise", "agent('x').constructor.constructor('return globalThis')()"),
        ("parallel's promise", "parallel([]).constructor.constructor('return globalThis')()"),
        (
            "a workflow error",
            "(await agent('').catch((e) => e)).constructor.constructor('return globalThis')()",
        ),
        (
            "an engine-made error",
            "(() => { try { null.x } catch (e) { return e } })().constructor.constructor('return globalThis')()",
        ),
        ("the asynchronous constructor", "await (async () => {}).constructor('return globalThis')()"),
        ("the generator constructor", "(function* () {}).constructor('return globalThis')().next().value"),
        (
            "the asynchronous generator constructor",
            "(await (async function* () {}).constructor('return globalThis')().next()).value",
        ),
        ("indirect eval", "(0, eval)('this')"),
        ("a sloppy function", "new Function('return this')()"),
        (
            "a function's caller",
            "(() => { try { return agent.caller?.constructor('return this')() } catch { return globalThis } })() ?? globalThis",
        ),
        (
            "a getter's receiver",
            "Object.getOwnPropertyDescriptor(Object.getPrototypeOf(agent('x')), 'constructor').get.constructor('return this')()",
        ),
        ("an evaluated import", "await (0, eval)(\"import('os')\").then((m) => m, () => globalThis)"),
        (
            "an imported file",
            "await new Function(\"return import('/etc/passwd')\")().then((m) => m, () => globalThis)",
        ),
    ];
    ways.map(|(name, way)| row(21, name, format!("const found = {way}; return [{absent}, typeof found.Array]")).gives(json!([[], "function"])))
        .into_iter()
        .chain([
            row(21, "hooks cannot be replaced", "
                const before = [agent, workflow, parallel, pipeline, phase, log, budget, budget.spent];
                for (const name of ['agent', 'workflow', 'parallel', 'pipeline', 'phase', 'log', 'budget']) {
                    try { globalThis[name] = 1 } catch {}
                    try { delete globalThis[name] } catch {}
                    try { Object.defineProperty(globalThis, name, { value: 1 }) } catch {}
                    try { globalThis[name].x = 1 } catch {}
                }
                try { budget.total = 1e9 } catch {}
                try { budget.spent = () => 0 } catch {}
                return [agent, workflow, parallel, pipeline, phase, log, budget, budget.spent]
                    .map((hook, i) => hook === before[i] && hook.x === undefined).concat(budget.total)")
            .gives(json!([true, true, true, true, true, true, true, true, null])),
            row(21, "globals of the header dialect cannot be replaced", format!("{HEADER}
                const before = [console, console.log, setTimeout, clearTimeout];
                for (const name of ['console', 'setTimeout', 'clearTimeout']) {{
                    try {{ globalThis[name] = 1 }} catch {{}}
                    try {{ globalThis[name].x = 1 }} catch {{}}
                }}
                try {{ console.log = 1 }} catch {{}}
                return [console, console.log, setTimeout, clearTimeout].map((f, i) => f === before[i] && f.x === undefined)"))
            .with_header()
            .gives(json!([true, true, true, true])),
            row(21, "an agent's promise shows nothing", "
                const proto = Object.getPrototypeOf(agent('x'));
                return [Reflect.ownKeys(proto), Object.isFrozen(proto), Object.getPrototypeOf(proto) === Promise.prototype]")
            .gives(json!([["constructor"], true, true])),
        ])
        .collect()
}

/// What the hooks stand on is theirs: overwriting it harms the script alone.
fn intrinsics() -> Vec<Row> {
    let use_hooks = "
        const seen = [];
        seen.push(await agent('a', { label: 'l' }));
        seen.push(await parallel([() => agent('b'), () => { throw 1 }]));
        seen.push(await pipeline([1], (n) => agent(`c${n}`)));
        try { await agent('startfail:no') } catch (error) { seen.push(error.code) }
        try { await agent('') } catch (error) { seen.push(error.code) }
        try { await agent('x', { nope: 1 }) } catch (error) { seen.push(error.code) }
        try { await parallel(1) } catch (error) { seen.push(error.code) }
        phase('p'); log('l');
        return seen;";
    let right = json!([
        "echo:a",
        ["echo:b", null],
        ["echo:c1"],
        "AGENT_START",
        "INVALID_ARGUMENT",
        "UNSUPPORTED_OPTION",
        "INVALID_ARGUMENT"
    ]);
    let harmless = [
        ("Promise.prototype.then", "Promise.prototype.then = function () { throw new Error('mine') }"),
        ("Promise.prototype.catch", "Promise.prototype.catch = Promise.prototype.finally = () => { while (true) {} }"),
        ("Promise", "globalThis.Promise = class {}"),
        ("Promise.resolve", "Promise.resolve = Promise.all = Promise.reject = () => { throw 1 }"),
        ("Symbol.species", "Object.defineProperty(Promise, Symbol.species, { get() { throw 1 } })"),
        ("Array.prototype.map", "Array.prototype.map = Array.prototype.forEach = Array.prototype.push_ = () => { throw 1 }"),
        ("JSON", "JSON.stringify = JSON.parse = () => { throw 1 }; globalThis.JSON = null"),
        ("toJSON", "Object.prototype.toJSON = String.prototype.toJSON = () => 'forged'; delete Object.prototype.toJSON"),
        ("Object", "Object.defineProperty = Object.freeze = Object.create = Object.setPrototypeOf = () => { throw 1 }"),
        ("Reflect", "Reflect.apply = () => { throw 1 }; globalThis.Reflect = null"),
        ("call and apply", "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = () => { throw 1 }"),
        ("Set and Map", "Set.prototype.add = Set.prototype.has = Map.prototype.set = WeakSet.prototype.has = () => { throw 1 }"),
        ("WeakSet says yes", "WeakSet.prototype.has = () => true; Set.prototype.delete = () => {}"),
        ("Array.isArray", "Array.isArray = () => true"),
        ("Error", "globalThis.Error = class {}; globalThis.String = () => { throw 1 }"),
        ("Error.prepareStackTrace", "Error.prepareStackTrace = () => 'mine'"),
        ("Error.prepareStackTrace that throws", "Error.prepareStackTrace = () => { throw 1 }"),
        ("Error.prepareStackTrace that freezes", "Error.prepareStackTrace = (error) => { Object.freeze(error); return 'mine' }"),
        ("Error.prepareStackTrace that defines", "Error.prepareStackTrace = (error) => {
            try { Object.defineProperty(error, 'code', { value: 'MINE', configurable: false }) } catch {} }"),
        ("Error.stackTraceLimit", "Error.stackTraceLimit = 0"),
        ("Error.captureStackTrace", "Error.captureStackTrace = () => { throw 1 }"),
        ("properties of every object", "Object.prototype.code = Object.prototype.path = Object.prototype.label = 'mine'"),
        ("a getter on every object", "Object.prototype.get = function () { return 'mine' }"),
        ("a setter on every object", "Object.prototype.set = function () {}"),
        ("descriptors of every object", "Object.prototype.value = 1; Object.prototype.writable = true; Object.prototype.configurable = true"),
        ("accessors on every object", "for (const k of ['code', 'message', 'path', 'name'])
            Object.defineProperty(Object.prototype, k, { get() { return 'mine' }, set() { throw new TypeError('mine') }, configurable: true })"),
        ("then on every object", "Object.prototype.then = undefined"),
        ("elements of every array", "Object.defineProperty(Array.prototype, 7, { get() { throw 1 }, set() { throw 1 } })"),
        ("Symbol.iterator", "Array.prototype[Symbol.iterator] = String.prototype[Symbol.iterator] = () => { throw 1 }"),
        ("Symbol.hasInstance", "Object.defineProperty(Error, Symbol.hasInstance, { value: () => { throw 1 } })"),
        ("Symbol.toPrimitive", "Object.prototype[Symbol.toPrimitive] = undefined; Object.prototype[Symbol.toStringTag] = 'x'"),
        ("toString", "Object.prototype.toString = Error.prototype.toString = () => { throw 1 }"),
        ("a frozen world", "for (const k of Reflect.ownKeys(globalThis)) if (Object(globalThis[k]) === globalThis[k])
            { try { Object.freeze(globalThis[k]); Object.freeze(globalThis[k].prototype) } catch {} }"),
    ];
    let self_harm = [
        (
            "the first element of every array",
            "Object.defineProperty(Array.prototype, 0, { set() {}, configurable: true }); return await parallel([() => agent('a')])",
        ),
        (
            "then of every object",
            "Object.prototype.then = (resolve) => resolve('mine'); return await agent('json:{}', { schema: { type: 'object' } })",
        ),
        ("a prototype that throws", "Object.setPrototypeOf(Object.prototype, null); return await agent('a')"),
    ];
    harmless
        .map(|(name, harm)| row(22, name, format!("{harm}; {use_hooks}")).gives(right.clone()))
        .into_iter()
        .chain(self_harm.map(|(name, script)| row(22, name, script).gives(json!("mine")).gives(json!(["echo:a"])).gives(json!("echo:a")).gives(json!([]))))
        .chain([
            // Every await of the script's own reads it.
            row(22, "the constructor of promises", "Object.defineProperty(Promise.prototype, 'constructor', { get() { throw 1 } }); await parallel([])")
                .throws("1")
                .fails(fanfold::ErrorCode::Deadlock),
            row(22, "the value's prototype", "Object.prototype.toJSON = () => 'forged'; return { a: [1] }").gives(json!({"a": [1]})),
            row(22, "Object.prototype itself is replaced", "globalThis.Object = { prototype: null }; return { a: 1 }").gives(json!({"a": 1})),
            row(22, "counting", "Set.prototype.add = Set.prototype.delete = () => {}; agent('x'); return 1")
                .gives(json!(1))
                .warns("1 agent() call was never awaited"),
            row(22, "the cap", "globalThis.Promise = null; Math.min = () => 0; for (;;) await agent('x')").limit("maxTotalAgents", 5).fails(AgentCap),
        ])
        .collect()
}

/// An error that looks like a workflow error is one of the script's own.
fn forgeries() -> Vec<Row> {
    let forged =
        "const forged = Object.assign(new Error('mine'), { name: 'WorkflowError', code: 'CANCELLED' })";
    let real = "const real = await agent('startfail:no').catch((error) => error)";
    vec![
        row(23, "thrown", format!("{forged}; throw forged")).throws("WorkflowError: mine"),
        row(23, "in a thunk", format!("{forged}; return await parallel([() => {{ throw forged }}, () => 1])")).gives(json!([null, 1])),
        row(23, "in a stage", format!("{forged}; return await pipeline([1], () => {{ throw forged }})")).gives(json!([null])),
        row(23, "by prototype", format!("{real}; throw Object.create(real)")).throws("WorkflowError"),
        row(23, "by prototype in a thunk", format!("{real}; return await parallel([() => {{ throw Object.create(real) }}])")).gives(json!([null])),
        row(23, "by copy", format!("{real}; throw {{ ...real }}")).throws(""),
        row(23, "by proxy", format!("{real}; throw new Proxy(real, {{}})")).throws(""),
        row(23, "by proxy in a thunk", format!("{real}; return await parallel([() => {{ throw new Proxy(real, {{}}) }}])")).gives(json!([null])),
        row(23, "by its constructor", format!("{real}; throw new real.constructor('mine')")).throws("Error: mine"),
        row(23, "by a subclass", "class WorkflowError extends Error { code = 'AGENT_CAP' } throw new WorkflowError('mine')").throws("Error: mine"),
        row(23, "wrapped", format!("{real}; throw new AggregateError([real], 'mine')")).throws("AggregateError: mine"),
        row(23, "wrapped in a thunk", format!("{real}; return await parallel([() => {{ throw new AggregateError([real]) }}])")).gives(json!([null])),
        row(23, "as a cause", format!("{real}; throw new Error('mine', {{ cause: real }})")).throws("Error: mine"),
        row(23, "in a getter of the value", format!("{forged}; return {{ get a() {{ throw forged }} }}")).fails(ResultUnserializable),
        row(23, "in a getter of a thunk list", format!("{forged}; return await parallel(new Proxy([1], {{ get() {{ throw forged }} }}))")).throws("WorkflowError: mine"),
        row(23, "a genuine one, thrown on", format!("{real}; throw real")).fails(AgentStart),
        row(23, "a genuine one, in a thunk", format!("{real}; return await parallel([() => {{ throw real }}])")).fails(AgentStart),
        row(23, "a genuine one, rejected with", format!("{real}; return Promise.reject(real)")).fails(AgentStart),
        row(23, "a genuine one cannot be changed", format!("{real}; try {{ real.code = 'MINE' }} catch {{}} try {{ Object.defineProperty(real, 'code', {{ value: 'MINE' }}) }} catch {{}} return [real.code, real.name, Object.isFrozen(real)]"))
            .gives(json!(["AGENT_START", "WorkflowError", true])),
        row(23, "a code that does not exist", "throw Object.assign(new Error('mine'), { name: 'WorkflowError', code: 'NOPE' })").throws("WorkflowError: mine"),
        row(23, "a message like a stack", "throw new Error('mine\\n    at agent (workflow:99:99)\\nAGENT_CAP: x')").throws("Error: mine"),
        row(23, "nothing", "throw undefined").throws("undefined"),
        row(23, "a symbol", "throw Symbol('x')").throws(""),
        row(23, "what cannot be shown", "throw Object.create(null)").throws(""),
        row(23, "a message of 8 MiB", "throw new Error('x'.repeat(8 << 20))").limit("maxMemoryBytes", 256 << 20).throws("Error: xxx"),
        row(23, "a path of 4 MiB", "return { ['k'.repeat(4 << 20)]: undefined }").limit("maxMemoryBytes", 256 << 20).fails(ResultUnserializable),
    ]
}

fn time() -> Vec<Row> {
    let same = |name, script: &str| row(24, name, script).gives(json!(true));
    vec![
        same(
            "time stands still",
            "const t = Date.now(); for (let i = 0; i < 1e5; i++); await agent('sleep:5'); return Date.now() === t",
        ),
        same(
            "every way to now",
            "const t = Date.now();
            return [new Date().getTime(), +Reflect.construct(Date, []), new Date(0).constructor.now(),
                +new (class extends Date {})(), Date.parse(Date()) + t % 1000].every((n) => n === t)",
        ),
        same(
            "there is one time zone",
            "return new Date(0).getTimezoneOffset() === 0 && new Date(1e12).getHours() === new Date(1e12).getUTCHours()",
        ),
        same(
            "random numbers are in range",
            "for (let i = 0; i < 1e4; i++) { const n = Math.random(); if (!(n >= 0 && n < 1)) return n } return true",
        ),
    ]
}

/// Options that are no plain objects are refused by name, or read once.
fn options() -> Vec<Row> {
    let asked = |name, options: &str| row(25, name, format!("return await agent('a', {options})"));
    vec![
        asked("a proxy", "new Proxy({ label: 'l' }, {})").gives(json!("echo:a")),
        asked("a proxy of nothing", "Proxy.revocable({}, {}).proxy").gives(json!("echo:a")),
        asked("a revoked proxy", "(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy })()").fails(InvalidArgument),
        asked("a proxy that says it is an array", "new Proxy([], {})").fails(InvalidArgument),
        asked("a proxy that throws", "new Proxy({}, { ownKeys() { throw new Error('mine') } })").fails(InvalidArgument).says("mine"),
        asked("a proxy that throws later", "new Proxy({ label: 1 }, { get() { throw new Error('mine') } })").fails(InvalidArgument).says("mine"),
        asked("a proxy whose prototype throws", "new Proxy({}, { getPrototypeOf() { throw new Error('mine') } })").fails(InvalidArgument),
        asked("a proxy that spins", "new Proxy({}, { ownKeys() { while (true) {} } })").fails(TimeLimit),
        asked("a proxy with keys without end", "new Proxy({}, { ownKeys() { return Array.from({ length: 1e7 }, (_, i) => `k${i}`) } })")
            .fails(MemoryLimit),
        asked("a proxy that lies of its keys", "new Proxy({}, { ownKeys() { return ['label'] }, getOwnPropertyDescriptor() { return { value: 'x', enumerable: true, configurable: true } }, get() { return 'l' } })")
            .gives(json!("echo:a")),
        asked("a getter", "{ get label() { return 'l' } }").gives(json!("echo:a")),
        asked("a getter that throws", "{ get label() { throw new Error('mine') } }").fails(InvalidArgument).says("mine").on("label"),
        asked("a getter that throws a workflow error", "{ get label() { parallel(1); phase(1) } }").fails(InvalidArgument),
        asked("a getter that spins", "{ get label() { while (true) {} } }").fails(TimeLimit),
        asked("a getter that recurses", "{ get label() { return this.label } }").fails(StackLimit),
        asked("a getter that asks", "{ get label() { agent('b'); return 'l' } }").gives(json!("echo:a")).warns("1 agent() call was never awaited"),
        asked("__proto__ as a prototype", "{ __proto__: { label: 1 } }").fails(InvalidArgument),
        asked("__proto__ as a key", "{ ['__proto__']: { label: 1 } }").fails(UnsupportedOption).on("__proto__"),
        asked("__proto__ from JSON", "JSON.parse('{\"__proto__\": 1}')").fails(UnsupportedOption),
        asked("then", "{ then() { while (true) {} } }").fails(InvalidArgument).on("then"),
        asked("then, of nothing", "{ then: 1 }").fails(UnsupportedOption).on("then"),
        asked("toJSON", "{ toJSON: 1 }").fails(UnsupportedOption),
        asked("a symbol", "{ [Symbol.iterator]: 1 }").fails(InvalidArgument),
        asked("a class", "new (class { label = 'l' })()").fails(InvalidArgument),
        asked("a map", "new Map([['label', 'l']])").fails(InvalidArgument),
        asked("a function", "() => {}").fails(InvalidArgument),
        asked("an array", "[]").fails(InvalidArgument),
        asked("itself", "(() => { const o = {}; o.label = o; return o })()").fails(InvalidArgument).on("label"),
        asked("undefined in each", "{ label: undefined, nope: undefined }").gives(json!("echo:a")),
        asked("200,000 keys", "(() => { const o = {}; for (let i = 0; i < 2e5; i++) o[`k${i}`] = i; return o })()")
            .limit("maxMemoryBytes", 256 << 20)
            .fails(UnsupportedOption),
        asked("a key of 1 MiB", "{ ['k'.repeat(1 << 20)]: 1 }").fails(UnsupportedOption),
        asked("an option that is not for scripts", "{ maxTurns: 1 }").fails(UnsupportedOption).on("maxTurns").says("timeoutMs"),
        row(25, "a prompt that is an object", "return await agent({ toString() { while (true) {} } })").fails(InvalidArgument),
        row(25, "a title that is an object", "phase({ toString() { while (true) {} } })").fails(InvalidArgument),
        row(25, "a list that lies of its length", "return await parallel(new Proxy([], { get: (t, k) => k === 'length' ? 1e9 : t[k] }))")
            .fails(fanfold::ErrorCode::ItemCap),
        row(25, "a list whose length is an object", "return await parallel(new Proxy([], { get: (t, k) => k === 'length' ? { valueOf() { return 2 } } : () => 1 }))")
            .gives(json!([1, 1]))
            .fails(InvalidArgument),
        row(25, "a list that grows while it is read", "const l = [() => 1]; Object.defineProperty(l, 1, { get() { l.push(() => 2); return () => 3 } }); return await parallel(l)")
            .gives(json!([1, 3])),
    ]
}

async fn nothing_but_ecmascript_can_be_reached() {
    check(reach()).await;
}

async fn overwritten_intrinsics_harm_the_script_alone() {
    check(intrinsics()).await;
}

async fn errors_cannot_be_forged() {
    check(forgeries()).await;
}

async fn time_and_chance_are_given() {
    check(time()).await;
    let script = "return [Date.now(), String(new Date()), Date(), +Reflect.construct(Date, []), Math.random(), Math.random(),
        await agent('x'), Math.random(), [3, 1, 2].sort(() => Math.random() - 0.5), Object.keys(globalThis)]";
    let mut values: Vec<String> = Vec::new();
    for seed in [7, 7, 8] {
        let engine = fanfold::Engine::builder()
            .provider("spawn", fanfold_agents::Scripted::new())
            .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
            .clock(|| 1_700_000_000_123)
            .build()
            .expect("the engine builds");
        let (result, _) =
            support::run(&engine, support::request(script).seed(seed)).await.expect("it starts");
        values.push(result.value.get().to_owned());
    }
    assert!(values[0].starts_with("[1700000000123,"), "{}", values[0]);
    assert_eq!(values[0], values[1], "the same seed gives the same values");
    assert_ne!(values[0], values[2], "another seed gives others");
}

async fn options_are_read_once_or_refused() {
    check(options()).await;
}

/// Everything that is reachable without an import: whatever an update of the engine adds has to be looked at.
async fn the_globals_are_these() {
    let script = "
        const names = Reflect.ownKeys(globalThis).map(String).sort();
        const hooks = [agent, workflow, parallel, pipeline, phase, log, budget.spent, budget.remaining].map((hook) => {
            const own = Reflect.ownKeys(hook).map(String).sort().join();
            return `${hook.name}(${hook.length}): ${own}; ${Object.getPrototypeOf(hook).constructor.name}; ${Object.isFrozen(hook)}`;
        });
        const error = await agent('').catch((e) => e);
        const shown = (o) => Reflect.ownKeys(o).map(String).sort().join();
        return { names, hooks, error: shown(error), promise: shown(agent('x')), promiseIs: shown(Object.getPrototypeOf(agent('x'))) };";
    let (engine, _) = support::engine(fanfold::Limits::default());
    let (result, _) = support::run(&engine, support::request(script)).await.expect("it starts");
    let value: Value = serde_json::from_str(result.value.get()).expect("JSON");

    let header = format!(
        "{HEADER} const names = Reflect.ownKeys(globalThis).map(String).sort(); return names.join(' ')"
    );
    let (result, _) = support::run(&engine, fanfold::StartRequest::new(header)).await.expect("it starts");
    let in_header: String = serde_json::from_str(result.value.get()).expect("a text");
    let more: Vec<&str> =
        in_header.split(' ').filter(|name| !GLOBALS.split_whitespace().any(|known| known == *name)).collect();
    assert_eq!(more, ["URL", "URLSearchParams", "clearTimeout", "console", "setTimeout"]);
    let names: Vec<&str> =
        value["names"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    assert_eq!(names.join(" "), GLOBALS);
    assert_eq!(
        value["hooks"],
        json!([
            "agent(2): length,name; Function; true",
            "workflow(2): length,name; Function; true",
            "parallel(1): length,name; AsyncFunction; true",
            "pipeline(1): length,name; AsyncFunction; true",
            "phase(1): length,name; Function; true",
            "log(1): length,name; Function; true",
            "spent(0): length,name; Function; true",
            "remaining(0): length,name; Function; true",
        ])
    );
    assert_eq!(
        (value["error"].as_str(), value["promise"].as_str(), value["promiseIs"].as_str()),
        (Some("code,message,name,path,stack"), Some(""), Some("constructor"))
    );
}

const GLOBALS: &str = "AggregateError Array ArrayBuffer AsyncDisposableStack BigInt BigInt64Array BigUint64Array Boolean \
    DataView Date DisposableStack Error EvalError FinalizationRegistry Float16Array Float32Array Float64Array Function \
    Infinity Int16Array Int32Array Int8Array InternalError Iterator JSON Map Math NaN Number Object Promise Proxy \
    RangeError ReferenceError Reflect RegExp Set SharedArrayBuffer String SuppressedError Symbol \
    Symbol(Symbol.toStringTag) SyntaxError TypeError URIError Uint16Array Uint32Array Uint8Array Uint8ClampedArray \
    WeakMap WeakRef WeakSet agent args budget decodeURI decodeURIComponent encodeURI encodeURIComponent escape eval globalThis \
    isFinite isNaN log parallel parseFloat parseInt phase pipeline undefined unescape workflow";

on_both_runtimes! {
    21: nothing_but_ecmascript_can_be_reached,
    21: the_globals_are_these,
    22: overwritten_intrinsics_harm_the_script_alone,
    23: errors_cannot_be_forged,
    24: time_and_chance_are_given,
    25: options_are_read_once_or_refused,
}

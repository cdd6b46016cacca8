//! Nesting and recursion, of code and of data: nothing of it takes the host's stack.

use fanfold::ErrorCode::{
    InvalidArgument, MemoryLimit, ResultUnserializable, ScriptParse, StackLimit, TimeLimit, UnsupportedSchema,
};
use serde_json::{Value, json};

use super::on_both_runtimes;
use super::row::{Row, check, row};

pub(super) fn rows() -> Vec<Row> {
    [recursion(), data(), source()].into_iter().flatten().collect()
}

/// Scripts that recurse without end: the sandbox ends, not the process.
fn recursion() -> Vec<Row> {
    let endless = [
        ("a function", "function f() { f() } f()"),
        ("a function that catches", "function f() { try { f() } catch { f() } finally { f() } } f()"),
        ("two functions", "const f = () => g(), g = () => f(); f()"),
        ("after an agent", "await agent('x'); const f = () => f(); f()"),
        ("a getter", "const o = { get a() { return this.a } }; o.a"),
        ("a proxy", "const p = new Proxy({}, { get: (_, k, r) => r[k] }); p.x"),
        ("toString", "const o = { toString() { return `${o}` } }; `${o}`"),
        ("a constructor", "class A { constructor() { new A() } } new A()"),
        ("an asynchronous function", "const f = async () => f(); await f()"),
        ("a generator", "function* f() { yield* f() } [...f()]"),
        ("a thunk", "const f = () => parallel([f]); await f()"),
        ("a comparison", "const f = () => [2, 1].sort(f); f()"),
        ("a replacement", "const f = () => 'x'.replace(/x/, f); f()"),
        ("evaluated code", "globalThis.f = () => (0, eval)('f()'); f()"),
        ("a getter of the value", "return { get a() { const f = () => f(); return f() } }"),
        ("toString of what is thrown", "throw { toString() { return String(this) } }"),
        (
            "a list of itself, as text",
            "const a = []; a.toString = () => a.join(); a.push(a); String(a); (function f() { f() })()",
        ),
    ];
    endless
        .map(|(name, script)| row(8, name, script).fails(StackLimit).says("recurs"))
        .into_iter()
        .chain([row(8, "a function with more and more arguments", "function f(...a) { f(...a, 1) } f()")
            .fails(StackLimit)
            .fails(MemoryLimit)
            .fails(TimeLimit)])
        .chain([row(8, "ordinary recursion", "const f = (n) => n === 0 ? 0 : 1 + f(n - 1); return f(5000)")
            .gives(json!(5000))])
        .collect()
}

/// Data that is nested deeply: it is refused by name, or its depth does not matter.
fn data() -> Vec<Row> {
    let nested = "let v = 1; for (let i = 0; i < 1e5; i++) v = [v];";
    let outcome = |name, script: String| row(8, name, script);
    vec![
        outcome("JSON that is not closed", "JSON.parse('['.repeat(1e5))".into()).fails(StackLimit).throws("SyntaxError"),
        outcome("JSON", "JSON.parse('['.repeat(1e5) + ']'.repeat(1e5)); return 1".into()).fails(StackLimit).gives(json!(1)),
        outcome("JSON of 1,000 levels", "JSON.parse('['.repeat(1000) + ']'.repeat(1000)); return 1".into()).gives(json!(1)),
        outcome("writing JSON", format!("{nested} JSON.stringify(v)")).fails(StackLimit),
        outcome("as text", format!("{nested} String(v)")).fails(StackLimit),
        outcome("flattening", format!("{nested} v.flat(Infinity)")).fails(StackLimit),
        outcome("collected", format!("{nested} v = null; await agent('x'); return 1")).gives(json!(1)),
        outcome("a list of a million", "let l; for (let i = 0; i < 1e6; i++) l = { l }; l = null; return 1".into())
            .limit("maxMemoryBytes", 256 << 20)
            .gives(json!(1)),
        outcome("proxies of proxies", "let p = {}; for (let i = 0; i < 1e5; i++) p = new Proxy(p, {}); p.x".into())
            .fails(StackLimit)
            .fails(MemoryLimit),
        outcome("bound functions", "let f = () => {}; for (let i = 0; i < 1e5; i++) f = f.bind(); f()".into())
            .fails(StackLimit)
            .fails(MemoryLimit),
        outcome("prototypes", "let o = {}; for (let i = 0; i < 1e5; i++) o = Object.create(o); return o.x === undefined".into())
            .fails(MemoryLimit)
            .gives(json!(true)),
        outcome("text joined bit by bit", "let s = ''; for (let i = 0; i < 1e6; i++) s += 'ab'; return s.length".into())
            .fails(MemoryLimit)
            .gives(json!(2_000_000)),
        outcome("text joined from the front", "let s = ''; for (let i = 0; i < 3e5; i++) s = 'ab' + s; return s[0]".into())
            .fails(MemoryLimit)
            .gives(json!("a")),
        outcome("promises that wait for each other", "let p = agent('x'); for (let i = 0; i < 2e4; i++) { const q = p; p = (async () => q)() } return await p".into())
            .fails(MemoryLimit)
            .gives(json!("echo:x")),
        outcome("a regular expression", "new RegExp('('.repeat(1e5) + ')'.repeat(1e5))".into()).fails(StackLimit).throws("SyntaxError"),
        outcome("a regular expression of classes", "new RegExp('['.repeat(1e5) + ']'.repeat(1e5), 'v')".into()).gives(Value::Null),
        outcome("a regular expression that is run", "/^(?:a|b)*$/.test('ab'.repeat(1e4)); return 1".into()).gives(json!(1)),
        outcome("code", "(0, eval)('('.repeat(20000) + '1' + ')'.repeat(20000))".into()).fails(StackLimit).throws("SyntaxError"),
        outcome("an error's causes", "let e; for (let i = 0; i < 1e5; i++) e = new Error('x', { cause: e }); throw e".into())
            .fails(MemoryLimit)
            .throws("Error: x"),
        outcome("the value", format!("{nested} return v")).fails(ResultUnserializable).says("nested deeper than 100"),
        outcome("the value, of objects", "let v = {}; for (let i = 0; i < 1e5; i++) v = { v }; return v".into())
            .fails(ResultUnserializable),
        outcome("the value, as deep as it may be", "let v = 1; for (let i = 0; i < 100; i++) v = [v]; return v".into())
            .gives((0..100).fold(json!(1), |value, _| json!([value]))),
        outcome("options", format!("{nested} await agent('x', {{ label: v }})")).fails(InvalidArgument).says("nested deeper"),
        outcome("a schema", format!("{nested} await agent('x', {{ schema: {{ type: 'object', enum: [v] }} }})"))
            .fails(InvalidArgument)
            .says("nested deeper"),
        outcome("args", "return args".into())
            .args("[".repeat(100_000) + &"]".repeat(100_000))
            .fails(InvalidArgument)
            .says("args")
            .says("100 levels"),
        outcome("args of objects", "return args".into())
            .args("{\"a\":".repeat(100_000) + "1" + &"}".repeat(100_000))
            .fails(InvalidArgument),
        outcome("args that are not closed", "return args".into()).args("[".repeat(1_000_000)).fails(InvalidArgument),
        outcome("args as deep as they may be", "return args".into())
            .args("[".repeat(100) + &"]".repeat(100))
            .gives((0..99).fold(json!([]), |value, _| json!([value]))),
        schema("a schema of itself", json!({"type": "object", "$ref": "#"})).fails(UnsupportedSchema),
        schema("a schema of itself in part", json!({"type": "object", "allOf": [{"$ref": "#"}]})).fails(UnsupportedSchema),
        schema(
            "schemas of each other",
            json!({"type": "object", "$ref": "#/$defs/a", "$defs": {"a": {"anyOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {"$ref": "#/$defs/a"}}}}),
        )
        .fails(UnsupportedSchema),
        schema("a schema of itself in its parts", json!({"type": "object", "properties": {"a": {"$ref": "#"}}}))
            .gives(json!({"a": {}})),
        schema("a schema that doubles", doubling(40)).fails(UnsupportedSchema),
        schema("a long chain of schemas", chain(1000, |next| next)).fails(UnsupportedSchema),
        schema("a chain of schemas", chain(300, |next| next)).gives(json!({"a": {}})),
        schema("a long chain of schemas of parts", chain(1500, |next| json!({"items": next})))
            .fails(UnsupportedSchema)
            .gives(json!({"a": {}})),
        schema("a schema that branches", doubling(4)).gives(json!({"a": {}})),
    ]
}

/// Asks for `{"a": {}}` by a schema.
fn schema(name: &'static str, schema: Value) -> Row {
    row(8, name, "return await agent('json:{\"a\":{}}', { schema: args })").args(schema.to_string())
}

/// A schema of so many definitions, each of which has to do with the next one.
fn chain(length: u32, link: fn(Value) -> Value) -> Value {
    let next = |n: u32| json!({"$ref": format!("#/$defs/{n}")});
    let mut definitions: serde_json::Map<_, _> =
        (0..length).map(|n| (n.to_string(), link(next(n + 1)))).collect();
    definitions.insert(length.to_string(), json!({}));
    json!({"type": "object", "$ref": "#/$defs/0", "$defs": definitions})
}

/// A schema of so many levels, each of which refers to the next one twice.
fn doubling(levels: u32) -> Value {
    let twice = |level: u32| json!({"allOf": [{"$ref": format!("#/$defs/{level}")}, {"$ref": format!("#/$defs/{level}")}]});
    let mut definitions: serde_json::Map<_, _> =
        (1..levels).map(|level| (level.to_string(), twice(level + 1))).collect();
    definitions.insert(levels.to_string(), json!({}));
    json!({"type": "object", "$ref": "#/$defs/1", "$defs": definitions})
}

/// Source text that is nested deeply: compiling it ends in a refusal or in a script that runs.
fn source() -> Vec<Row> {
    let nested = |open: &str, close: &str| open.repeat(20_000) + "1" + &close.repeat(20_000);
    let texts = [
        ("parentheses", nested("(", ")")),
        ("parentheses that are not closed", "(".repeat(400_000)),
        ("arrays", nested("[", "]")),
        ("objects", format!("({})", nested("{a:", "}"))),
        ("blocks", nested("{", "}")),
        ("functions", nested("(()=>", ")")),
        ("arrows", nested("a=>", "")),
        ("asynchronous functions", nested("(async()=>{", "})")),
        ("classes", nested("(class{static{", "}})")),
        ("templates", nested("`${", "}`")),
        ("templates that are not closed", "`${".repeat(150_000)),
        ("regular expressions", format!("/{}/", nested("(", ")"))),
        ("negations", "!".repeat(400_000) + "1"),
        ("signs", "- ".repeat(200_000) + "1"),
        ("awaits", "await ".repeat(80_000) + "1"),
        ("powers", "2**".repeat(150_000) + "1"),
        ("sums", "1+".repeat(200_000) + "1"),
        ("texts", "'a'+".repeat(100_000) + "'a'"),
        ("choices", "1?1:".repeat(100_000) + "1"),
        ("conditions", "if(1)".repeat(80_000) + ";"),
        ("labels", (0..40_000).map(|n| format!("l{n}:")).collect::<String>() + ";"),
        ("members", "args".to_string() + &"?.a".repeat(80_000)),
        ("calls", "(()=>args)".to_string() + &"?.()".repeat(50_000)),
        ("patterns", format!("const {} = []", nested("[", "]").replace('1', "x"))),
        ("commas", "1,".repeat(200_000) + "1"),
        ("assignments", "let a; ".to_string() + &"a=".repeat(200_000) + "1"),
        ("variables", (0..10_000).map(|n| format!("let v{n};")).collect()),
        ("a long name", "var ".to_string() + &"x".repeat(400_000)),
        ("comments", "/*".repeat(200_000)),
        ("a long line that does not parse", "a b ".repeat(100_000)),
        ("many lines that do not parse", "a b\n".repeat(100_000)),
    ];
    let compiled = |(name, text): (&'static str, String)| {
        row(8, name, text).fails(ScriptParse).fails(StackLimit).fails(MemoryLimit).gives(Value::Null)
    };
    texts.into_iter().map(compiled).collect()
}

async fn recursion_without_end_is_stopped() {
    check(recursion()).await;
}

async fn deep_data_is_refused_or_taken() {
    check(data()).await;
}

async fn deep_source_is_refused_or_taken() {
    check(source()).await;
}

on_both_runtimes! {
    8: recursion_without_end_is_stopped,
    8: deep_data_is_refused_or_taken,
    8: deep_source_is_refused_or_taken,
}

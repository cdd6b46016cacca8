//! What is warned of, and what is not.

use std::collections::BTreeMap;
use std::sync::Arc;

use fanfold_types::Meta;

use crate::{AgentType, Script};

/// The warnings for a script: `line:column` and the message's beginning.
fn warnings(body: &str) -> Vec<String> {
    let script = Script::read(body, (!Script::has_header(body)).then(|| Meta::new("n", "d"))).unwrap();
    let reviewer = AgentType::new("reviewer", "");
    let types = BTreeMap::from([("reviewer".to_owned(), Arc::new(reviewer))]);
    let found = script.warnings(Some(&types));
    found
        .iter()
        .map(|warning| {
            let words: Vec<&str> = warning.message.split(' ').take(5).collect();
            format!("{}:{} {}", warning.line.unwrap(), warning.column.unwrap(), words.join(" "))
        })
        .collect()
}

#[test]
fn what_would_be_refused_is_found_with_its_place() {
    for (body, expected) in [
        ("await agent('x', {labl: 'y'})", "1:19 agent() has no option \"labl\""),
        ("await agent(`a ${1}, {}`, {\n  label: 'a', 'tool': [1] })", "2:15 agent() has no option \"tool\""),
        ("agent('x', {tools})", "1:13 agent() has no option \"tools\""),
        ("agent('x', {retries: -1})", "1:22 agent() option \"retries\" must be"),
        ("agent('x', {isolation: 'vm', ...more})", "1:24 agent() option \"isolation\" must be"),
        ("agent('x', {agentType: 'nobody'})", "1:24 nobody defines the agentType \"nobody\":"),
        ("agent('x', {schema: {type: 'array'}})", "1:21 "),
        (
            "const S = {type: 'object', properties: {a: {$ref: 'http://x/y'}}}\nagent('x', {schema: S})",
            "1:11 ",
        ),
        ("const schema = {type: 'string'};\nagent('x', {schema})", "1:16 "),
        ("const r = await fetch('http://x')", "1:17 fetch is not defined in"),
        ("const fs = 1; const p = require('fs')", "1:25 require is not defined in"),
        ("const m = await import('x')", "1:17 import() finds no modules: a"),
        ("console.log(1)", "1:1 console is not defined in"),
        ("setTimeout(() => 1, 2)", "1:1 setTimeout is not defined in"),
        ("log(process.env.HOME)", "1:5 process is not defined in"),
        ("new XMLHttpRequest()", "1:5 XMLHttpRequest is not defined in"),
        ("return paralel([() => agent('x')])", "1:8 paralel is not defined (did"),
        ("const found = 1; return Jsn.stringify(found)", "1:25 Jsn is not defined (did"),
        ("function review(x) { return agent(x) }\nreturn reviews('x')", "2:8 reviews is not defined (did"),
        ("return frobnicate(1)", "1:8 frobnicate is not defined"),
        ("frobnicate(1); frobnicate(2); return args.frobnicate(3)", "1:1 frobnicate is not defined"),
        ("throw new Eror('x')", "1:11 Eror is not defined (did"),
    ] {
        let found = warnings(body);
        assert!(found.len() == 1 && found[0].starts_with(expected), "{body}: {found:?}");
    }
}

#[test]
fn there_are_no_false_alarms() {
    for body in [
        "await agent('x', {label: 'a', _note: 1, tools: undefined, schema: {type: 'object'}, agentType: 'reviewer'})",
        "await agent('x', options); await agent('x'); await agent('x', {...options}); await agent('x', {[key]: 1})",
        "await agent('x', {timeoutMs: 5 * 60 * 1000, retries: deep ? 2 : 1, label: 'a' + i, schema: args.make()})",
        "const helper = args; helper.agent('x', {foo: 1}); function wrap(agent) { return agent('x', {foo: 1}) }",
        "// fetch('x')\nlog('require(\"fs\")' + `fetch(${1})` + /fetch(1)/.source)",
        "const fetch = (x) => agent(x); await fetch('x')",
        "args.map(path => path.length); for (const document of args) log(document.title)",
        "const api = {fetch(x) { return x }, require: (x) => x}; api.fetch(1); api.require(2)",
        "args.map(({path}) => path.trim()).concat(args.map((path, i) => path.trim()))",
        "if (typeof process !== 'undefined') log('x')",
        "let S = {type: 'array'}; S = {}; agent('x', {schema: S})",
        "const S = {type: 'object'}; { const S = {type: 'array'}; agent('x', {schema: S}) }",
        "export const meta = {name: 'n', description: 'd'}\nconsole.log(1); setTimeout(() => 1, 2)",
        "agent('x', {schema: {type: 'object'}}, {foo: 1})",
        "function f(x) { return x } agent('x', f({foo: 1}))",
        "let a, b\nb = (x) => x; return [a?.b, b(1)]",
        "class A { run() { return this.go() } static go() {} *all() {} async x() {} get y() { return super.y() } }\nA.go()",
        "function* all() { yield 1 } const {a, b: [c], ...d} = args; for (const e of all()) c(e), d.x(a)",
        "try { args.x() } catch (e) { log(e.message) } try { } catch { } return args.map(async (f) => await f(1))",
        "outer: for (const [k, v] of Object.entries(args)) { if (k.x(v)) continue outer }",
        "const o = {m() { return n() }, async p() {}, get q() { return 1 }}; function n() {} return new.target",
        "return Math.max(1, parseInt('1')) + new Map().size + Symbol.iterator.toString() + budget.spent()",
        "if (x) { } x = x.y(x)",
        "if (args instanceof (Object)) { debugger }",
        "return hasOwnProperty.call(args, 'a') + toString() + constructor.name",
        "globalThis.x ??= {a: 1}; for (globalThis.k of [1]) log(k.toString()); return x.a",
        "Object.defineProperty(this, 'help', {value: (x) => x}); return help(1)",
        "if (typeof process !== 'undefined' && process.env) log('x'); return globalThis.fetch ? fetch('x') : 2",
        "let i = 0, found\nfound ??= {a: 3}; return found.a + i",
        "let i = 0, found; for (found of args) log(found.a())",
        "const \\u{61}b = () => 1; return ab()",
        "globalThis.helper = (x) => x; return helper(1)",
        "globalThis['helper'] = (x) => x; return helper(1)",
        "Object.assign(globalThis, args); return helper(1)",
        "(0, eval)('var helper = (x) => x'); return helper(1)",
    ] {
        assert_eq!(warnings(body), [""; 0], "{body}");
    }
}

#[test]
fn the_examples_are_clean() {
    for script in ["migrate", "research", "review", "triage"] {
        let path = format!("{}/../../examples/{script}.js", env!("CARGO_MANIFEST_DIR"));
        assert_eq!(warnings(&std::fs::read_to_string(path).unwrap()), [""; 0], "{script}");
    }
}

#[test]
fn what_the_schema_of_args_has_without_effect_is_told_with_its_place() {
    let text = "export const meta = {\n  name: 'n',\n  description: 'd',\n  args: { type: 'object', properties: { n: { \
                type: 'integer', maxlen: 3 } } },\n}\n";
    let warnings = Script::read(text, None).unwrap().warnings(None);
    let [warning] = warnings.as_slice() else { panic!("{warnings:?}") };
    assert_eq!((warning.path.as_deref(), warning.line), (Some("meta.args.properties.n.maxlen"), Some(4)));
    assert_eq!(warning.code, None);
}

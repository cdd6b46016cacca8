//! Text: not well-formed, cut anywhere, in every dress that a script's source can wear.

use fanfold::ErrorCode::{MetaInvalid, ScriptParse};
use fanfold::{EventKind, RunResult};
use serde_json::{Value, json};

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

pub(super) fn rows() -> Vec<Row> {
    [ill_formed(), dresses(), headers(), places(), wrappers()].into_iter().flatten().collect()
}

fn ill_formed() -> Vec<Row> {
    let strange = "\u{0}\u{1}\u{7f}\u{2028}\u{2029}\u{feff}\u{202e}\u{200d}\u{fffe}\u{ffff}\u{10ffff}";
    let mut rows: Vec<Row> = [
        ("a high surrogate", r#"return "a\ud800b""#, json!("a\u{fffd}b")),
        ("a low surrogate", r#"return "\udfff""#, json!("\u{fffd}")),
        ("surrogates the wrong way round", r#"return "\udc00\ud800""#, json!("\u{fffd}\u{fffd}")),
        ("a surrogate before a pair", r#"return "\ud83d\ud83c\udf0d""#, json!("\u{fffd}🌍")),
        ("a pair from two halves", r#"return "\ud83c" + "\udf0d""#, json!("🌍")),
        ("half of a prompt", "return await agent('🌍'.slice(1))", json!("echo:\u{fffd}")),
        ("half of a label", "return await agent('x', { label: '🌍'.slice(0, 1) })", json!("echo:x")),
        ("half of a key", r#"return { "\udfff": 1 }"#, json!({"\u{fffd}": 1})),
        ("half of a key of options", r#"try { await agent("x", { "\udfff": 1 }) } catch (error) { return error.path }"#, json!("\u{fffd}")),
        ("half in an answer", r#"return await agent('json:{"a":"\\ud83d"}', { schema: { type: "object" } })"#, json!({"a": "\u{fffd}"})),
        ("half of a log", r#"log("\ud83d"); phase("\ud83d"); return 1"#, json!(1)),
        ("all of them", r#"let s = ""; for (let i = 0xd800; i < 0xe000; i++) s += String.fromCharCode(i, 120); return s.length"#, json!(4096)),
        ("all of them, returned", r#"let s = ""; for (let i = 0; i < 1000; i++) s += "\ud800x"; return s"#, json!("\u{fffd}x".repeat(1000))),
    ]
    .map(|(name, script, value)| row(26, name, script).gives(value))
    .into();
    rows.push(row(26, "an error's message", r#"throw new Error("a\ud800b")"#).throws("Error: a\u{fffd}b"));
    rows.push(row(26, "what is thrown", r#"throw "\ud800""#).throws("\u{fffd}"));
    rows.push(
        row(26, "strange but well-formed", "return [args, await agent(args)]")
            .args(json!(strange).to_string())
            .gives(json!([strange, format!("echo:{strange}")])),
    );
    rows.push(
        row(26, "strange and escaped", r#"return "\u0000\u2028\ufeff\u202e""#)
            .gives(json!("\u{0}\u{2028}\u{feff}\u{202e}")),
    );
    rows.push(
        row(26, "strange in the source", "return '\u{1}\u{2028}\u{feff}\u{202e}'")
            .gives(json!("\u{1}\u{2028}\u{feff}\u{202e}")),
    );
    rows.push(row(26, "NUL in the source", "return 'a\0b'").gives(json!("a\0b")));
    rows.push(row(26, "NUL behind the source", "return 1\0").fails(ScriptParse));
    rows.push(
        row(26, "strange keys", "return args")
            .args(json!({strange: 1, "__proto__": 2, "": 3}).to_string())
            .gives(json!({strange: 1, "__proto__": 2, "": 3})),
    );
    rows
}

/// How a script's text may begin, end and look.
fn dresses() -> Vec<Row> {
    let one = |name, script: &str| row(28, name, script).gives(json!(1));
    vec![
        one("a byte order mark", "\u{feff}return 1"),
        one("CRLF", "const n = 1;\r\nreturn n;\r\n"),
        one("CR", "const n = 1\rreturn n\r"),
        one("a line separator", "const n = 1\u{2028}return n"),
        one("a hashbang", "#!/usr/bin/env node\nreturn 1"),
        one("a byte order mark and a hashbang", "\u{feff}#!/usr/bin/env node\r\nreturn 1"),
        one("use strict", "'use strict'\nreturn 1"),
        one("use strict, with a semicolon and a comment", "\"use strict\"; // yes\nreturn 1"),
        one("a trailing comment", "return 1 // the end"),
        one("a trailing comment block", "return 1 /* the end */"),
        one("a source map", "return 1\n//# sourceMappingURL=data:application/json;base64,e30="),
        one("an HTML comment", "<!-- hidden\nreturn 1\n--> the end"),
        one("an HTML comment at the end", "return 1\n<!-- the end"),
        one("names in Chinese", "const 计数 = 1; return 计数"),
        one("names with escapes", "const \\u{61}b = 1; return ab"),
        one("names outside the first plane", "const 𝒳 = 1; return 𝒳"),
        one("a header in a template", "const t = `export const meta = {`; return 1"),
        one(
            "a header in a template on a line of its own",
            "const t = `\nexport const meta = { name: 'x' }\n`; return 1",
        ),
        one("a header in a comment", "/*\nexport const meta = 1\n*/ return 1"),
        one("a non-breaking space", "return\u{a0}1"),
        one("no semicolons", "let n = 0\n;[1].forEach((m) => { n = m })\nreturn n"),
        one("a label", "out: for (;;) { break out } return 1"),
        one(
            "a resource of the script",
            "using r = { [Symbol.dispose]() {} }; if (args) { return 2 } return 1",
        ),
        one("a return for the end", "if (args) return 2; return f(); function f() { return 1 } return"),
        one("two functions of one name", "function f() { return 2 } function f() { return 1 } return f()"),
        one("a function and a variable of one name", "var f = 1; function f() {} return f"),
        one(
            "a closure that outlives the script's block",
            "let n = 0; const f = () => ++n; { let n = 5 } return f()",
        ),
        one("an early return", "return 1; while (true) {}"),
        row(28, "nothing", "").gives(Value::Null),
        row(28, "white space", " \n\t ").gives(Value::Null),
        row(28, "a comment", "// nothing").gives(Value::Null),
        row(28, "a comment that is not closed", "return 1 /*").fails(ScriptParse),
        row(28, "a template that is not closed", "return `1").fails(ScriptParse),
        row(28, "a fence", "```js\nreturn 1\n```").fails(ScriptParse).says("fence"),
        row(28, "sloppy code", "with ({}) {} return 1").fails(ScriptParse),
        row(28, "an octal number", "return 010").fails(ScriptParse),
    ]
}

fn headers() -> Vec<Row> {
    let header = |name, script: &str| row(29, name, script).with_header();
    let refused = |name, script: &str, line, column| header(name, script).fails(MetaInvalid).at(line, column);
    vec![
        header("comments before it", "// @ts-check\n/* licence */\nexport const meta = {name:'a', description: \"b\",} ;\nreturn 1").gives(json!(1)),
        header("everything before it", "\u{feff}#!/usr/bin/env node\r\n'use strict';\r\n/**/ export const meta = { 'name': `a`, description: 'b' + 'c', }\r\nreturn 1").gives(json!(1)),
        header("phases", "export const meta = {name:'a',description:'b',phases:[{title:'t'},]}\nreturn 1").gives(json!(1)),
        header("a comment in it", "export const meta = {/* { */name:'a',// }\ndescription:'b'}; return 1").gives(json!(1)),
        refused("a variable", "export const meta = {name: M}", 1, 28),
        refused("a spread", "\nexport const meta = {...x}", 2, 22),
        refused("a template that computes", "export const meta = {name:`a${1}`}", 1, 29),
        refused("a getter", "export const meta = {get phases(){while(1){}}}", 1, 22),
        refused("a function that is called", "export const meta = {name:(()=>{while(true){}})()}", 1, 27),
        refused("a method", "export const meta = {name(){}}", 1, 22),
        refused("a computed key", "export const meta = {['name']:'a'}", 1, 22),
        refused("a shorthand", "export const meta = {name}", 1, 22),
        refused("a call", "export const meta = JSON.parse('{}')", 1, 21),
        refused("freezing", "export const meta = Object.freeze({name:'a',description:'b'})", 1, 21),
        refused("a member behind it", "export const meta = {name:'a',description:'b'}.x", 1, 47),
        refused("a comma behind it", "export const meta = {name:'a',description:'b'}, y = 1", 1, 47),
        refused("a regular expression", "export const meta = {name:/a/}", 1, 27),
        refused("a number", "export const meta = 1", 1, 21),
        refused("a prototype", "export const meta = {__proto__:{},name:'a',description:'b'}", 1, 22),
        refused("let", "export let meta = {name:'a',description:'b'}", 1, 1),
        header("a type", "export const meta: Meta = {name:'a',description:'b'}").fails(MetaInvalid).says("TypeScript"),
        header("an unknown field", "export const meta = {name:'a',description:'b',nope:1}").gives(Value::Null).warns("meta.nope is not a known field"),
        header("no name", "export const meta = {description:'b'}").fails(MetaInvalid).says("name"),
        header("no header", "return 1").fails(MetaInvalid).says("export const meta"),
        header("nested without end", &("export const meta = ".to_string() + &"[".repeat(100_000))).fails(MetaInvalid).says("deep"),
        header("not closed", "export const meta = {name:'a'").fails(MetaInvalid),
        header("a long one", &format!("export const meta = {{name:'a',description:'{}'}}; return 1", "x".repeat(400_000))).gives(json!(1)),
    ]
}

/// Errors are placed in the author's text, in its own lines and in characters.
fn places() -> Vec<Row> {
    let thrown = |name, script: &str, line, column| row(30, name, script).throws("").at(line, column);
    vec![
        thrown(
            "line 7 of a CRLF file with emoji before it",
            "// 🌍🌍\r\n\r\n\r\n\r\n\r\n\r\n/* 🌍 */ null.x",
            7,
            14,
        ),
        thrown("line 1", "throw new Error('x')", 1, 11),
        thrown("behind a byte order mark", "\u{feff}throw new Error('x')", 1, 11),
        thrown("behind a hashbang", "#!x\nthrow new Error('x')", 2, 11),
        thrown("behind CR", "\r\rthrow new Error('x')", 3, 11),
        thrown("behind wide names", "const 计数 = '🌍'; throw new Error('x')", 1, 27),
        row(
            30,
            "behind a header",
            "export const meta = {\n name: 'a', description: '🌍' }; throw new Error('x')",
        )
        .with_header()
        .throws("Error: x")
        .at(2, 43),
        thrown("in a function", "function f() {\n  throw new Error('x')\n}\nf()", 2, 13),
        thrown("in a thunk's agent", "await agent('x')\n\n  null.x", 3, 8),
        thrown("a property behind calls", "const o = null;\nconst n = Math.abs(1);\n\nreturn n + o.x", 4, 14),
        row(30, "a hook's refusal", "\n  await agent(1)").fails(fanfold::ErrorCode::InvalidArgument).at(2, 9),
        row(30, "a syntax error", "// 🌍\r\nconst x = ;").fails(ScriptParse).at(2, 11),
        row(30, "a syntax error behind emoji", "const s = '🌍🌍'; const = 1").fails(ScriptParse).at(1, 23),
        row(30, "a type", "const n: number = 1").fails(ScriptParse).says("TypeScript").at(1, 8),
        row(30, "an interface", "interface X {}").fails(ScriptParse).says("TypeScript"),
        row(30, "as const", "const a = [1] as const").fails(ScriptParse).says("TypeScript"),
        row(30, "no TypeScript", "const interface_ = { as: 1 }; const x = ; ")
            .fails(ScriptParse)
            .says("unexpected"),
        row(30, "import", "import fs from 'fs'").fails(ScriptParse).says("import"),
        row(30, "require", "const fs = require('fs')").throws("ReferenceError").says("no modules"),
        thrown("behind a statement", "const a = 1;\n\nconst b = a + nope;", 3, 15),
        thrown("an argument", "await agent('x');\nawait agent(\n  nope)", 3, 3),
    ]
}

/// Text that tries to end the function it is put into.
fn wrappers() -> Vec<Row> {
    let texts = [
        ("an arrow", "}); return 1; (() => {"),
        ("an asynchronous arrow", "}); return 1; (async () => {"),
        ("a call", "})(); (async () => {"),
        ("a function", "}); log('out'); (async function () {"),
        ("a comma", "}, async () => {"),
        ("a comma and a function", "}, function () {"),
        ("a method", "} async run2() {"),
        ("a static block", "} static {"),
        ("a method and a comma", "} , async run2() {"),
        ("a field", "}\nx = async () => {"),
        ("a class", "} }); (class { async run() {"),
        ("a comment over the end", "/*"),
        ("a comment over the end of both", "}) /*"),
        ("a line comment over the end", "}); //"),
        ("a template over the end", "`"),
        ("a closing brace", "}"),
        ("an opening brace", "{"),
        ("a block of the same kind", "} }, async () => { x: {"),
        ("a block and a function", "} }); (async () => { x: {"),
        ("the end of a block", "}; {"),
        ("a closing parenthesis", ")"),
        ("an HTML comment", "}); <!--"),
        ("an HTML comment that ends", "}\n--> x\n{"),
        ("a line separator", "//\u{2028}}); ({"),
        ("a hashbang", "return 1\n#!x"),
        ("a regular expression", "} / 1; /{"),
        ("a default of an argument", "}, (a = {"),
        ("NUL", "\0}); (() => {"),
        ("an export", "export default 1"),
    ];
    // What the wrapper's end must not belong to. Braces before it have the text put into a block.
    let begun = [
        "if (x)",
        "if (x) 1; else",
        "for (;;)",
        "x:",
        "let x; x =",
        "args.",
        "args?.",
        "class A { static",
        "break",
        "continue",
        "switch (1) { case 1:",
        "do",
        "return (",
        "throw",
        "typeof",
        "class A extends",
        "async () =>",
        "const x = 1,",
        "super.x",
        "return new.target",
        "yield 1",
    ];
    let rows = texts.iter().map(|(name, text)| row(31, name, *text).fails(ScriptParse));
    let begun = begun.iter().flat_map(|text| {
        [row(31, text, *text).fails(ScriptParse), row(31, text, format!("{{}} {text}")).fails(ScriptParse)]
    });
    rows.chain(begun).collect()
}

async fn text_that_is_not_well_formed_becomes_so() {
    check(ill_formed()).await;
}

async fn scripts_wear_any_dress() {
    check(dresses()).await;
}

async fn headers_are_read_and_not_run() {
    check(headers()).await;
}

async fn errors_are_placed_in_the_authors_text() {
    check(places()).await;
}

async fn no_text_leaves_its_wrapper() {
    check(wrappers()).await;
}

/// Labels and results are cut between characters, wherever the wide ones stand.
async fn text_is_cut_between_characters() {
    let (engine, _) = support::engine(fanfold::Limits::default());
    for wide in ["é", "🌍", "计", "👩‍👩‍👧"] {
        for before in 40..=50 {
            let prompt = "x".repeat(before) + wide + &"y".repeat(10);
            let request = support::request("return await agent(args)").args(prompt.clone().into());
            let (result, events) = support::run(&engine, request).await.expect("it starts");
            assert_eq!(result.value.get(), json!(format!("echo:{prompt}")).to_string());
            let label = events.iter().find_map(|event| match &event.kind {
                EventKind::AgentStart { agent } => Some(agent.label.clone()),
                _ => None,
            });
            let whole: Vec<char> = prompt.chars().collect();
            let expected: String = match whole.len() {
                ..=48 => prompt,
                _ => whole[..47].iter().chain(['…'].iter()).collect(),
            };
            assert_eq!(label.as_deref(), Some(expected.as_str()));
            cut_everywhere(&result);
        }
    }
}

/// A result as text, cut at every length.
fn cut_everywhere(result: &RunResult) {
    let json = result.value.get();
    for most in 0..json.chars().count() {
        let text = fanfold::text::render("test", result, most);
        let kept: String = json.chars().take(most).collect();
        let omitted = json.chars().count() - most;
        assert!(
            text.ends_with(&format!("\n{kept}\n… [truncated: {omitted} more characters]")),
            "{most}: {text}"
        );
    }
}

on_both_runtimes! {
    26: text_that_is_not_well_formed_becomes_so,
    27: text_is_cut_between_characters,
    28: scripts_wear_any_dress,
    29: headers_are_read_and_not_run,
    30: errors_are_placed_in_the_authors_text,
    31: no_text_leaves_its_wrapper,
}

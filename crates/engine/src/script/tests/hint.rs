//! What becomes of the syntax errors of QuickJS. Messages and lines in the tables are what it reports.

use fanfold_types::ErrorCode;

use super::body;
use crate::script::Script;

/// Text, QuickJS's message and line, then the place and words of ours.
type Row = (&'static str, &'static str, u32, (u32, u32), &'static str);

fn check(rows: &[Row]) {
    for (text, message, line, place, words) in rows {
        let error = body(text).syntax_error(message, *line);
        assert_eq!(error.code, Some(ErrorCode::ScriptParse), "{text}");
        assert!(error.message.contains(words), "{text}: {error}");
        assert_eq!(error.line.zip(error.column), Some(*place), "{text}: {error}");
    }
}

#[test]
fn typescript_is_named_where_it_stands() {
    check(&[
        (
            "const n: number = 1; return n",
            "missing initializer for variable",
            1,
            (1, 8),
            "the type of a variable",
        ),
        ("let x!: number", "expecting ';'", 1, (1, 7), "the type of a variable"),
        ("const {a, b}: Props = x", "variable name expected", 1, (1, 13), "the type of a variable"),
        ("\r\n🎉('🎉'); let é: string[] = []", "expecting ';'", 2, (2, 14), "the type of a variable"),
        ("const x: 'a' | 'b' = y", "missing initializer for variable", 1, (1, 8), "the type of a variable"),
        (
            "interface X { a: string }",
            "unexpected token in expression: 'interface'",
            1,
            (1, 1),
            "an interface",
        ),
        ("type X = string | number", "expecting ';'", 1, (1, 1), "a type"),
        ("export type X = 1", "unsupported keyword: export", 1, (1, 8), "a type"),
        ("enum E { A, B }", "unsupported keyword: enum", 1, (1, 1), "an enum"),
        ("declare const x: number", "expecting ';'", 1, (1, 1), "a `declare`"),
        ("namespace X {}", "expecting ';'", 1, (1, 1), "a namespace"),
        ("abstract class A {}", "expecting ';'", 1, (1, 1), "an abstract class"),
        ("const a = [1] as const", "expecting ';'", 1, (1, 15), "an `as`"),
        ("return Symbol.for('a') as any", "expecting ';'", 1, (1, 24), "an `as`"),
        ("(a as Foo).x", "Unexpected identifier 'as'", 1, (1, 4), "an `as`"),
        ("const a = {} satisfies Foo", "expecting ';'", 1, (1, 14), "a `satisfies`"),
        ("function f(a: string) {}", "Unexpected token ':'", 1, (1, 13), "the type of a parameter"),
        ("function f(this: Foo) {}", "missing formal parameter", 1, (1, 16), "the type of a parameter"),
        (
            "const f = async (x: Foo) => { return 1 }",
            "Unexpected token ':'",
            1,
            (1, 19),
            "the type of a parameter",
        ),
        ("items.map(({a, b}: Item) => a)", "Unexpected token ':'", 1, (1, 18), "the type of a parameter"),
        ("function f(a, ...b: string[]) {}", "Unexpected token ':'", 1, (1, 19), "the type of a parameter"),
        ("try { } catch (e: any) { }", "Unexpected token ':'", 1, (1, 17), "the type of a parameter"),
        ("function f(x?: number) {}", "Unexpected token '?'", 1, (1, 13), "an optional parameter"),
        ("const f = (): Foo => a", "Unexpected token ':'", 1, (1, 13), "the type of a result"),
        ("async function f(): Promise<void> {}", "Unexpected token ':'", 1, (1, 19), "the type of a result"),
        ("function f<T>(a) {}", "Unexpected token '<'", 1, (1, 11), "type parameters"),
        ("const f = <T>(a) => a", "unexpected token in expression: '<'", 1, (1, 11), "type parameters"),
        (
            "const m = new Map<string, number>()",
            "missing initializer for variable",
            1,
            (1, 18),
            "type arguments",
        ),
        ("class A { private x = 1 }", "expecting ';'", 1, (1, 11), "a modifier"),
        ("class A { x: number }", "expecting ';'", 1, (1, 12), "the type of a field"),
        ("class A { m(x): number { } }", "expecting '{'", 1, (1, 15), "the type of a result"),
        ("class A implements B {}", "Unexpected token 'implements'", 1, (1, 9), "an `implements`"),
        ("const a = b!.c", "expecting ';'", 1, (1, 12), "a non-null `!`"),
    ]);
}

#[test]
fn nothing_else_is_called_typescript() {
    // What is no error stands on the line of one.
    let lines = [
        "const x = a ? b : c; }",
        "const x = a ? (b) : c => d; }",
        "f(a ? b : c, d ? e : f); }",
        "label: for (;;) { break label } }",
        "switch (a) { case f(x): { break } case b: default: { g() } } }",
        "const o = {a: b, 'c': d, [e]: f, g(h) { return h }, if: i, class: {x: y}, get: z}; }",
        "const {a: b, c: {d: e = f}} = g; }",
        "type = as; as = type; interface_ = {as, type, of: as, satisfies: as}; }",
        "for (const as of types) { as.as = as } }",
        "async as => as; const f = async (as) => as; function as(as) {} }",
        "if (a < b && c > (d)) { if (!e) return !f; if (g) !h } }",
        "a = b < c, d > e; x = y<z; f(a < b, c) }",
        "agent('x', label: 'y') }",
        "agent('x', label: y) }",
        "const a = b /* : number */ // as const\n }",
        "const s = `a: ${b} as c: ${d ? e : f}`; }",
        "class A { static x = 1; get y() { return 1 } async *z() {} private() {} readonly = 1; #p = 2 } }",
        "a = {b: (c) => d, e: function (f) { return f }, g: async h => h} }",
        "const f = (a = b ? c : d, {e: g} = {}) => a; }",
        "x = y ? function (a) { return a } : (b) => b; }",
        "*a<b }",
    ];
    for text in lines {
        let line = u32::try_from(text.lines().count()).unwrap();
        let error = body(text).syntax_error("Unexpected token '}'", line);
        assert!(!error.message.contains("TypeScript"), "{text}: {error}");
    }
}

#[test]
fn modules_are_refused_with_the_reason() {
    check(&[
        ("import fs from \"fs\"", "Unexpected identifier 'fs'", 1, (1, 1), "no modules"),
        ("x()\n import { a } from 'b'", "Unexpected token '{'", 2, (2, 2), "no modules"),
        ("import * as a from 'b'", "Unexpected token '*'", 1, (1, 1), "no modules"),
        ("import 'b'", "Unexpected string", 1, (1, 1), "no modules"),
        ("import type {A} from 'b'", "Unexpected identifier 'type'", 1, (1, 1), "no modules"),
        ("return 1\nexport const x = 1", "unsupported keyword: export", 2, (2, 1), "remove `export`"),
        ("export default 1", "unsupported keyword: export", 1, (1, 1), "remove `export`"),
        (
            "f()\nexport const meta = {}",
            "unsupported keyword: export",
            2,
            (2, 1),
            "must be the first statement",
        ),
        ("import('a') b", "expecting ';'", 1, (1, 13), "unexpected `b`"),
    ]);
}

#[test]
fn a_script_cannot_close_what_encloses_it() {
    check(&[
        ("}); return 1; (() => {", "return not in a function", 1, (1, 1), "a closing brace too many"),
        (
            "} }); return 1; (class { async run() {",
            "Unexpected token '}'",
            1,
            (1, 1),
            "a closing brace too many",
        ),
        ("return 1\n}", "Unexpected token '}'", 3, (2, 1), "a closing brace too many"),
        ("if (a) { } }\nreturn 1", "Unexpected token 'return'", 2, (1, 12), "a closing brace too many"),
        (
            "`${1}`\n/* { */ }); (async () => { `",
            "Unexpected token ')'",
            2,
            (2, 9),
            "a closing brace too many",
        ),
        ("f(1))", "expecting ';'", 1, (1, 5), "this `)` closes nothing"),
    ]);
}

#[test]
fn what_is_still_open_is_named() {
    check(&[
        ("return {", "expecting ';'", 2, (1, 9), "the `{` on line 1, column 8 is never closed"),
        (
            "function f() {\n return 1\n\nreturn f()\n\n",
            "unexpected token in expression: ')'",
            7,
            (4, 11),
            "the `{` on line 1, column 14",
        ),
        (
            "phase('a'\nlog('b')",
            "Unexpected identifier 'log'",
            2,
            (2, 1),
            "unexpected `log`; the `(` on line 1, column 6",
        ),
        (
            "const a = {\n  y: [1, 2\n};",
            "Unexpected token '}'",
            3,
            (3, 1),
            "the `[` on line 2, column 6 is not closed",
        ),
        ("agent(`a ${b`)", "unexpected end of string", 2, (1, 13), "this template literal is not closed"),
        (
            "agent(`a ${b",
            "unexpected end of string",
            2,
            (1, 13),
            "the `${` on line 1, column 10 is never closed",
        ),
        ("/* abc\n", "unexpected end of comment", 3, (1, 1), "this comment is not closed"),
        ("x = 'abc\ny", "unexpected end of string", 1, (1, 5), "this string is not closed"),
        (
            "x = /abc\ny",
            "unexpected line terminator in regexp",
            1,
            (1, 5),
            "this regular expression is not closed",
        ),
        (
            "return 'a' + ",
            "unexpected token in expression: '}'",
            2,
            (1, 13),
            "its last statement is not finished",
        ),
        ("const x", "missing initializer for variable", 2, (1, 8), "missing initializer"),
    ]);
}

#[test]
fn the_column_is_found_from_the_message() {
    check(&[
        ("return 1 +* 2", "unexpected token in expression: '*'", 1, (1, 11), "unexpected `*`"),
        ("a * b * * c", "unexpected token in expression: '*'", 1, (1, 9), "unexpected `*`"),
        ("x = '🎉🎉'; x y", "expecting ';'", 1, (1, 13), "unexpected `y`"),
        ("const x = a ? b : c: d", "expecting ';'", 1, (1, 20), "unexpected `:`"),
        ("'a' 'b'", "expecting ';'", 1, (1, 5), "unexpected string"),
        ("const a = 1; const b b", "missing initializer for variable", 1, (1, 22), "missing initializer"),
        ("a = “b”", "unexpected character", 1, (1, 5), "typographic quote"),
        ("agent('don't')", "Unexpected identifier 't'", 1, (1, 12), "write \\'"),
        ("agent(`a `b` c`)", "Unexpected identifier 'b'", 1, (1, 11), "write \\`"),
        ("f(1, 010)", "Octal literals are not allowed in strict mode", 1, (1, 6), "Octal"),
        ("f('a', '\\xZZ')", "Invalid hexadecimal escape sequence", 1, (1, 8), "Invalid hexadecimal"),
        ("let a, 1", "variable name expected", 1, (1, 8), "variable name expected"),
        ("a.b.+c", "expecting field name", 1, (1, 5), "expecting field name"),
        ("f({a: 1,, b: 2})", "invalid property name", 1, (1, 9), "invalid property name"),
        ("x = \0", "unexpected token in expression: ''", 1, (1, 5), "unexpected `\\u{0}`"),
        // Where nothing is found, the line begins.
        ("\n  /(/", "expecting ')'", 2, (2, 3), "expecting ')'"),
        ("\n\n", "what nobody knows", 2, (2, 1), "what nobody knows"),
        ("a", "line zero", 0, (1, 1), "line zero"),
        ("a", "far away", u32::MAX, (1, 2), "far away"),
    ]);
}

#[test]
fn an_await_outside_async_functions_is_explained() {
    let sync = "write `async` before the function";
    check(&[
        ("items.map(x => await f(x))", "Unexpected identifier 'f'", 1, (1, 16), sync),
        ("items.map(x => {\n  const y = await f(x)\n})", "expecting ';'", 2, (2, 13), sync),
        ("function g() { return await f() }", "expecting ';'", 1, (1, 23), sync),
        ("const g = x => [1, await f(x)]", "Unexpected identifier 'f'", 1, (1, 20), sync),
        ("class A { m() { await f() } }", "expecting ';'", 1, (1, 17), sync),
    ]);
    let fine = [
        "await f(); x y",
        "a.map(async x => await f(x)); x y",
        "const g = async () => { if (a) { await f() } }; x y",
        "async function g() { await f() } x y",
        "({ async m() { await f() } }); x y",
        "x => x, await f(); x y",
        "const h = x => x\nawait f(); x y",
        "a.then(b => b); await f(); x y",
    ];
    for text in fine {
        let line = u32::try_from(text.lines().count()).unwrap();
        let error = body(text).syntax_error("expecting ';'", line);
        assert!(error.message.starts_with("unexpected `"), "{text}: {error}");
    }
}

#[test]
fn what_is_declared_twice_is_named() {
    let message = "invalid redefinition of lexical identifier";
    check(&[
        ("const a = 1;\nlet b\nconst a = 2", message, 3, (3, 7), "`a` is declared already on line 1"),
        ("let a; let a", message, 2, (1, 12), "or assign without `let`"),
        ("class A {}\nfunction f() { let A }\nclass A {}", message, 3, (3, 7), "rename one of them"),
        ("{ let a }\n{ let a; var b }\nlet x = y; let z", message, 3, (3, 1), "invalid redefinition"),
    ]);
}

#[test]
fn lines_are_the_authors_behind_a_header() {
    let text = "\u{feff}// 🎉\r\nexport const meta = {name: 'a',\r\n  description: 'b'};\r\n\r\nconst 名: number = 1";
    let error = Script::read(text, None).unwrap().syntax_error("missing initializer for variable", 5);
    assert_eq!((error.line, error.column), (Some(5), Some(8)));
}

#[test]
fn what_quickjs_says_is_shown_safely() {
    let error = body("a").syntax_error(&format!("\u{1b}[31m{}", "x".repeat(10_000)), 1);
    assert!(error.message.starts_with('\u{fffd}') && error.message.chars().count() < 400);
}

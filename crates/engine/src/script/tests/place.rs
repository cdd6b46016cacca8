//! Columns and stacks.

use fanfold_types::Meta;

use super::body;
use crate::script::{Script, Thrown};

#[test]
fn columns_count_characters() {
    let script = body("\u{feff}a🎉é\r\n日本 x\n\nend");
    let cases = [
        // The byte order mark takes three bytes and no column.
        (1, 0, 1),
        (1, 1, 1),
        (1, 3, 1),
        (1, 4, 1),
        (1, 5, 2),
        (1, 9, 3),
        (1, 11, 4),
        (1, 99, 4),
        // A byte inside a character belongs to it.
        (1, 6, 2),
        (1, 8, 2),
        (2, 1, 1),
        (2, 3, 1),
        (2, 4, 2),
        (2, 8, 4),
        (2, 9, 5),
        (2, u32::MAX, 5),
        (3, 1, 1),
        (3, 7, 1),
        (4, 4, 4),
        (4, 5, 4),
        (0, 5, 1),
        (5, 5, 1),
        (u32::MAX, 5, 1),
    ];
    for (line, byte_column, column) in cases {
        assert_eq!(script.column(line, byte_column), column, "{line}:{byte_column}");
    }
}

#[test]
fn a_stack_shows_the_script_alone() {
    let script = body("const 日本 = 1\r\n  日本()\nthird");
    let text = "TypeError: not a function\n    at f (native)\n    at agent (fanfold:12:7)\n    at 日本 (workflow:2:9)\n    \
                at <anonymous> (workflow:1:1)\n    at workflow:3:2\n    at run (workflow:0:3)\n    at x (workflow:4:1)\n    \
                at lost (missing)\n    at (eval) (<input>:1:1)\n";
    let error = script.thrown(text);
    assert_eq!(
        error.message,
        "TypeError: not a function\n    at 日本 (workflow:2:5)\n    at <anonymous> (workflow:1:1)\n    at workflow:3:2"
    );
    assert_eq!((error.code, error.line, error.column), (None, Some(2), Some(5)));
}

#[test]
fn a_message_may_look_like_anything() {
    let script = body("throw x");
    let cases = [
        // Frames in a message are its text, unless nothing but frames follows.
        (
            "Error: x\n    at fanfold:1:1\nmore\n    at workflow:1:7",
            "Error: x\n    at fanfold:1:1\nmore\n    at workflow:1:7",
            Some((1, 7)),
        ),
        ("Error: x\n    at fanfold:1:1\n    at workflow:1:7", "Error: x\n    at workflow:1:7", Some((1, 7))),
        (
            "Error: x\n    at home\n    at 12:30:15\n    at workflow:1:7",
            "Error: x\n    at home\n    at 12:30:15\n    at workflow:1:7",
            Some((1, 7)),
        ),
        ("Error: x\n    at native", "Error: x\n    at native", None),
        ("    at workflow:1:1", "    at workflow:1:1", None),
        ("Error: a\nb\n\nc", "Error: a\nb\n\nc", None),
        ("plain", "plain", None),
        ("", "", None),
        ("\n\n", "", None),
        ("Error: only ours\n    at a (native)\n    at b (fanfold:1:1)", "Error: only ours", None),
        (
            "E\n    at a (b) (c (workflow:1:2)\n    at  (workflow:1:3)",
            "E\n    at a (b) (c (workflow:1:2)\n    at  (workflow:1:3)",
            Some((1, 2)),
        ),
        ("E\n    at f (workflow:99999999999:1)", "E\n    at f (workflow:99999999999:1)", None),
        ("E\n    at f (workflow:1:99)", "E\n    at f (workflow:1:8)", Some((1, 8))),
    ];
    for (text, message, place) in cases {
        let error = script.thrown(text);
        assert_eq!(error.message, message, "{text:?}");
        assert_eq!(error.line.zip(error.column), place, "{text:?}");
    }
}

#[test]
fn frames_beyond_what_quickjs_writes_are_text() {
    let text = format!("E{}", "\n    at workflow:1:1".repeat(100_000));
    let error = body(&"x".repeat(100_000)).thrown(&text);
    assert_eq!(error.message.len(), text.len());
    assert_eq!((error.line, error.column), (Some(1), Some(1)));
}

#[test]
fn globals_that_scripts_lack_are_explained() {
    let missing =
        |name: &str| format!("ReferenceError: {name} is not defined\n    at <anonymous> (workflow:1:1)");
    let cases = [
        ("require", "no modules"),
        ("process", "not in Node"),
        ("fetch", "no network"),
        ("console", "log("),
        ("setTimeout", "no timers"),
    ];
    for (name, words) in cases {
        let message = body("x").thrown(&missing(name)).message;
        let lines: Vec<&str> = message.lines().collect();
        assert_eq!(lines[0], format!("ReferenceError: {name} is not defined"));
        assert!(lines[1].contains(words) && lines[2] == "    at <anonymous> (workflow:1:1)", "{message}");
    }
    assert_eq!(body("x").thrown(&missing("foo")).message, missing("foo"));
    let header = Script::read("export const meta = {name: 'a', description: 'b'}", None).unwrap();
    assert_eq!(header.thrown(&missing("console")).message, missing("console"));
    assert!(body("x").thrown("ReferenceError: could not load module 'fs'").message.contains("no modules"));
}

#[test]
fn time_is_linear_in_the_text() {
    // Each would take minutes if anything were quadratic.
    let size = 64 << 10;
    let pieces = [
        "[",
        "(",
        "{",
        "}",
        "`${",
        "/*",
        "//\n",
        "/[",
        "'",
        "a ",
        "a.",
        "await a ",
        "x=>await y,",
        "<a",
        "a:b,",
        "const a;",
        "=> {",
        "\r",
        "🎉",
        "\\u{",
        "export ",
        "export const meta\n",
        "const meta\n",
        "'a';",
        "-",
        "\n    at workflow:1:1",
        "/ ",
        "?",
        "case ",
        "class ",
        "function f(",
        "import a ",
        "process.x;",
        "a();",
        "agent('x', {labl: 1});",
        "agent(",
    ];
    for piece in pieces {
        let text = piece.repeat(size / piece.len());
        if let Ok(script) = Script::read(&text, Some(Meta::new("n", "d"))) {
            let lines = u32::try_from(text.lines().count()).unwrap();
            for line in [1, lines + 1] {
                script.syntax_error("Unexpected token '}'", line);
                script.syntax_error("invalid redefinition of lexical identifier", line);
            }
            script.thrown(&text);
            script.thrown(&format!("ReferenceError: a is not defined\n    at workflow:1:{size}"));
            script.warnings(None);
        }
        let _ = Script::read(&text, None);
        let _ = Script::read(&format!("export const meta = {text}"), None);
        let _ = Script::read(&format!("export const meta = {{a: [{text}"), None);
    }
    // A constant is read once, however many calls name it, and so is a line with all the frames of a stack.
    let fields = "a: {type: 'string'}, ".repeat(1000);
    let calls = "agent('x', {schema: S}); ".repeat(2000);
    let text = format!("const S = {{type: 'object', properties: {{{fields}}}}}; {calls}");
    let script = Script::read(&text, Some(Meta::new("n", "d"))).unwrap();
    assert_eq!(script.warnings(None), []);
    let thrown = Thrown::by(&script);
    let stack = "    at f (workflow:1:50000)\n".repeat(60);
    for _ in 0..50 {
        assert_eq!(thrown.read(&format!("ReferenceError: aa is not defined\n{stack}")).column, Some(50000));
    }
    let nested = format!("{}[{}1]{}", "agent(".repeat(400), "1+".repeat(20_000), ")".repeat(400));
    assert_eq!(Script::read(&nested, Some(Meta::new("n", "d"))).unwrap().warnings(None), []);
    for fields in ["'a',", "{a:1},", "1,", "'a'+'b',", "[[[]]],"] {
        let list = fields.repeat(size / 2 / fields.len());
        let text = format!("export const meta = {{{}: [{list}]}}", "k".repeat(size / 2));
        assert!(Script::read(&text, None).is_err());
    }
}

#[test]
fn args_that_were_not_given_are_told() {
    let thrown = "TypeError: cannot read property 'reports' of undefined\n    at <anonymous> (workflow:1:1)";
    let hint = "(args is undefined: the run was given none)";
    for (text, told) in [
        ("return args.reports.length", true),
        ("return args . reports", true),
        ("const args = f(); return args.reports", false),
        ("return args.list.reports", false),
        ("return x.args.reports", false),
    ] {
        assert_eq!(body(text).thrown(thrown).message.contains(hint), told, "{text}");
    }
}

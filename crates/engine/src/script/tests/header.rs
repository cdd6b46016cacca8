//! What is a header, what is not, and what is refused.

use fanfold_types::{ErrorCode, Meta, Phase, WorkflowError};
use serde_json::json;

use super::body;
use crate::script::{Dialect, Script};

fn refused(text: &str) -> WorkflowError {
    let error = Script::read(text, None).expect_err(text);
    assert_eq!(error.code, Some(ErrorCode::MetaInvalid), "{text}");
    error
}

const HEADER: &str = "export const meta = {name: 'a', description: \"b\"}";

#[test]
fn a_header_may_follow_what_does_nothing() {
    let before = [
        "",
        " \t\r\n\n",
        "\u{feff}",
        "\u{feff}\r\n",
        "#!/usr/bin/env fanfold\n",
        "\u{feff}#!/usr/bin/env fanfold\r\n",
        "// @ts-check\n/* licence */\n",
        "/* several\r\nlines */ ",
        "'use strict'\n",
        "\"use strict\";",
        "\"use strict\" ; /* and */ 'another one'\r\n// more\r\n;",
        "'it\\'s \\\nlong';",
        "<!-- old\n--> older\n",
        "\u{a0}\u{3000}\u{2028}",
    ];
    for before in before {
        for behind in
            ["", ";", " ;\nreturn 1", " // done\nreturn 1", "\n(async () => {})()", "\n[1].map(String)"]
        {
            let text = format!("{before}{HEADER}{behind}");
            let script = Script::read(&text, None).expect(&text);
            assert!(Script::has_header(&text), "{text}");
            assert_eq!((script.meta, script.dialect), (Meta::new("a", "b"), Dialect::Header), "{text}");
        }
    }
}

#[test]
fn a_full_header_is_read() {
    let text = "export /* 1 */ const meta /* 2 */ = // 3\n {\n  'name': `review`,\n  description: 'a ' +\n    \"b \" + // joined\n    `c`,\n  \
                whenToUse: \"often\",\n  phases: [{ title: 'A', detail: 'x', provider: 'p', model: 'm' }, { title: 'B', },],\n  \
                args: { type: 'object', required: ['n'] },\n}\n;\nreturn 1";
    let meta = Script::read(text, None).unwrap().meta;
    let phase = |title: &str| Phase { title: title.into(), detail: None, provider: None, model: None };
    let first =
        Phase { detail: Some("x".into()), provider: Some("p".into()), model: Some("m".into()), ..phase("A") };
    assert_eq!(
        meta,
        Meta {
            when_to_use: Some("often".into()),
            phases: Some(vec![first, phase("B")]),
            args: json!({"type": "object", "required": ["n"]}).as_object().cloned(),
            ..Meta::new("review", "a b c")
        }
    );
}

#[test]
fn the_same_words_elsewhere_are_no_header() {
    let texts = [
        "const text = `\nexport const meta = {name: 'x'}\n`\nreturn text",
        "// export const meta = {name: 'x'}\nreturn 1",
        "/*\nexport const meta = {name: 'x'}\n*/ return 1",
        "'export const meta = {}'",
        "return 1\nexport const meta = {name: 'x', description: 'y'}",
        "export const metadata = {}",
        "export const meta$ = {}",
        "export { meta }",
        "export function meta() {}",
        "export default {}",
        "exported; const meta = {}",
        "\"not closed\nexport const meta = {name: 'x', description: 'y'}",
        "/* not closed\nexport const meta = {name: 'x', description: 'y'}",
        "'use strict' + x\nreturn 1",
        "",
        "\u{feff}",
    ];
    for text in texts {
        let script = body(text);
        assert!(!Script::has_header(text), "{text}");
        assert_eq!(script.dialect, Dialect::Body, "{text}");
        assert_eq!(script.body, text.replace('\u{feff}', "   "), "{text}");
    }
}

#[test]
fn what_is_blanked_leaves_everything_else_in_its_place() {
    let cases = [
        ("\u{feff}return 1", "   return 1"),
        ("#!x 🎉\r\nreturn 1", "        \r\nreturn 1"),
        ("\u{feff}#!x\nreturn 1", "      \nreturn 1"),
        // Without the semicolon this would read "use strict"[0].
        (
            "\"use strict\"\nexport const meta = {name: 'é', description: 'b'}\n[0].map(f)",
            "\"use strict\"\n;                                                 \n[0].map(f)",
        ),
        (
            "// one\r\nexport const meta = {name: 'a',\r\n description: 'b'} ; return 1 // two",
            "// one\r\n;                              \r\n                     return 1 // two",
        ),
        // QuickJS counts a lone carriage return as a line in some places only.
        ("a\rb\r\rc\r\nd", "a\nb\n\nc\r\nd"),
    ];
    for (text, expected) in cases {
        let beside = (!text.contains("export")).then(|| Meta::new("n", "d"));
        let script = Script::read(text, beside).unwrap();
        assert_eq!(script.body, expected);
        assert_eq!(script.body.len(), text.len());
    }
}

#[test]
fn metadata_in_both_places_must_be_the_same() {
    let same = Script::read(HEADER, Some(Meta::new("a", "b"))).unwrap();
    assert_eq!(same.dialect, Dialect::Header);
    let other_phases = Meta { phases: Some(Vec::new()), ..Meta::new("a", "b") };
    let other_use = Meta { when_to_use: Some("w".into()), ..Meta::new("a", "b") };
    let other_args = Meta { args: Some(serde_json::Map::new()), ..Meta::new("a", "b") };
    let cases = [
        (other_args, "meta.args", 21),
        (Meta::new("x", "b"), "meta.name", 28),
        (Meta::new("a", "x"), "meta.description", 46),
        (other_use, "meta.whenToUse", 21),
        (other_phases, "meta.phases", 21),
    ];
    for (beside, path, column) in cases {
        let error = Script::read(HEADER, Some(beside)).unwrap_err();
        assert_eq!(error.path.as_deref(), Some(path));
        assert!(error.message.contains("differ in") && error.message.contains(path), "{error}");
        assert_eq!((error.line, error.column), (Some(1), Some(column)), "{error}");
    }
}

#[test]
fn metadata_given_beside_the_script_is_checked() {
    let error = Script::read("return 1", Some(Meta::new("", "d"))).unwrap_err();
    assert_eq!((error.code, error.path.as_deref()), (Some(ErrorCode::MetaInvalid), Some("meta.name")));
}

#[test]
fn args_that_no_value_can_be_checked_against_are_refused_at_their_place() {
    let head = "export const meta = {name: 'a', description: 'b', args: ";
    for (args, path, column) in [
        ("1", "meta.args", 57),
        ("{type: 'array'}", "meta.args.type", 64),
        ("{type: 'object', required: 1}", "meta.args.required", 84),
        ("{type: 'object', properties: {a: {$ref: 'x.json'}}}", "meta.args.properties.a.$ref", 97),
        ("{type: 'object', $ref: '#/parts/x', parts: {x: {type: 'strin'}}}", "meta.args.parts.x.type", 111),
    ] {
        let error = refused(&format!("{head}{args}}}"));
        assert_eq!(
            (error.code, error.path.as_deref()),
            (Some(ErrorCode::MetaInvalid), Some(path)),
            "{error}"
        );
        assert_eq!((error.line, error.column), (Some(1), Some(column)), "{args}: {error}");
    }
    let beside = Meta { args: json!({"type": "string"}).as_object().cloned(), ..Meta::new("a", "b") };
    let error = Script::read("return 1", Some(beside)).unwrap_err();
    assert_eq!((error.path.as_deref(), error.line), (Some("meta.args.type"), None), "{error}");
}

#[test]
fn a_script_without_metadata_is_told_what_to_write() {
    let cases = [
        ("", None, "begin with `export const meta = {name:"),
        ("return 1", None, "give `meta` with a name and a description beside it"),
        ("const x = 1\n  export const meta = {name: 'a', description: 'b'}", Some((2, 1)), "must come first"),
        ("const meta = {name: 'a', description: 'b'}\nreturn 1", Some((1, 1)), "must be exported"),
        ("// x\nexport default async function () {}", Some((2, 1)), "no default export"),
    ];
    for (text, place, words) in cases {
        let error = refused(text);
        assert!(error.message.contains(words), "{text}: {error}");
        assert_eq!(error.line.zip(error.column), place, "{text}: {error}");
    }
}

#[test]
fn markdown_is_not_taken_for_a_template_literal() {
    for beside in [None, Some(Meta::new("n", "d"))] {
        let error = Script::read("\n  ```js\nreturn 1\n```\n", beside).unwrap_err();
        assert_eq!((error.code, error.line, error.column), (Some(ErrorCode::ScriptParse), Some(2), Some(3)));
        assert!(error.message.contains("Markdown"));
    }
}

/// Text, line, column, path, and words of the message.
type Refused = (&'static str, u32, u32, Option<&'static str>, &'static str);

#[test]
fn a_header_that_is_not_a_literal_is_refused_where_it_is_not() {
    let cases: [Refused; 34] = [
        ("export const meta = {name: M}", 1, 28, Some("meta.name"), "`M` is not a literal"),
        ("export const meta = {...x}", 1, 22, Some("meta"), "spreads"),
        ("export const meta = {phases: [...x]}", 1, 31, Some("meta.phases[0]"), "spreads"),
        ("export const meta = {name:`a${1}`}", 1, 29, Some("meta.name"), "write the text itself"),
        ("export const meta = {get phases(){while(1){}}}", 1, 22, Some("meta"), "`get` begins a function"),
        (
            "export const meta = {\n  name:(()=>{while(true){}})()}",
            2,
            8,
            Some("meta.name"),
            "`(` is not a literal",
        ),
        ("export const meta = {name() {}}", 1, 22, Some("meta"), "`name` is a method"),
        ("export const meta = {async name() {}}", 1, 22, Some("meta"), "`async` begins a function"),
        ("export const meta = {*name() {}}", 1, 22, Some("meta"), "method"),
        ("export const meta = {name}", 1, 22, Some("meta"), "write `name: …`"),
        ("export const meta = {'name'}", 1, 28, Some("meta"), "expected `:`"),
        ("export const meta = {[name]: 1}", 1, 22, Some("meta"), "computed field name"),
        ("export const meta = {`name`: 1}", 1, 22, Some("meta"), "plain quotes"),
        ("export const meta = {name: 'a'.trim()}", 1, 31, Some("meta.name"), "computed"),
        ("export const meta = {name: 'a' + M}", 1, 34, Some("meta.name"), "`M` is joined to a string"),
        ("export const meta = {name: 1 + 2}", 1, 30, Some("meta.name"), "computed"),
        ("export const meta = {name: 'a' description: 'b'}", 1, 32, Some("meta.name"), "expected `,` or `}`"),
        ("export const meta = {name: undefined}", 1, 28, Some("meta.name"), "leave the field out"),
        ("export const meta = {name: /x/}", 1, 28, Some("meta.name"), "`/` is not a literal"),
        ("export const meta = {name: 'a' as string}", 1, 32, Some("meta.name"), "TypeScript"),
        ("export const meta = {__proto__: {}}", 1, 22, Some("meta"), "prototype"),
        ("export const meta = {'__proto__': {}}", 1, 22, Some("meta"), "prototype"),
        (
            "export const meta = {name: 'a',\r\n phases: [{title: '🎉', detail: x}]}",
            2,
            32,
            Some("meta.phases[0].detail"),
            "`x`",
        ),
        ("export const meta = {name: 'a'", 1, 21, Some("meta.name"), "this `{` is not closed"),
        ("export const meta = {name: 'a\n'}", 1, 28, Some("meta.name"), "not closed on its line"),
        ("export const meta = /* {}", 1, 21, Some("meta"), "the comment is not closed"),
        ("export const meta = M", 1, 21, Some("meta"), "`M` is not a literal"),
        ("export const meta =", 1, 20, Some("meta"), "the end of the script"),
        ("export const meta", 1, 18, None, "expected `= {…}`"),
        ("export const meta: Meta = {}", 1, 18, None, "TypeScript"),
        ("export let meta = {}", 1, 1, None, "must be a constant"),
        ("export const meta = {name: 'a', description: 'b'} as const", 1, 51, None, "`as` is TypeScript"),
        ("export const meta = {name: 'a', description: 'b'} satisfies Meta;", 1, 51, None, "TypeScript"),
        (
            "export const meta = {name: 'a', description: 'b'}, x = 1",
            1,
            50,
            None,
            "must end behind its literal",
        ),
    ];
    for (text, line, column, path, words) in cases {
        let error = refused(text);
        assert!(Script::has_header(text), "{text}");
        assert!(error.message.contains(words), "{text}: {error}");
        assert_eq!((error.line, error.column), (Some(line), Some(column)), "{text}: {error}");
        assert_eq!(error.path.as_deref(), path, "{text}: {error}");
    }
}

#[test]
fn what_goes_on_from_the_literal_on_the_next_line_is_refused() {
    for behind in [".name", ", x = 1", "? 1 : 2", "return 1", " 1"] {
        let newline = if behind.starts_with(['.', ',', '?']) { "\n" } else { " " };
        let error = refused(&format!("{HEADER}{newline}{behind}"));
        assert!(error.message.contains("header"), "{behind}: {error}");
    }
}

#[test]
fn every_fault_of_the_metadata_is_reported_at_the_first_ones_place() {
    let error = refused(
        "export const meta = {\n  name: 'a',\n  phases: [\n    {title: 'x'},\n    {title: ''}],\n  more: 1\n}",
    );
    assert_eq!(error.path.as_deref(), Some("meta.description"));
    assert!(
        error.message.contains("meta.phases[1].title must not be empty")
            && error.message.contains("meta.more")
    );
    assert_eq!(
        (error.line, error.column),
        (Some(1), Some(21)),
        "a missing field is the whole literal's fault"
    );
    let error = refused(
        "export const meta = {name: 'a', description: 'b',\n  phases: [\n    {title: 'x'},\n    {title: ''}]}",
    );
    assert_eq!((error.line, error.column), (Some(4), Some(13)), "{error}");
    let error = refused("export const meta = []");
    assert_eq!((error.line, error.column), (Some(1), Some(21)), "{error}");
}

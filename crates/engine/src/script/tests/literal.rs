//! Which literals are read, and as what.

use serde_json::{Value, json};

use crate::script::literal::{find, read};
use crate::script::source::Source;

fn value(text: &str) -> Value {
    let (value, end) = read(&Source::new(text), 0, "v").expect(text);
    assert_eq!(end, text.len(), "{text}");
    value
}

fn refusal(text: &str) -> Option<String> {
    read(&Source::new(text), 0, "v").err().map(|error| error.message)
}

#[test]
fn numbers_are_what_javascript_makes_of_them() {
    let cases = [
        ("0", json!(0)),
        ("-0", json!(0)),
        ("+1", json!(1)),
        ("- /* minus */ 1.5", json!(-1.5)),
        ("1.", json!(1)),
        (".5", json!(0.5)),
        ("1e3", json!(1000)),
        ("1.5E-3", json!(0.0015)),
        ("1.e+2", json!(100)),
        ("1_000_000", json!(1_000_000)),
        ("1_0.0_1", json!(10.01)),
        ("0xFf", json!(255)),
        ("0Xa_b", json!(171)),
        ("-0o17", json!(-15)),
        ("0b1010_1010", json!(170)),
        ("9007199254740991", json!(9_007_199_254_740_991_u64)),
        ("9007199254740993", json!(9_007_199_254_740_992.0)),
        ("1e21", json!(1e21)),
        ("1.7976931348623157e308", json!(f64::MAX)),
        ("5e-324", json!(5e-324)),
        ("1e-400", json!(0)),
        // Rounded once, to even, whatever their length.
        ("0x20000000000001", json!(9_007_199_254_740_992.0)),
        ("0x20000000000003", json!(9_007_199_254_740_996.0)),
        (
            "0x200000000000010000000000000000000000000001",
            json!(0x20_0000_0000_0002_u64 as f64 * 2f64.powi(112)),
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), expected, "{text}");
    }
}

#[test]
fn what_is_no_number_is_refused() {
    let texts = [
        "010",
        "09",
        "0_1",
        "1__0",
        "1_",
        "1_.5",
        "1._5",
        "1e_5",
        "1_e5",
        "1e",
        "1e+",
        "0x",
        "0x_1",
        "0b2",
        "0o8",
        "0b",
        "1n",
        "0x1n",
        "1a",
        "1.2.3",
        "0xg",
        ".",
        "-",
        "--1",
        "+-1",
        "-'1'",
        "-Infinity",
        "1e999",
        "-1e999",
        "1px",
    ];
    for text in texts {
        assert!(refusal(text).is_some(), "{text}");
    }
    assert!(refusal("1n").unwrap().contains("bigint"));
    assert!(refusal("010").unwrap().contains("0o"));
    assert!(refusal("1e999").unwrap().contains("too large"));
}

#[test]
fn strings_are_what_javascript_makes_of_them() {
    let cases = [
        (r#""a'b""#, "a'b"),
        (r#"'a"b'"#, "a\"b"),
        ("`a'\"b`", "a'\"b"),
        (r"'\n\t\r\b\f\v\0\\\'\q'", "\n\t\r\u{8}\u{c}\u{b}\0\\'q"),
        (r"'\x41\u0042\u{43}\u{000000000044}'", "ABCD"),
        (r"'\u{1F389}\ud83c\udf89\u{d83c}\u{df89}'", "🎉🎉🎉"),
        (r"'a\ud800b\udc00\udc00\ud83c'", "a\u{fffd}b\u{fffd}\u{fffd}\u{fffd}"),
        (r"'\ud83c\ud83c\udf89'", "\u{fffd}🎉"),
        (r"'\ud83c' + '\udf89'", "🎉"),
        ("'a\\\nb\\\r\nc\\\rd\\\u{2028}e'", "abcde"),
        ("'\u{2028}\u{2029}\t\0\u{feff}\u{200f}'", "\u{2028}\u{2029}\t\0\u{feff}\u{200f}"),
        ("`a\nb\r\nc\rd\\\r\ne`", "a\nb\nc\nde"),
        ("`$ $x {} \\${} \\``", "$ $x {} ${} `"),
        ("'a' + \"b\"\n+ // c\n`c`", "abc"),
        ("''", ""),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), json!(expected), "{text}");
    }
}

#[test]
fn what_is_no_string_is_refused() {
    let texts = [
        "'",
        "'a",
        "'a\nb'",
        "'a\rb'",
        "\"a'",
        "`a",
        "'\\",
        r"'\x4'",
        r"'\x+1'",
        r"'\u123'",
        r"'\u{}'",
        r"'\u{110000}'",
        r"'\u{12345678901}'",
        r"'\u{41'",
        r"'\1'",
        r"'\08'",
        r"'\8'",
        r"`\7`",
        "`${}`",
        "'a' +",
        "'a' + 1",
        "'a' + b",
        "'a' + ('b')",
        "'a' +",
    ];
    for text in texts {
        assert!(refusal(text).is_some(), "{text}");
    }
    assert!(refusal(r"'\101'").unwrap().contains("octal"));
}

#[test]
fn objects_and_arrays_keep_their_order() {
    let text = "{b: 1, 'a b': [true, false, null,], $_9é: {}, if: [], \"\": [[]], \\u0061\\u{62}: 2, 1: 3, 0x10: 4,\n\
                .5: 5, 1e21: 6, 1e-7: 7, get: 8, set: 9, async: 10, default: 11, 日本: 12, /* last */}";
    let expected = r#"{"b":1,"a b":[true,false,null],"$_9é":{},"if":[],"":[[]],"ab":2,"1":3,"16":4,"0.5":5,"1e+21":6,"1e-7":7,"get":8,"set":9,"async":10,"default":11,"日本":12}"#;
    assert_eq!(value(text).to_string(), expected);
}

#[test]
fn the_last_of_equal_names_wins() {
    assert_eq!(value("{a: 1, b: 2, 'a': 3}").to_string(), r#"{"a":3,"b":2}"#);
}

#[test]
fn what_is_no_object_or_array_is_refused() {
    let texts = [
        "",
        "{",
        "[",
        "{a",
        "{a:",
        "{a:1",
        "[1",
        "[1,",
        "[,]",
        "[1,,2]",
        "{,}",
        "{a:1,,b:2}",
        "{a 1}",
        "{a:1 b:2}",
        "[1 2]",
        "[1;2]",
        "{a:1;b:2}",
        "[1}",
        "{a:1]",
        "{a:(1)}",
        "{1n: 1}",
        "{a\\u0020b: 1}",
        "{\\x61: 1}",
        "{-1: 1}",
        "{#a: 1}",
        "{a = 1}",
        "x",
        "NaN",
        "Infinity",
        "undefined",
        "new Date()",
        "function () {}",
        "class {}",
        "async () => {}",
        "() => 1",
        "x => x",
        "await x",
        "typeof x",
        "!0",
        "~1",
        "void 0",
        "#a",
        "@a",
        "this",
        "import('x')",
        "...x",
        "“x”",
        "\u{0}",
        "/* ",
    ];
    for text in texts {
        assert!(refusal(text).is_some(), "{text}");
    }
}

#[test]
fn nesting_is_bounded() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(read(&Source::new(&nested(64)), 0, "v").is_ok());
    for depth in [65, 200_000] {
        assert!(refusal(&nested(depth)).unwrap().contains("deeper than 64"));
    }
    assert!(refusal(&"{a:".repeat(100_000)).unwrap().contains("deeper than 64"));
}

#[test]
fn a_value_is_found_by_its_path() {
    let text = " {a: [1, {b: 2}], c: 3}";
    let source = Source::new(text);
    for (path, expected) in [("v", "{a"), ("v.a", "[1"), ("v.a[1]", "{b"), ("v.a[1].b", "2}"), ("v.c", "3}")]
    {
        let at = find(&source, 0, "v", path).expect(path);
        assert!(text[at..].starts_with(expected), "{path}");
    }
    assert_eq!(find(&source, 0, "v", "v.a[2]"), None);
}

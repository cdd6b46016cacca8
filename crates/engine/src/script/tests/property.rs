//! What holds for every text.

use fanfold_types::Meta;
use proptest::prelude::*;
use serde_json::{Map, Number, Value};

use super::body;
use crate::script::lex::Cursor;
use crate::script::literal;
use crate::script::source::Source;
use crate::script::{Dialect, Script};

/// Text that looks like JavaScript, of a sort.
fn soup() -> impl Strategy<Value = String> {
    let pieces = [
        "export const meta = ",
        "{name: 'a', description: 'b'}",
        "\u{feff}",
        "#!x",
        "\n",
        "\r\n",
        "\r",
        " ",
        "\t",
        ";",
        "'",
        "\"",
        "`",
        "${",
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "/",
        "//",
        "/*",
        "*/",
        "\\",
        "\\u",
        "\\u{",
        "=>",
        ":",
        "?",
        ",",
        "...",
        "as",
        "const ",
        "let ",
        "function ",
        "class ",
        "async ",
        "await ",
        "import ",
        "export ",
        "case ",
        "if",
        "a",
        "1",
        "0x",
        "1_0",
        ".",
        "!",
        "<",
        ">",
        "=",
        "+",
        "-->",
        "<!--",
        "é",
        "日本",
        "🎉",
        "\u{2028}",
        "\0",
        "#",
        "@",
        "    at workflow:1:1",
        "    at f (native)",
        " (workflow:1:2)",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 0..40).prop_map(|pieces| pieces.concat())
}

/// The lines of a text as JavaScript ends them, but for U+2028 and U+2029.
fn line_lengths(text: &str) -> Vec<usize> {
    text.replace("\r\n", "\n\n").replace('\r', "\n").split('\n').map(str::len).collect()
}

fn check_everything(text: &str, message: &str, line: u32, column: u32) {
    let _ = Script::read(text, None);
    let Ok(script) = Script::read(text, Some(Meta::new("a", "b"))) else { return };
    assert_eq!(line_lengths(&script.body), line_lengths(text));
    for error in [script.syntax_error(message, line), script.thrown(text), script.thrown(message)] {
        assert_eq!(error.line.is_some(), error.column.is_some());
        if let (Some(line), Some(column)) = (error.line, error.column) {
            assert!(line >= 1 && column >= 1);
        }
    }
    script.column(line, column);
}

proptest! {
    #[test]
    fn no_text_breaks_anything(text in any::<String>(), message in any::<String>(), line: u32, column: u32) {
        check_everything(&text, &message, line, column);
    }

    #[test]
    fn no_javascript_breaks_anything(text in soup(), message in "(Unexpected token|unexpected) '[(){}:;<a-c]'|expecting ';'", line in 0u32..9, column in 0u32..50) {
        check_everything(&text, &message, line, column);
        check_everything(&format!("export const meta = {text}"), &message, line, column);
    }

    #[test]
    fn blanking_keeps_lines_and_lengths(before in "(\u{feff})?(#![a-zé🎉]{0,9}\r?\n)?(//[ a-z🎉]{0,9}\r?\n|[ \t\r\n\u{a0}\u{feff}\u{2028}]|/\\*[ \r\n]*\\*/|'use strict';){0,5}", behind in soup()) {
        let header = "export const meta = {name: 'a', // é🎉\r\n\tdescription:\r'b' }";
        let text = format!("{before}{header};{behind}");
        let script = Script::read(&text, None)?;
        prop_assert_eq!(script.dialect, Dialect::Header);
        prop_assert_eq!(line_lengths(&script.body), line_lengths(&text));
        let tail = &script.body[before.len() + header.len() + 1..];
        prop_assert_eq!(tail, behind.replace("\r\n", "\u{e000}\n").replace('\r', "\n").replace("\u{e000}\n", "\r\n"));
    }

    #[test]
    fn columns_lead_back_to_their_characters(line in "[a-z\t é日🎉\u{301}]{0,40}", before in "[a🎉]{0,9}\r?\n", bom: bool) {
        let text = format!("{}{before}{line}", if bom { "\u{feff}" } else { "" });
        let script = body(&text);
        let source = Source::new(&text);
        let start = text.len() - line.len();
        for (i, (at, _)) in line.char_indices().enumerate() {
            prop_assert_eq!(script.column(2, at as u32 + 1), i as u32 + 1);
            prop_assert_eq!(source.place(start + at), (2, i as u32 + 1));
        }
        let first = before.trim_end_matches(['\r', '\n']);
        for (i, (at, _)) in first.char_indices().enumerate() {
            let byte_column = at as u32 + if bom { 3 } else { 0 } + 1;
            prop_assert_eq!(script.column(1, byte_column), i as u32 + 1);
        }
    }

    #[test]
    fn json_written_as_javascript_reads_back(value in json(), choices in prop::collection::vec(any::<u8>(), 1..200)) {
        let mut writer = Writer { text: String::new(), choices, next: 0 };
        writer.value(&value);
        let (read, end) = literal::read(&Source::new(&writer.text), 0, "v").map_err(|error| TestCaseError::fail(format!("{error}: {}", writer.text)))?;
        prop_assert_eq!(&read, &normal(&value), "{}", writer.text);
        prop_assert_eq!(read.to_string(), normal(&value).to_string());
        let mut rest = Cursor::new(&writer.text, end);
        prop_assert!(rest.gap().is_ok() && rest.rest().is_empty(), "{}", writer.text);
    }
}

fn json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::Bool),
        (-(1i64 << 53) + 1..1i64 << 53).prop_map(Value::from),
        any::<f64>().prop_filter_map("JSON numbers are finite", |n| Number::from_f64(n).map(Value::Number)),
        any::<String>().prop_map(Value::String),
        "[a-z'\"`$\\\\{}\n\r\u{2028}🎉]{0,12}".prop_map(Value::String),
    ];
    leaf.prop_recursive(5, 40, 6, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::Array),
            prop::collection::vec(("[a-z_$][a-z0-9é日]{0,4}|[0-9]{1,3}|.{0,4}", inner), 0..6).prop_map(
                |fields| {
                    Value::Object(
                        fields.into_iter().filter(|(name, _)| name != "__proto__").collect::<Map<_, _>>(),
                    )
                }
            ),
        ]
    })
}

/// The value with its integers as integers, which JavaScript does not tell from other numbers.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => match number.as_f64() {
            Some(float) if float.fract() == 0.0 && float.abs() < 9_007_199_254_740_992.0 => {
                (float as i64).into()
            }
            _ => value.clone(),
        },
        Value::Array(elements) => elements.iter().map(normal).collect(),
        Value::Object(fields) => fields.iter().map(|(name, value)| (name.clone(), normal(value))).collect(),
        _ => value.clone(),
    }
}

/// Writes JSON as a person might, by a list of choices.
struct Writer {
    text: String,
    choices: Vec<u8>,
    next: usize,
}

impl Writer {
    fn choose(&mut self, among: usize) -> usize {
        self.next += 1;
        usize::from(self.choices[self.next % self.choices.len()]) % among
    }

    fn put(&mut self, text: &str) {
        let gaps = ["", "", "", " ", "\n", "\r\n\t", "/* [ */", "// }\n", "\u{feff}", "\u{2029}", "\u{a0}"];
        let (before, behind) = (self.choose(gaps.len()), self.choose(gaps.len()));
        self.text += gaps[before];
        self.text += text;
        self.text += gaps[behind];
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Number(number) => self.number(number),
            Value::String(text) => self.strings(text),
            Value::Array(elements) => {
                self.list("[", elements.iter(), "]", |this, element| this.value(element))
            }
            Value::Object(fields) => self.list("{", fields.iter(), "}", |this, (name, value)| {
                this.name(name);
                this.put(":");
                this.value(value);
            }),
            Value::Null | Value::Bool(_) => self.put(&value.to_string()),
        }
    }

    fn list<T>(
        &mut self,
        open: &str,
        elements: impl ExactSizeIterator<Item = T>,
        close: &str,
        write: fn(&mut Self, T),
    ) {
        self.put(open);
        let last = elements.len();
        for (i, element) in elements.enumerate() {
            write(self, element);
            if i + 1 < last || self.choose(2) == 0 {
                self.put(",");
            }
        }
        self.put(close);
    }

    fn name(&mut self, name: &str) {
        let is_word = name.starts_with(|c: char| c.is_alphabetic() || matches!(c, '_' | '$'))
            && name.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'));
        let is_index = name.parse::<u32>().is_ok_and(|index| index.to_string() == name);
        match self.choose(3) {
            0 if is_word || is_index => self.put(name),
            1 if is_word => {
                let first = name.chars().next().map_or(0, u32::from);
                let rest: String = name.chars().skip(1).collect();
                self.put(&format!("\\u{{{first:x}}}{rest}"));
            }
            _ => {
                let quote = ['"', '\''][self.choose(2)];
                self.string(name, quote);
            }
        }
    }

    fn strings(&mut self, text: &str) {
        let cut = text.char_indices().nth(1 + self.choose(8)).filter(|_| self.choose(3) == 0);
        let (first, rest) = text.split_at(cut.map_or(text.len(), |(at, _)| at));
        let quote = ['"', '\'', '`'][self.choose(3)];
        self.string(first, quote);
        if !rest.is_empty() {
            self.put("+");
            self.strings(rest);
        }
    }

    fn string(&mut self, text: &str, quote: char) {
        let mut literal = String::from(quote);
        for c in text.chars() {
            match (c, self.choose(6)) {
                ('\\', _) => literal += "\\\\",
                ('\r', _) => literal += "\\r",
                ('\n', _) if quote != '`' => literal += "\\n",
                ('$', _) if quote == '`' => literal += "\\$",
                (c, _) if c == quote => literal.extend(['\\', c]),
                (c, 0) => {
                    c.encode_utf16(&mut [0; 2]).iter().for_each(|unit| literal += &format!("\\u{unit:04X}"))
                }
                (c, 1) => literal += &format!("\\u{{{:x}}}", u32::from(c)),
                (c, 2) if u32::from(c) < 256 => literal += &format!("\\x{:02x}", u32::from(c)),
                (c, 3) => literal.extend(['\\', '\n', c]),
                (c, _) => literal.push(c),
            }
        }
        literal.push(quote);
        self.put(&literal);
    }

    fn number(&mut self, number: &Number) {
        let float = number.as_f64().unwrap_or_default();
        let size = float.abs();
        let whole = (size.fract() == 0.0 && size < 9_007_199_254_740_992.0).then_some(size as u64);
        let text = match (self.choose(7), whole) {
            (0, Some(whole)) => format!("{whole:#x}"),
            (1, Some(whole)) => format!("{whole:#o}"),
            (2, Some(whole)) => format!("{whole:#b}"),
            (3, Some(whole)) => format!("{whole}."),
            (4, Some(whole)) if whole > 999 => format!("{}_{:03}", whole / 1000, whole % 1000),
            (5, _) => format!("{size:e}"),
            (6, _) => format!("{size:?}").replace("0.", "0."),
            _ => size.to_string(),
        };
        let sign = if float.is_sign_negative() { "-" } else { ["", "+"][self.choose(2)] };
        self.put(&format!("{sign}{text}"));
    }
}

//! JSON as models write it: somewhere in their answer, with escapes that Rust cannot hold.

use std::borrow::Cow;
use std::ops::Range;

use serde_json::Value;

/// The most places of an answer that are tried.
const MAX_CANDIDATES: usize = 64;

/// Reads JSON text. A lone surrogate escape such as `"\ud83d"` becomes U+FFFD; nesting is limited by
/// serde_json.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_lone_surrogates(text))
}

/// Where in an answer a JSON value may be, the likeliest first: all of it, the fenced code blocks from last
/// to first, the outermost `{…}` in it from last to first.
///
/// Takes time in proportion to the length of the answer, whatever it holds.
pub(crate) fn candidates(answer: &str) -> impl Iterator<Item = &str> {
    // What comes later is only looked for when what comes first was no good.
    std::iter::once(answer.trim())
        .chain(std::iter::once_with(|| fenced(answer)).flat_map(|blocks| blocks.into_iter().rev()))
        .chain(std::iter::once_with(|| objects(answer)).flat_map(|objects| objects.into_iter().rev()))
        .take(MAX_CANDIDATES)
}

/// The contents of the fenced code blocks, in order. A block that is not closed reaches to the end.
fn fenced(answer: &str) -> Vec<&str> {
    let mut blocks = Vec::new();
    let mut open: Option<(&str, usize)> = None;
    let mut at = 0;
    for line in answer.split_inclusive('\n') {
        let start = at;
        at += line.len();
        let (fence, rest) = split_fence(line.trim());
        match open {
            None if !fence.is_empty() && !rest.contains('`') => open = Some((fence, at)),
            Some((opening, from)) if fence.starts_with(opening) && rest.is_empty() => {
                blocks.push(answer[from..start].trim());
                open = None;
            }
            _ => {}
        }
    }
    if let Some((_, from)) = open {
        blocks.push(answer[from..].trim());
    }
    blocks
}

/// Splits a line into the three or more backticks or tildes that it begins with, if it does, and the rest.
fn split_fence(line: &str) -> (&str, &str) {
    let run = |mark: u8| line.bytes().take_while(|&byte| byte == mark).count();
    let length = run(b'`').max(run(b'~'));
    line.split_at(if length < 3 { 0 } else { length })
}

/// The outermost stretches from `{` to its `}` that may be JSON, in order.
///
/// One pass: a byte that JSON cannot have at its place means that every brace still open was prose, and so it
/// starts anew right after that byte.
fn objects(text: &str) -> Vec<&str> {
    let bytes = text.as_bytes();
    let mut open: Vec<usize> = Vec::new();
    let mut found: Vec<Range<usize>> = Vec::new();
    let mut at = 0;
    while at < bytes.len() {
        if open.is_empty() {
            let Some(brace) = text[at..].find('{') else { break };
            at += brace;
        }
        match bytes[at] {
            b'{' => open.push(at),
            b'}' => {
                if let Some(start) = open.pop() {
                    forget_since(&mut found, start);
                    found.push(start..at + 1);
                }
            }
            b'"' => match string_end(bytes, at) {
                Some(end) => {
                    at = end;
                    continue;
                }
                // A quotation mark of prose: what seemed to be in the string gets its own chance. No byte is
                // looked at more than three times by this, since the next string that can be tried starts
                // where this one seemed to end.
                None => abandon(&mut open, &mut found),
            },
            b'[' | b']' | b',' | b':' | b' ' | b'\t' | b'\r' | b'\n' => {}
            // Numbers, true, false, null.
            b'0'..=b'9' | b'+' | b'-' | b'.' | b'E' => {}
            b'a' | b'e' | b'f' | b'l' | b'n' | b'r' | b's' | b't' | b'u' => {}
            _ => abandon(&mut open, &mut found),
        }
        at += 1;
    }
    abandon(&mut open, &mut found);
    found.into_iter().map(|range| &text[range]).collect()
}

/// Closes nothing: the braces still open were prose or a value cut off, and no part of one is an answer.
fn abandon(open: &mut Vec<usize>, found: &mut Vec<Range<usize>>) {
    if let Some(&outermost) = open.first() {
        forget_since(found, outermost);
        open.clear();
    }
}

fn forget_since(found: &mut Vec<Range<usize>>, start: usize) {
    while found.last().is_some_and(|object| object.start > start) {
        found.pop();
    }
}

/// Where the string ends that begins with the quotation mark at `start`; `None` if it does not, or if what
/// follows it cannot follow a string in an object.
fn string_end(bytes: &[u8], start: usize) -> Option<usize> {
    let mut at = start + 1;
    loop {
        match bytes.get(at)? {
            b'"' => break,
            b'\\' => at += 2,
            _ => at += 1,
        }
    }
    let next = bytes[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace())?;
    matches!(next, b':' | b',' | b'}' | b']').then_some(at + 1)
}

/// Replaces the escapes of lone surrogates by that of U+FFFD.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    let bytes = text.as_bytes();
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(backslash) = text.get(at..).and_then(|rest| rest.find('\\')) {
        at += backslash;
        match surrogate(bytes, at) {
            Some(Surrogate::High) if matches!(surrogate(bytes, at + 6), Some(Surrogate::Low)) => at += 12,
            Some(_) => {
                out.push_str(&text[copied..at]);
                out.push_str("\\ufffd");
                at += 6;
                copied = at;
            }
            // The byte after a backslash belongs to it; only another backslash matters, and that is one byte.
            None => at += if bytes.get(at + 1) == Some(&b'\\') { 2 } else { 1 },
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

enum Surrogate {
    High,
    Low,
}

/// Which half of a surrogate pair is escaped here, if one is.
fn surrogate(bytes: &[u8], at: usize) -> Option<Surrogate> {
    match bytes.get(at..at + 6)? {
        [b'\\', b'u', b'd' | b'D', kind, digits @ ..] if digits.iter().all(u8::is_ascii_hexdigit) => {
            match kind {
                b'8' | b'9' | b'a' | b'A' | b'b' | b'B' => Some(Surrogate::High),
                b'c' | b'C' | b'd' | b'D' | b'e' | b'E' | b'f' | b'F' => Some(Surrogate::Low),
                _ => None,
            }
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first place that holds JSON, as the command provider would take it were every value right.
    fn first(answer: &str) -> Option<Value> {
        candidates(answer).find_map(|candidate| parse(candidate).ok())
    }

    #[test]
    fn json_is_found_wherever_a_model_puts_it() {
        let one = r#"{"a":1}"#;
        let cases = [
            ("bare", r#"{"a":1}"#, one),
            ("bare, not an object", " [1, 2]\n", "[1,2]"),
            ("fenced", "```json\n{\"a\":1}\n```", one),
            ("fenced without a language, CRLF", "Here:\r\n```\r\n{\"a\":1}\r\n```\r\nDone.", one),
            ("fenced in a list", "- so\n  ~~~~ json\n  {\"a\":1}\n  ~~~~", one),
            ("fence not closed", "```json\n{\"a\":1}", one),
            ("two fences: the last", "```\n{\"a\":2}\n```\nbetter:\n```\n{\"a\":1}\n```", one),
            ("fence of other code last", "```json\n{\"a\":1}\n```\n```sh\nls {x}\n```", one),
            ("fence before prose", "```\n{\"a\":1}\n```\nor {\"a\":2}?", one),
            ("fence in a fence", "````md\n```json\n{\"a\":1}\n```\n````", one),
            ("fence on one line", "```{\"a\":1}```", one),
            ("in prose", r#"The answer is {"a":1}, I think."#, one),
            ("two in prose: the last", r#"Not {"a":2} but {"a":1}."#, one),
            ("outermost only", r#"So {"a":{"b":[{"c":{}}]}}."#, r#"{"a":{"b":[{"c":{}}]}}"#),
            ("braces in strings", r#"So {"a":"}{ \" } ``` \\"}."#, r#"{"a":"}{ \" } ``` \\"}"#),
            ("fence in a string", "x {\"a\":\"\\n```\\n{\"} y", r#"{"a":"\n```\n{"}"#),
            ("brace open in prose", r#"Type { or write {"a":1}"#, one),
            ("brace closed in prose", r#"a } b {"a":1} c }"#, one),
            ("placeholder in prose", r#"Fill in {name} and {user}: {"a":1}"#, one),
            ("quotation marks in prose", r#"He said "so {"a":1} it is" and left"#, one),
            ("odd quotation mark in prose", r#"24" wide: {"a":1}"#, one),
            ("quotation mark and brace in prose", r#"say { "look {"a":1}"#, one),
            ("lone surrogate", r#"x {"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
        ];
        for (name, answer, expected) in cases {
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(first(answer), Some(expected), "{name}: {answer}");
        }
        const CUT_OFF: &str = r#"{"b": [ {"a":1}, {"c": "#;
        for answer in
            ["", "no", "{", "}", "{\"", "\"{", "{\"a\":1", "```", "```\n```", "{name}", "{\"a\\", CUT_OFF]
        {
            assert_eq!(first(answer), None, "{answer}");
        }
    }

    // Anything worse than linear takes minutes here.
    #[test]
    fn hostile_answers_take_no_time() {
        const MANY: usize = 1_000_000;
        let deep = format!("x {}{}", "{\"a\":".repeat(MANY), "}".repeat(MANY));
        for (name, answer) in [
            ("braces", "{".repeat(MANY)),
            ("closing braces", "}".repeat(MANY)),
            ("brackets", "[".repeat(MANY)),
            ("nested", deep),
            ("cut off", "{\"a\":[".repeat(MANY)),
            ("cut off strings", "{\"".repeat(MANY)),
            ("strings of braces", "{\"{".repeat(MANY)),
            ("keys of braces", "{\":".repeat(MANY)),
            ("escaped quotation marks", format!("{{\"{}", "{\\\"".repeat(MANY))),
            ("escaped backslashes", format!("{{\"{}", "{\\\\\"".repeat(MANY))),
            ("strings that cannot stand", "{\"\" ".repeat(MANY)),
            ("strings before spaces", format!("{}{}", "{\"\"".repeat(MANY), " ".repeat(MANY))),
            ("backslashes", "\\".repeat(MANY)),
            ("fences", "```\n{\n".repeat(MANY)),
            ("fences that differ", (0..1000).map(|n| format!("{}\n", "`".repeat(n))).collect()),
            ("one long fence", "`".repeat(MANY)),
        ] {
            assert_eq!(first(&answer), None, "{name}");
        }
        assert_eq!(first(&"{}".repeat(MANY)), Some(serde_json::json!({})));
    }

    #[test]
    fn lone_surrogates_are_replaced() {
        for (json, expected) in [
            (r#""\ud83d""#, "\u{fffd}"),
            (r#""\uD83D\uDE00""#, "\u{1f600}"),
            (r#""\ude00\ud83d""#, "\u{fffd}\u{fffd}"),
            (r#""\ud83d\ud83d\ude00x""#, "\u{fffd}\u{1f600}x"),
            (r#""\ud83dé\udfff""#, "\u{fffd}é\u{fffd}"),
            (r#""\\ud83d""#, "\\ud83d"),
            (r#""\\\ud83d""#, "\\\u{fffd}"),
            (r#""\n\u00e9\ud7ff\ue000""#, "\né\u{d7ff}\u{e000}"),
        ] {
            assert_eq!(parse(json).unwrap(), Value::from(expected), "{json}");
        }
        assert_eq!(parse(r#"{"\udfff":[]}"#).unwrap(), serde_json::json!({"\u{fffd}": []}));
        for json in [r#""\ud8"#, r#""\ud83"#, r#""\ud83g""#, "\"\\", "\"\\\\", "\"\\é\""] {
            assert!(parse(json).is_err(), "{json}");
        }
    }

    #[test]
    fn nesting_has_a_limit() {
        assert!(parse(&format!("{}{}", "[".repeat(100), "]".repeat(100))).is_ok());
        assert!(parse(&"[".repeat(1_000_000)).is_err());
    }
}

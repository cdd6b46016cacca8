//! JSON as models write it: somewhere in their answer, with escapes that Rust cannot hold.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value;

use crate::escapes;
use crate::fences::{self, Fence};
use crate::reasoning::{self, BEGINNINGS, Kind, Tag};

/// The most values of an answer that are tried.
const MAX_VALUES: usize = 64;

/// How much of a line is shown before a fault in it, in characters.
const MAX_BEFORE: usize = 30;

/// Reads JSON text. A lone surrogate escape such as `"\ud83d"` becomes U+FFFD; nesting is limited by
/// serde_json.
pub(crate) fn parse(text: &str) -> Result<Value, serde_json::Error> {
    serde_json::from_str(&without_lone_surrogates(text))
}

/// What an answer holds that is JSON, or was meant to be.
#[derive(Debug, Default)]
pub(crate) struct Search<'a> {
    /// The complete values, the likeliest first.
    pub(crate) values: Vec<&'a str>,
    /// The value that was most likely meant to be the answer, complete or not.
    pub(crate) best: Option<&'a str>,
    pub(crate) reasoning: Reasoning,
}

/// Whether there is reasoning in an answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Reasoning {
    #[default]
    None,
    Closed,
    /// The answer ends within it.
    Unclosed,
}

/// Looks for JSON objects and arrays in an answer. The rule, which `docs/agents.md` tells: a value that is all that there
/// is outside of fenced blocks and reasoning comes first, then every value from last to first. What is in reasoning is left
/// out. A value has the text up to its end to itself, so that none is found within another, be that one broken.
///
/// Takes time in proportion to the length of the answer.
pub(crate) fn search(answer: &str) -> Search<'_> {
    let whole = answer.trim();
    if !whole.starts_with(['{', '[']) && parse(whole).is_ok() {
        return Search { values: vec![whole], best: Some(whole), reasoning: Reasoning::None };
    }
    let mut scan = Scan { text: answer, ..Scan::default() };
    scan.run();
    let alone = scan.outside.alone();
    let values = alone.iter().chain(scan.values.iter().rev()).map(|range| &answer[range.clone()]).collect();
    let object = scan.values.iter().rev().find(|range| answer[(*range).clone()].starts_with('{'));
    let complete = object.or(scan.values.back());
    let last = complete.into_iter().chain(&scan.broken).max_by_key(|range| range.start);
    let best = last.or(scan.loose.as_ref()).map(|range| &answer[range.clone()]);
    Search { values, best, reasoning: scan.reasoning }
}

#[derive(Default)]
struct Scan<'a> {
    text: &'a str,
    /// The last complete values, in order.
    values: VecDeque<Range<usize>>,
    /// The last value that begins like JSON and is not JSON, and the last that begins like one of JavaScript or Python.
    broken: Option<Range<usize>>,
    loose: Option<Range<usize>>,
    fence: Option<Fence>,
    /// What is outside of fences and reasoning, now and at the end of the last block of reasoning.
    outside: Outside,
    outside_before: Outside,
    /// Where the last block of reasoning ended.
    reasoned: usize,
    reasoning: Reasoning,
}

/// What is outside of fences and reasoning.
#[derive(Clone, Debug, Default)]
struct Outside {
    value: Option<Range<usize>>,
    more: bool,
}

impl Outside {
    fn alone(&self) -> Option<Range<usize>> {
        self.value.clone().filter(|_| !self.more)
    }
}

impl Scan<'_> {
    fn run(&mut self) {
        let text = self.text;
        let (mut at, mut line_end) = (0, 0);
        while at < text.len() {
            if at >= line_end {
                if (at == 0 || text.as_bytes()[at - 1] == b'\n')
                    && let Some(next) = self.fence_at(at)
                {
                    at = next;
                    continue;
                }
                line_end = fences::line_end(text, at);
            }
            let found = text[at..line_end].find(|c| c == '{' || BEGINNINGS.contains(&c));
            let Some(next) = found.map(|length| at + length) else {
                self.prose(at..line_end);
                at = line_end;
                continue;
            };
            self.prose(at..next);
            at = if let Some(tag) = reasoning::tag(text, next) {
                self.tag(&tag)
            } else if let Some((end, kind)) = value_at(text, next, self.block_end()) {
                self.value(next..end, kind)
            } else {
                let end = next + text[next..].chars().next().map_or(1, char::len_utf8);
                self.prose(next..end);
                end
            };
            // What looked like a closing fence is within a value or a tag.
            self.fence = self.fence.take().filter(|fence| at <= fence.content.end);
        }
    }

    /// Where the fenced block ends that the scan is in, or the text.
    fn block_end(&self) -> usize {
        self.fence.as_ref().map_or(self.text.len(), |fence| fence.content.end)
    }

    /// Goes into or out of a fenced block at the start of a line, if there is a fence. Gives where the text goes on.
    fn fence_at(&mut self, at: usize) -> Option<usize> {
        if let Some(fence) = &self.fence {
            let end = (at >= fence.content.end).then_some(fence.end)?;
            self.fence = None;
            return Some(end);
        }
        self.fence = fences::at(self.text, at);
        self.fence.as_ref().map(|fence| fence.content.start)
    }

    fn prose(&mut self, part: Range<usize>) {
        self.outside.more |= self.fence.is_none() && !self.text[part].trim().is_empty();
    }

    /// Leaves out a block of reasoning. Gives where the text goes on.
    fn tag(&mut self, tag: &Tag) -> usize {
        let start = tag.range.end;
        let end = match tag.kind {
            Kind::Empty => start,
            Kind::Opening => {
                let limit = self.block_end();
                match reasoning::closing(self.text, start..limit) {
                    Some(closing) => closing.end,
                    None => {
                        self.reasoning = Reasoning::Unclosed;
                        limit.max(start)
                    }
                }
            }
            Kind::Closing => {
                // Its opening tag was part of the prompt, or it is in another block: all since then was reasoning.
                let before = |range: &Range<usize>| range.start < self.reasoned;
                while self.values.back().is_some_and(|range| !before(range)) {
                    self.values.pop_back();
                }
                self.broken = self.broken.take().filter(before);
                self.loose = self.loose.take().filter(before);
                self.outside = self.outside_before.clone();
                start
            }
        };
        if self.reasoning == Reasoning::None || tag.kind == Kind::Closing {
            self.reasoning = Reasoning::Closed;
        }
        self.outside_before = self.outside.clone();
        self.reasoned = end;
        end
    }

    /// Notes a value. Gives where the text goes on.
    fn value(&mut self, range: Range<usize>, kind: Begun) -> usize {
        let is_outside = self.fence.is_none();
        let end = range.end;
        if kind == Begun::Complete && is_outside && self.outside.value.is_none() {
            self.outside.value = Some(range.clone());
        } else {
            self.outside.more |= is_outside;
        }
        match kind {
            Begun::Complete => {
                if self.values.len() == MAX_VALUES {
                    self.values.pop_front();
                }
                self.values.push_back(range);
            }
            Begun::Strict => self.broken = Some(range),
            Begun::Loose => self.loose = Some(range),
            Begun::Numbers => {}
        }
        end
    }
}

/// How a value begins, or what came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Begun {
    Complete,
    /// As only JSON begins.
    Strict,
    /// As those of JavaScript and Python begin, or JSON in which something is left out.
    Loose,
    /// As an array of numbers begins; or a citation.
    Numbers,
}

/// The value that begins at a byte, and where it ends; `None` for prose and its brackets. A loose one is in its block alone:
/// it may be code that is not closed.
fn value_at(text: &str, at: usize, block_end: usize) -> Option<(usize, Begun)> {
    let begun = begins(&text[at..])?;
    let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<IgnoredAny>();
    let fault = match values.next()? {
        Ok(_) => return Some((at + values.byte_offset(), Begun::Complete)),
        Err(error) => at + place_of(&text[at..], &error),
    };
    let end = match begun {
        Begun::Numbers => fault.max(at + 1),
        Begun::Loose => broken_end(&text[..block_end.max(at + 1)], at, fault),
        Begun::Strict | Begun::Complete => broken_end(text, at, fault),
    };
    Some((end, begun))
}

/// How a value begins with a text, if one does.
fn begins(text: &str) -> Option<Begun> {
    let is_object = text.starts_with('{');
    let rest = text.strip_prefix(['{', '['])?.trim_start_matches([' ', '\t', '\r', '\n']);
    let left_out = ["//", "/*", "...", "…"].iter().any(|mark| rest.starts_with(mark));
    match rest.chars().next()? {
        _ if left_out => Some(Begun::Loose),
        '"' => Some(Begun::Strict),
        '\'' | '“' | '‘' | '\\' => Some(Begun::Loose),
        '}' if is_object => Some(Begun::Strict),
        _ if is_object => {
            let after =
                rest.trim_start_matches(|c: char| c.is_alphanumeric() || matches!(c, '_' | '$' | '-'));
            let is_key = after.len() < rest.len() && after.trim_start_matches([' ', '\t']).starts_with(':');
            is_key.then_some(Begun::Loose)
        }
        '{' | '[' | ']' => Some(Begun::Strict),
        '0'..='9' | '-' | 't' | 'f' | 'n' => Some(Begun::Numbers),
        _ => None,
    }
}

/// Where a value ends that is not JSON from `fault` on: at the bracket that closes it, and at the end of the text if none
/// does. From there on it is unknown what is in quotation marks. So the brackets are counted twice, with all of them and
/// with those outside of quotation marks, and the later end counts: what follows is not in the value either way.
fn broken_end(text: &str, at: usize, fault: usize) -> usize {
    let bytes = text.as_bytes();
    let (open, close) = if bytes[at] == b'{' { (b'{', b'}') } else { (b'[', b']') };
    let (mut quoted, mut escaped) = (false, false);
    // How deep, with what is in quotation marks and without; nothing once the value has ended.
    let (mut all, mut unquoted) = (Some(0_usize), Some(0_usize));
    let count = |depth: &mut Option<usize>, byte: u8| match depth {
        Some(deep) if byte == open => *deep += 1,
        Some(deep) if byte == close => *depth = deep.checked_sub(1).filter(|deep| *deep > 0),
        _ => {}
    };
    for (place, &byte) in bytes.iter().enumerate().skip(at) {
        if !quoted {
            count(&mut unquoted, byte);
        }
        if !quoted || place >= fault {
            count(&mut all, byte);
        }
        if all.is_none() && unquoted.is_none() {
            return place + 1;
        }
        let is_mark = byte == b'"' && !escaped;
        escaped = quoted && byte == b'\\' && !escaped;
        quoted ^= is_mark;
    }
    text.len()
}

/// Where in a text an error is, in bytes: the character that cannot stand there.
fn place_of(text: &str, error: &serde_json::Error) -> usize {
    let line = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    text.floor_char_boundary((line + error.column()).saturating_sub(1).min(text.len()))
}

/// What is wrong with a value that is not JSON, and where in it.
pub(crate) fn fault(text: &str, error: &serde_json::Error) -> String {
    let place = if error.is_eof() { text.len() } else { place_of(text, error) };
    let (before, rest) = text.split_at(place);
    let line_start = before.rfind('\n').map_or(0, |end| end + 1);
    let (line, column) = (before.matches('\n').count() + 1, before[line_start..].chars().count() + 1);
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(&*words, |(words, _)| words);
    let what = match rest.chars().next() {
        _ if error.is_eof() => "it breaks off before its end".to_owned(),
        _ if words.starts_with("recursion limit") => "it is nested too deeply".to_owned(),
        Some('\n') if words.starts_with("control") => {
            "a line break within a string; write it as \\n".to_owned()
        }
        Some('\r') if words.starts_with("control") => {
            "a line break within a string; write it as \\r".to_owned()
        }
        Some('\t') if words.starts_with("control") => "a tab within a string; write it as \\t".to_owned(),
        Some(c) if escapes::introduces(c) => {
            "a terminal escape code, and not a whole one; answer without colours".to_owned()
        }
        Some(c) if c.is_control() && !c.is_ascii_whitespace() => {
            let code = u32::from(c);
            format!("the control character U+{code:04X}; within a string write it as \\u{code:04x}")
        }
        _ => words.to_owned(),
    };
    let shown = before[line_start..].trim_start();
    let shown = shown.char_indices().rev().nth(MAX_BEFORE).map_or(shown, |(start, _)| &shown[start..]);
    let after = if shown.is_empty() { String::new() } else { format!(", after `{shown}`") };
    format!("not JSON: {what} (line {line}, column {column} of the value{after})")
}

/// Replaces the escapes of lone surrogates by that of U+FFFD.
fn without_lone_surrogates(text: &str) -> Cow<'_, str> {
    replace_lone_surrogates(text, |_, out| out.push_str("\\ufffd"))
}

/// Replaces the escapes of lone surrogates by what is pushed for the four digits of each.
pub(crate) fn replace_lone_surrogates(text: &str, push: impl Fn(&str, &mut String)) -> Cow<'_, str> {
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
                push(&text[at + 2..at + 6], &mut out);
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

    /// The first place that holds JSON, as an agent's answer would be taken were every value right.
    fn first(answer: &str) -> Option<Value> {
        search(answer).values.into_iter().find_map(|value| parse(value).ok())
    }

    #[test]
    fn json_is_found_wherever_a_model_puts_it() {
        let one = r#"{"a":1}"#;
        let cases = [
            ("bare", r#"{"a":1}"#, one),
            ("bare, not an object", " [1, 2]\n", "[1,2]"),
            ("bare, a text", r#" "a{}" "#, r#""a{}""#),
            ("bare, a number", "4", "4"),
            ("fenced", "```json\n{\"a\":1}\n```", one),
            ("fenced without a language, CRLF", "Here:\r\n```\r\n{\"a\":1}\r\n```\r\nDone.", one),
            ("fenced in a list", "- so\n  ~~~~ json\n  {\"a\":1}\n  ~~~~", one),
            ("fence not closed", "```json\n{\"a\":1}", one),
            ("two fences: the last", "```\n{\"a\":2}\n```\nbetter:\n```\n{\"a\":1}\n```", one),
            ("fence of other code last", "```json\n{\"a\":1}\n```\n```sh\nls {x}\n```", one),
            ("fence and then prose: the last", "```\n{\"a\":2}\n```\nno, {\"a\":1}", one),
            ("fence and then a bare one: the last", "```\n{\"a\":2}\n```\nFinal answer:\n{\"a\":1}\n", one),
            ("fence in a fence", "````md\n```json\n{\"a\":1}\n```\n````", one),
            ("fence on one line", "```{\"a\":1}```", one),
            ("alone but for a fence", "{\"a\":1}\n```json\n{\"a\":2}\n```\n", one),
            ("alone but for fences", "```\nx\n```\n{\"a\":1}\n```json\n{\"a\":2}\n```\n```\n{}\n```", one),
            ("not alone", "{\"a\":2}\nshorter:\n```json\n{\"a\":1}\n```\n", one),
            ("not alone, two bare", "{\"a\":3}{\"a\":2}\n```json\n{\"a\":1}\n```\n", one),
            ("alone but for reasoning", "<think>{\"a\":2}</think>{\"a\":1}\n```json\n{\"a\":2}\n```\n", one),
            ("in prose", r#"The answer is {"a":1}, I think."#, one),
            ("two in prose: the last", r#"Not {"a":2} but {"a":1}."#, one),
            ("before a citation", r#"{"a":1} [see 1] [ref]"#, one),
            ("after one", "[1, p. 3] [2] {\"a\":1}", one),
            ("outermost only", r#"So {"a":{"b":[{"c":{}}]}}."#, r#"{"a":{"b":[{"c":{}}]}}"#),
            ("outermost only, an array", r#"So [{"b":[{"c":{}}]}, 1]."#, r#"[{"b":[{"c":{}}]}, 1]"#),
            ("braces in strings", r#"So {"a":"}{ \" } ``` \\"}."#, r#"{"a":"}{ \" } ``` \\"}"#),
            ("fence in a string", "x {\"a\":\"\\n```\\n{\"} y", r#"{"a":"\n```\n{"}"#),
            ("tags in a string", r#"{"a":"<think>x"}"#, r#"{"a":"<think>x"}"#),
            (
                "tags in a string, closed",
                r#"So: {"a":"<think>","b":"</think>"}"#,
                r#"{"a":"<think>","b":"</think>"}"#,
            ),
            ("brace open in prose", r#"Type { or write {"a":1}"#, one),
            ("brace closed in prose", r#"a } b {"a":1} c }"#, one),
            ("braces doubled", r#"{{"a":1}}"#, one),
            ("placeholder in prose", r#"Fill in {name}, {0} and {user}: {"a":1}"#, one),
            ("code before", "fn main() {\n    say {}\n}\n{\"a\":1}", one),
            ("code cut off before", "```js\nif (x) {\n  // so\n```\n{\"a\":1}", one),
            ("an object of JavaScript before", "Like { a: 2 }: {\"a\":1}", one),
            ("a broken value before", "{\"a\": 2,} no: {\"a\":1}", one),
            ("comparisons in prose", r#"if 1 <"2" or <3 then {"a":1}"#, one),
            ("quotation marks in prose", r#"He said "so {"a":1} it is" and left"#, one),
            ("odd quotation mark in prose", r#"24" wide: {"a":1}"#, one),
            ("lone surrogate", r#"x {"a":"\ud83d"}"#, r#"{"a":"\ufffd"}"#),
        ];
        for (name, answer, expected) in cases {
            let expected: Value = serde_json::from_str(expected).unwrap();
            assert_eq!(first(answer), Some(expected), "{name}: {answer}");
        }
        for answer in [
            "", "no", "{", "}", "{\"", "\"{", "{\"a\":1", "```", "```\n```", "{name}", "{\"a\\", "[", "[1",
            "- [ x",
        ] {
            assert_eq!(first(answer), None, "{answer}");
        }
    }

    #[test]
    fn nothing_is_cut_out_of_a_broken_value() {
        for (name, answer) in [
            ("cut off", r#"{"b": [ {"a":1}, {"c": "#),
            ("array cut off", r#"[{"a":1}, {"a":2}"#),
            ("array of numbers cut off", r#"[1, {"a":1}"#),
            ("line break in a string", "{\"b\": \"x\n{\"a\":1}\ny\"}"),
            ("fence in a string, fenced", "```json\n{\"b\": \"x\n```json\n{\"a\": 1}\n```\ny\"}\n```"),
            ("the same and more", "```json\n{\"b\": \"x\n```json\n{\"a\": 1}\n```\n{\"a\": 2}\ny\"}\n```"),
            ("fence in a string, bare", "{\"b\": \"x\n```json\n{\"a\": 1}\n```\ny\"}"),
            ("quotation marks in a string", r#"{"b": "say "x": {"a":1}", "c": 1}"#),
            ("quotation marks in a key", r#"{"b"c": 1, "d": {"a":1}}"#),
            ("brace in a string after the fault", r#"{"b": 'x', "c": "if (x) } else {", "d": {"a":1}}"#),
            ("trailing comma", r#"{"b": {"a":1},}"#),
            ("comment", "{ // why\n \"b\": {\"a\":1}}"),
            ("left out", r#"{ ..., "b": {"a":1}}"#),
            ("of JavaScript", r#"{b: {"a":1}}"#),
            ("of Python", r#"{'b': {"a":1}, 'c': [{"a":2}]}"#),
            ("list of Python", r#"['b', {"a":1}]"#),
            ("curly quotation marks", r#"{“b”: {"a":1}}"#),
            ("written twice", r#"{\"b\": {"a":1}}"#),
            ("perhaps prose, never closed", r#"say { "look {"a":1}"#),
        ] {
            assert_eq!(first(answer), None, "{name}: {answer}");
        }
    }

    #[test]
    fn reasoning_is_not_searched() {
        let one = Some(serde_json::json!({"a": 1}));
        for (name, answer, expected) in [
            ("bare", "<think>{\"a\":2}</think>", None),
            ("fenced in reasoning", "<think>x\n```json\n{\"a\":2}\n```\n</think>\n{\"a\":1}", one.clone()),
            ("any case", "<THINK>{\"a\":2}</Think>", None),
            ("attributes and spaces", "< thinking effort=\"high\" >{\"a\":2}</ thinking >", None),
            (
                "other tags",
                "<reasoning>{\"a\":2}</reasoning> [THINK]{\"a\":2}[/THINK] ◁think▷{}◁/think▷",
                None,
            ),
            ("in the midst", "Well, <thought>{\"a\":2}</thought> no.", None),
            ("behind", "{\"a\":1}\n<think>or {\"a\":2}?</think>", one.clone()),
            ("two", "<think>{\"a\":2}</think>\n<think>{\"a\":3}</think>{\"a\":1}", one.clone()),
            ("around a value", "<think>{\"a\":2}</think>{\"a\":1}<think>{\"a\":3}</think>", one.clone()),
            ("never closed", "<think>{\"a\":2}", None),
            ("never closed, in the midst", "So <think>{\"a\":2}", None),
            ("never closed, after a value", "{\"a\":1}<think>{\"a\":2}", one.clone()),
            ("never opened", "{\"a\":2}\n</think>", None),
            ("never opened, and a value", "{\"a\":2} so </think>{\"a\":1}", one.clone()),
            ("in each other", "<think><think>{\"a\":2}</think>{\"a\":3}</think>", None),
            ("in a fence", "```\n<think>{\"a\":2}</think>\n{\"a\":1}\n```", one.clone()),
            ("in a fence, alone", "```\n<think>{\"a\":2}</think>\n```", None),
            ("in a fence, never closed", "```xml\n<think>{\"a\":2}\n```\n{\"a\":1}", one.clone()),
            ("mentioned", "I used no `<think>` and no \"</think>\": {\"a\":1}", one.clone()),
            ("with a value that holds a tag", "<think>{\"a\":\"</think>\"}</think>{\"a\":1}", one),
        ] {
            assert_eq!(first(answer), expected, "{name}: {answer}");
        }
    }

    #[test]
    fn answers_of_any_kind_are_read() {
        const PIECES: [&str; 32] = [
            "{",
            "}",
            "[",
            "]",
            "\"",
            "\"a\"",
            ":",
            ",",
            "1",
            "{\"a\":1}",
            "\n",
            "```",
            "\n```\n",
            "~~~json\n",
            "<think>",
            "</think>",
            "<think/>",
            "<think \n",
            ">",
            "<reasoning>",
            "[THINK]",
            "◁think▷",
            "◁/think▷",
            "`",
            "'",
            "é",
            " ",
            "\\",
            "//",
            "…",
            "\u{1b}[1m",
            "a:",
        ];
        let mut random = fastrand::Rng::with_seed(7);
        for _ in 0..20_000 {
            let answer: String = (0..random.usize(1..24)).filter_map(|_| random.choice(PIECES)).collect();
            let search = search(&answer);
            for (place, value) in search.values.iter().enumerate() {
                assert!(parse(value).is_ok(), "{answer:?}: {value:?}");
                // But for the one that is alone, each lies before the one that comes first.
                let start = |value: &str| value.as_ptr() as usize;
                let ordered = |pair: &[&str]| start(pair[1]) + pair[1].len() <= start(pair[0]);
                assert!(place < 2 || ordered(&search.values[place - 1..=place]), "{answer:?}");
            }
            assert_eq!(
                search.values.is_empty() && search.best.is_none(),
                search.best.is_none(),
                "{answer:?}"
            );
            let split = crate::reasoning::split(&answer);
            let kept: usize = split.rest.len() + split.reasoning.iter().map(|part| part.len()).sum::<usize>();
            assert!(kept <= answer.len(), "{answer:?}");
        }
    }

    #[test]
    fn the_last_values_are_tried() {
        let many: String = (0..1_000).map(|n| format!("{{\"a\":{n}}} ")).collect();
        let values = search(&many).values;
        assert_eq!((values.len(), values[0]), (MAX_VALUES, "{\"a\":999}"));
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
            ("numbers", "[1,".repeat(MANY)),
            ("words", "[n".repeat(MANY)),
            ("nested", deep),
            ("cut off", "{\"a\":[".repeat(MANY)),
            ("cut off strings", "{\"".repeat(MANY)),
            ("strings of braces", "{\"{".repeat(MANY)),
            ("keys of braces", "{\":".repeat(MANY)),
            ("broken", "{\"a\":x} ".repeat(MANY)),
            ("broken, not closed", "{\"a\":x ".repeat(MANY)),
            ("names", "{a:".repeat(MANY)),
            ("names in blocks", "```\n{a:\n```\n".repeat(MANY / 10)),
            ("names, closed", "{a: }".repeat(MANY)),
            ("name", format!("{{{}", "a".repeat(MANY))),
            ("apostrophes", "{'".repeat(MANY)),
            ("escaped quotation marks", format!("{{\"{}", "{\\\"".repeat(MANY))),
            ("escaped backslashes", format!("{{\"{}", "{\\\\\"".repeat(MANY))),
            ("strings that cannot stand", "{\"\" ".repeat(MANY)),
            ("strings before spaces", format!("{}{}", "{\"\"".repeat(MANY), " ".repeat(MANY))),
            ("lines", "{\n".repeat(MANY)),
            ("spaces", "{ \n ".repeat(MANY)),
            ("backslashes", "\\".repeat(MANY)),
            ("fences", "```\n{\n".repeat(MANY)),
            ("fenced", "```\n{\"a\n```\n}\n".repeat(MANY)),
            ("fences that differ", (0..1000).map(|n| format!("{}\n", "`".repeat(n))).collect()),
            ("one long fence", "`".repeat(MANY)),
            ("reasoning", "<think>".repeat(MANY)),
            ("closed reasoning", "<think>{}</think>".repeat(MANY)),
            ("reasoning that is not opened", "{}</think>".repeat(MANY)),
            ("reasoning in fences", "```\n<think>{}\n```\n".repeat(MANY)),
            ("values in reasoning", format!("{}</think>", "{} ".repeat(MANY))),
        ] {
            assert_eq!(first(&answer), None, "{name}");
        }
        assert_eq!(first(&"{}".repeat(MANY)), Some(serde_json::json!({})));
    }

    #[test]
    fn a_fault_is_told_with_its_place() {
        for (text, expected) in [
            (
                "{\"a\": \"x\ny\"}",
                "a line break within a string; write it as \\n (line 1, column 9 of the value, after `{\"a\": \"x`)",
            ),
            (
                "{\n \"a\": \"é\ty\"}",
                "a tab within a string; write it as \\t (line 2, column 9 of the value, after `\"a\": \"é`)",
            ),
            (
                "{\"a\": \"\r\"}",
                "a line break within a string; write it as \\r (line 1, column 8 of the value, after `{\"a\": \"`)",
            ),
            (
                "{\"a\": \"\0\"}",
                "the control character U+0000; within a string write it as \\u0000 (line 1, column 8 of the value, after `{\"a\": \"`)",
            ),
            (
                "{\"a\": \"\u{1b}[\"}",
                "a terminal escape code, and not a whole one; answer without colours (line 1, column 8 of the value, after `{\"a\": \"`)",
            ),
            (
                "{\u{1b}]0;\"a\": 1}",
                "a terminal escape code, and not a whole one; answer without colours (line 1, column 2 of the value, after `{`)",
            ),
            ("{\"a\": 1", "it breaks off before its end (line 1, column 8 of the value, after `{\"a\": 1`)"),
            ("{\"a\": 1,}", "trailing comma (line 1, column 9 of the value, after `{\"a\": 1,`)"),
            ("{a: 1}", "key must be a string (line 1, column 2 of the value, after `{`)"),
            (
                "{\"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" 1}",
                "expected `:` (line 1, column 45 of the value, after `aaaaaaaaaaaaaaaaaaaaaaaaaaaaa\" `)",
            ),
        ] {
            let error = parse(text).unwrap_err();
            assert_eq!(fault(text, &error), format!("not JSON: {expected}"), "{text}");
        }
        let deep = "[".repeat(1000) + &"]".repeat(1000);
        assert!(fault(&deep, &parse(&deep).unwrap_err()).starts_with("not JSON: it is nested too deeply"));
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

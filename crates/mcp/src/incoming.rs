//! What a client sends, as bytes: put right where it can be understood, refused where it cannot, before `rmcp` reads it.
//!
//! `rmcp` ignores text that is no JSON, and so a client waits for an answer that never comes. Here every request has
//! one.

use std::borrow::Cow;
use std::collections::HashMap;

use serde::de::IgnoredAny;
use serde_json::value::RawValue;
use serde_json::{Value, json};

/// The longest message: what a script and its args may have, and their JSON around it.
pub(crate) const MAX_BYTES: usize = 16 * 1024 * 1024;

/// How deep the JSON of a message may be nested: what its parser takes.
const MAX_DEPTH: usize = 127;

const UTF8_BOM: &[u8] = b"\xEF\xBB\xBF";

/// A message that `rmcp` can read.
#[derive(Debug, PartialEq)]
pub(crate) struct Readable<'a> {
    pub(crate) text: Cow<'a, str>,
    /// The id of a request; `null` for what has none.
    pub(crate) id: Value,
}

/// Why a message is not handed on.
#[derive(Debug, PartialEq)]
pub(crate) enum Fault {
    /// It is answered with an error.
    Refused(Refusal),
    /// It asks for no answer: a notification, or an answer itself. Two programs that answer each other's errors would
    /// never stop.
    Ignored,
}

/// An error as JSON-RPC has it.
#[derive(Debug, PartialEq)]
pub(crate) struct Refusal {
    id: Value,
    code: i32,
    message: String,
}

impl Refusal {
    /// The text is not one message: no JSON, too long, or a batch.
    pub(crate) const PARSE: i32 = -32700;
    /// It is JSON, but no message.
    pub(crate) const INVALID_REQUEST: i32 = -32600;
    /// A request's parameters are not what it takes.
    pub(crate) const INVALID_PARAMS: i32 = -32602;

    pub(crate) fn new(id: Value, code: i32, message: impl Into<String>) -> Self {
        Self { id, code, message: message.into() }
    }

    pub(crate) fn json(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": self.id, "error": {"code": self.code, "message": self.message}})
    }
}

/// Reads a message as far as that decides who answers it.
///
/// # Errors
/// With what is to be answered, if anything is.
pub(crate) fn read(bytes: &[u8]) -> Result<Readable<'_>, Fault> {
    let refuse = |id, code, message: String| Err(Fault::Refused(Refusal::new(id, code, message)));
    let bytes = bytes.strip_prefix(UTF8_BOM).unwrap_or(bytes);
    let Ok(text) = std::str::from_utf8(bytes) else {
        return refuse(Value::Null, Refusal::PARSE, "the message is not UTF-8".into());
    };
    // Skips through the text: no depth is too deep for that.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(text) {
        return refuse(Value::Null, Refusal::PARSE, format!("the message is not valid JSON: {error}"));
    }
    let Scan { depth, lone_surrogates } = Scan::of(text.as_bytes());
    let text = with_whole_characters(text, &lone_surrogates);
    if text.trim_start().starts_with('[') {
        let message = "batches are not taken: send each message on its own";
        return refuse(Value::Null, Refusal::PARSE, message.into());
    }
    let Ok(fields) = serde_json::from_str::<HashMap<String, &RawValue>>(&text) else {
        let message = "a message is a JSON object";
        return refuse(Value::Null, Refusal::INVALID_REQUEST, message.into());
    };
    let field =
        |name: &str| fields.get(name).and_then(|value| serde_json::from_str::<Value>(value.get()).ok());
    let id = field("id").filter(is_id);
    let Some(method) = fields.get("method") else {
        return match fields.contains_key("result") || fields.contains_key("error") {
            true if depth > MAX_DEPTH => Err(Fault::Ignored),
            true => Ok(Readable { id: Value::Null, text }),
            false => {
                let message = "a message has a method, a result or an error; this one has none";
                refuse(id.unwrap_or_default(), Refusal::INVALID_REQUEST, message.into())
            }
        };
    };
    let invalid = if fields.contains_key("id") && id.is_none() {
        Some("id must be a string or an integer")
    } else if field("jsonrpc") != Some(json!("2.0")) {
        Some("jsonrpc must be \"2.0\"")
    } else if !method.get().starts_with('"') {
        Some("method must be a string")
    } else {
        None
    };
    let params = fields.get("params").map_or("{", |params| params.get());
    match (invalid, id) {
        (Some(message), id) => refuse(id.unwrap_or_default(), Refusal::INVALID_REQUEST, message.into()),
        (None, None) if depth > MAX_DEPTH => Err(Fault::Ignored),
        (None, Some(id)) if !params.starts_with(['{', 'n']) => {
            refuse(id, Refusal::INVALID_PARAMS, "params must be an object".into())
        }
        (None, Some(id)) if depth > MAX_DEPTH => {
            let message =
                format!("the message must not be nested deeper than {MAX_DEPTH} levels, got {depth}");
            refuse(id, Refusal::INVALID_PARAMS, message)
        }
        (None, id) => {
            let id = id.unwrap_or_default();
            Ok(Readable { text, id })
        }
    }
}

fn is_id(value: &Value) -> bool {
    value.is_string() || value.is_i64()
}

/// What one pass over JSON text tells.
struct Scan {
    /// How deep its arrays and objects are nested.
    depth: usize,
    /// Where the escapes of half a character stand, such as `\ud83d` alone. JavaScript takes them, Unicode does not.
    lone_surrogates: Vec<usize>,
}

/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

impl Scan {
    fn of(json: &[u8]) -> Self {
        let (mut depth, mut deepest, mut in_string, mut at) = (0usize, 0, false, 0);
        let mut lone_surrogates = Vec::new();
        while let Some(&byte) = json.get(at) {
            match byte {
                b'\\' if in_string => match unit(json, at) {
                    None => at += 1,
                    Some(0xD800..=0xDBFF) if matches!(unit(json, at + ESCAPE), Some(0xDC00..=0xDFFF)) => {
                        at += 2 * ESCAPE - 1;
                    }
                    Some(0xD800..=0xDFFF) => {
                        lone_surrogates.push(at);
                        at += ESCAPE - 1;
                    }
                    Some(_) => at += ESCAPE - 1,
                },
                b'"' => in_string = !in_string,
                _ if in_string => {}
                b'[' | b'{' => {
                    depth += 1;
                    deepest = deepest.max(depth);
                }
                b']' | b'}' => depth = depth.saturating_sub(1),
                _ => {}
            }
            at += 1;
        }
        Self { depth: deepest, lone_surrogates }
    }
}

/// The UTF-16 code unit that an escape at this place stands for.
fn unit(json: &[u8], at: usize) -> Option<u16> {
    let digits = json.get(at..at + ESCAPE)?.strip_prefix(b"\\u")?;
    u16::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok()
}

/// Puts the replacement character in place of half characters, as JavaScript does where text leaves it.
fn with_whole_characters<'a>(text: &'a str, lone_surrogates: &[usize]) -> Cow<'a, str> {
    if lone_surrogates.is_empty() {
        return Cow::Borrowed(text);
    }
    let (mut whole, mut from) = (String::with_capacity(text.len()), 0);
    for &at in lone_surrogates {
        whole.push_str(&text[from..at]);
        whole.push_str("\\ufffd");
        from = at + ESCAPE;
    }
    whole.push_str(&text[from..]);
    Cow::Owned(whole)
}

/// Finds the id of a message that is too long to be kept, from the bytes that go by.
#[derive(Debug, Default)]
pub(crate) struct IdFinder {
    depth: usize,
    in_string: bool,
    escaped: bool,
    /// What stands between two separators of the outermost object; the beginning of it.
    part: Vec<u8>,
    is_id: bool,
    id: Option<Value>,
}

/// The longest part that is kept: an id and not a script.
const MAX_PART: usize = 256;

impl IdFinder {
    /// The bytes that come next.
    pub(crate) fn pass(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            let plain = !self.in_string;
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_string => self.escaped = true,
                b'"' => self.in_string = !self.in_string,
                b'{' | b'[' if plain => self.depth += 1,
                b'}' | b']' if plain => {
                    self.end_part(byte);
                    self.depth = self.depth.saturating_sub(1);
                }
                _ => {}
            }
            let separates = matches!(byte, b',' | b':') || (byte == b'{' && self.part.is_empty());
            if plain && self.depth == 1 && separates {
                self.end_part(byte);
            } else if self.depth == 1 && self.part.len() < MAX_PART {
                self.part.push(byte);
            }
        }
    }

    fn end_part(&mut self, separator: u8) {
        if self.depth != 1 {
            return;
        }
        let part = std::mem::take(&mut self.part);
        match separator {
            b':' => self.is_id = part.trim_ascii() == b"\"id\"",
            _ if std::mem::take(&mut self.is_id) => {
                self.id = serde_json::from_slice(&part).ok().filter(is_id)
            }
            _ => {}
        }
    }

    /// The id, once the message has gone by; `null` if it has none.
    pub(crate) fn found(self) -> Value {
        self.id.unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(text: &str) -> (i32, Value) {
        match read(text.as_bytes()) {
            Err(Fault::Refused(Refusal { id, code, .. })) => (code, id),
            other => panic!("{text}: {other:?}"),
        }
    }

    #[test]
    fn what_is_no_message_is_refused_with_its_id_if_that_can_be_told() {
        let deep = |n| format!("{}{}", "[".repeat(n), "]".repeat(n));
        let request = |params: &str| {
            format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"a":{params}}}}}"#)
        };
        for (text, code, id) in [
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping""#, -32700, json!(null)),
            ("", -32700, json!(null)),
            ("hello", -32700, json!(null)),
            ("Content-Length: 52", -32700, json!(null)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"ping"} x"#, -32700, json!(null)),
            ("{'id': 5}", -32700, json!(null)),
            (r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#, -32700, json!(null)),
            (" []", -32700, json!(null)),
            ("5", -32600, json!(null)),
            ("null", -32600, json!(null)),
            ("{}", -32600, json!(null)),
            (r#"{"id":5}"#, -32600, json!(5)),
            (r#"{"id":5,"method":"ping"}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"1.0","id":"a","method":"ping"}"#, -32600, json!("a")),
            (r#"{"jsonrpc":"2.0","id":5,"method":7}"#, -32600, json!(5)),
            (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":{},"method":"ping"}"#, -32600, json!(null)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":[]}"#, -32602, json!(5)),
            (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":"x"}"#, -32602, json!(5)),
            (&request(&deep(150)), -32602, json!(5)),
            (&request(&deep(100_000)), -32602, json!(5)),
        ] {
            assert_eq!(refused(text), (code, id), "{}", &text[..text.len().min(100)]);
        }
        assert!(read(request(&deep(100)).as_bytes()).is_ok());
        let latin = read(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"caf\xE9\"}");
        assert!(matches!(latin, Err(Fault::Refused(Refusal { code: -32700, .. }))), "{latin:?}");
        let refusal = Refusal::new(Value::Null, -32700, "no").json().to_string();
        assert!(refusal.contains(r#""id":null"#), "{refusal}");
    }

    #[test]
    fn what_asks_for_no_answer_gets_none() {
        let deep = format!("{}{}", "[".repeat(200), "]".repeat(200));
        for text in [
            format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{deep}}}"#),
            format!(r#"{{"jsonrpc":"2.0","id":1,"result":{deep}}}"#),
        ] {
            assert_eq!(read(text.as_bytes()), Err(Fault::Ignored), "{text}");
        }
        let echoed = Refusal::new(Value::Null, -32700, "no").json().to_string();
        assert!(read(echoed.as_bytes()).is_ok(), "an error is no request");
    }

    #[test]
    fn a_message_is_read_with_a_byte_order_mark_and_any_id() {
        let text = "\u{feff}{\"jsonrpc\":\"2.0\",\"id\":\"é\",\"method\":\"ping\"} \r";
        let Ok(Readable { id, .. }) = read(text.as_bytes()) else { panic!("it is read") };
        assert_eq!(id, json!("é"));
        let notification = read(br#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#).unwrap();
        assert_eq!(notification.id, Value::Null);
    }

    #[test]
    fn half_characters_are_replaced_and_whole_ones_kept() {
        for (given, taken) in [
            (r"\ud83d", r"\ufffd"),
            (r"\ude00", r"\ufffd"),
            (r"\ud83d\ude00", r"\ud83d\ude00"),
            (r"\ud83dx\ude00", r"\ufffdx\ufffd"),
            (r"\ud83d\ud83d\ude00", r"\ufffd\ud83d\ude00"),
            (r"\ude00\ud83d", r"\ufffd\ufffd"),
            (r"\\ud83d", r"\\ud83d"),
            (r"\\\uD83D", r"\\\ufffd"),
            (r#"\"\ud83d\""#, r#"\"\ufffd\""#),
            (r"\u00e9\n", r"\u00e9\n"),
        ] {
            let text = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{given}"}}"#);
            let read = read(text.as_bytes()).unwrap_or_else(|fault| panic!("{given}: {fault:?}"));
            assert_eq!(read.text, format!(r#"{{"jsonrpc":"2.0","id":5,"method":"{taken}"}}"#));
            assert!(serde_json::from_str::<Value>(&read.text).is_ok(), "{given}");
        }
    }

    #[test]
    fn the_id_of_what_is_too_long_is_found_wherever_it_stands() {
        for (text, id) in [
            (r#"{"jsonrpc":"2.0","id":5,"method":"x","params":{"id":6}}"#, json!(5)),
            (
                r#"{"method":"x","params":{"a":"}\",\"id\":7","b":[{"id":8}]},"jsonrpc":"2.0","id":"last"}"#,
                json!("last"),
            ),
            (r#" { "a" : ":" , "id" : 5 } "#, json!(5)),
            (r#"{"params":"id","method":"id"}"#, json!(null)),
            (r#"{"id":null,"method":"id"}"#, json!(null)),
            (r#"{"id":[5],"method":"id"}"#, json!(null)),
            (r#"[{"id":5}]"#, json!(null)),
            ("xxxx", json!(null)),
        ] {
            for step in [1, 3, text.len()] {
                let mut finder = IdFinder::default();
                text.as_bytes().chunks(step).for_each(|bytes| finder.pass(bytes));
                assert_eq!(finder.found(), id, "{text}");
            }
        }
        let mut finder = IdFinder::default();
        finder.pass(format!(r#"{{"params":"{}","id":9}}"#, "x".repeat(100_000)).as_bytes());
        assert_eq!((finder.part.capacity() <= 2 * MAX_PART, finder.found()), (true, json!(9)));
    }
}

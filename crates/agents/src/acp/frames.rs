//! The lines that an agent writes: messages of the protocol, and what else gets among them.
//!
//! An agent shares its standard output with its runtime, its libraries and its shell. So a line may begin with a byte
//! order mark or an escape sequence of terminals, or be no message at all. What cannot be seen is taken off; a line of
//! text is kept for the reasons of failures; a message that cannot be read ends the attempt, since it may have been a
//! part of the answer.

use std::borrow::Cow;

use serde_json::Value;

use crate::halves;

/// What a line holds, in its order.
#[derive(Debug, PartialEq)]
pub(super) enum Item {
    /// A message: as it was read, and its text for who reads it next. In the former, halves of characters are
    /// [kept](halves::kept).
    Message(Value, String),
    /// Something else.
    Stray(String),
    /// What seems to be a message and cannot be read.
    Broken(String),
}

/// Cuts what is read into lines.
#[derive(Debug, Default)]
pub(super) struct Lines {
    line: Vec<u8>,
}

impl Lines {
    /// The lines that end with these bytes; `Err` once one is longer than `most`.
    pub(super) fn push(&mut self, mut bytes: &[u8], most: usize) -> Result<Vec<Vec<u8>>, TooLong> {
        let mut lines = Vec::new();
        while let Some(end) = bytes.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&bytes[..end]);
            bytes = &bytes[end + 1..];
            lines.push(std::mem::take(&mut self.line));
        }
        self.line.extend_from_slice(bytes);
        if self.line.len() > most { Err(TooLong) } else { Ok(lines) }
    }

    /// The line that has no end yet.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.line)
    }
}

/// A line that never ends.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct TooLong;

/// Reads a line.
pub(super) fn read(line: &[u8]) -> Vec<Item> {
    let text = decoded(line);
    let text = halves::kept(&text);
    let visible = without_escapes(&text);
    let mut items = Vec::new();
    let mut rest = visible.trim_matches(is_invisible);
    while !rest.is_empty() {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        match values.next().filter(|_| rest.starts_with('{')) {
            Some(Ok(value)) => {
                let (message, after) = rest.split_at(values.byte_offset());
                rest = after.trim_start_matches(is_invisible);
                let text = halves::joined(message).into_owned();
                items.push(match seems(&value) {
                    Seems::Message => Item::Message(value, text),
                    Seems::Wrong => Item::Broken(text),
                    Seems::Other => Item::Stray(text),
                });
            }
            _ => {
                let text = halves::joined(rest).into_owned();
                items.push(if text.contains("\"jsonrpc\"") { Item::Broken(text) } else { Item::Stray(text) });
                break;
            }
        }
    }
    // An escape sequence that has no end hides all that follows.
    if items.is_empty() && text.contains("\"jsonrpc\"") {
        items.push(Item::Broken(halves::joined(&text).into_owned()));
    }
    items
}

enum Seems {
    Message,
    /// Meant as one, and not as the protocol wants it.
    Wrong,
    Other,
}

fn seems(value: &Value) -> Seems {
    let has = |name: &str| value.get(name).is_some();
    let is_call = value.get("method").is_some_and(Value::is_string);
    let is_response = has("id") && (has("result") || has("error"));
    match value.get("jsonrpc") {
        Some(version) if version == "2.0" && (is_call || is_response) => Seems::Message,
        Some(_) => Seems::Wrong,
        None if is_response || is_call && has("params") => Seems::Wrong,
        None => Seems::Other,
    }
}

/// Bytes as text. Half a surrogate pair that was written as if it were a character becomes an escape; any other byte
/// that is no UTF-8 becomes U+FFFD.
fn decoded(mut bytes: &[u8]) -> Cow<'_, str> {
    let Err(error) = str::from_utf8(bytes) else { return String::from_utf8_lossy(bytes) };
    let mut text = String::new();
    let mut error = Some(error);
    while let Some(cut) = error {
        let (valid, rest) = bytes.split_at(cut.valid_up_to());
        text.push_str(&String::from_utf8_lossy(valid));
        bytes = match rest {
            [0xed, second @ 0xa0..=0xbf, third @ 0x80..=0xbf, rest @ ..] => {
                let code = 0xd000 | (u16::from(*second & 0x3f) << 6) | u16::from(*third & 0x3f);
                text.push_str(&format!("\\u{code:04x}"));
                rest
            }
            rest => {
                text.push(char::REPLACEMENT_CHARACTER);
                &rest[cut.error_len().unwrap_or(rest.len()).min(rest.len())..]
            }
        };
        error = str::from_utf8(bytes).err();
    }
    text.push_str(&String::from_utf8_lossy(bytes));
    Cow::Owned(text)
}

/// The text without the escape sequences of terminals. JSON cannot have the character that they begin with.
fn without_escapes(text: &str) -> Cow<'_, str> {
    const ESCAPE: char = '\u{1b}';
    let Some(first) = text.find(ESCAPE) else { return Cow::Borrowed(text) };
    let mut out = text[..first].to_owned();
    let mut rest = &text[first..];
    while let Some(sequence) = rest.strip_prefix(ESCAPE) {
        rest = &sequence[escape_length(sequence)..];
        let next = rest.find(ESCAPE).unwrap_or(rest.len());
        out.push_str(&rest[..next]);
        rest = &rest[next..];
    }
    Cow::Owned(out)
}

/// How much of what follows an escape character belongs to it (ECMA-48, section 5).
fn escape_length(sequence: &str) -> usize {
    let bytes = sequence.as_bytes();
    let until = |from: usize, end: fn(u8) -> bool| {
        bytes[from..].iter().position(|byte| end(*byte)).map_or(bytes.len(), |at| from + at + 1)
    };
    match bytes.first() {
        // Parameters and a final byte.
        Some(b'[') => until(1, |byte| !matches!(byte, 0x20..=0x3f)),
        // A text, such as a title, up to a bell or the string terminator: an escape of its own.
        Some(b']' | b'P' | b'X' | b'^' | b'_') => {
            let end = until(1, |byte| matches!(byte, 0x07 | 0x1b));
            if bytes[..end].ends_with(b"\x1b") { end - 1 } else { end }
        }
        // Such as the choice of a character set.
        Some(0x20..=0x2f) => until(0, |byte| !matches!(byte, 0x20..=0x2f)),
        // Not `{`, which has no meaning there and begins a message.
        Some(0x30..=0x7a | 0x7c..=0x7e) => 1,
        _ => 0,
    }
}

/// What may stand before and after a message, since nothing is seen of it.
fn is_invisible(character: char) -> bool {
    character.is_whitespace() || character.is_control() || matches!(character, '\u{feff}' | '\u{200b}')
}

#[cfg(test)]
mod tests {
    use super::*;

    const MESSAGE: &str = r#"{"jsonrpc":"2.0","method":"m"}"#;

    fn messages(line: impl AsRef<[u8]>) -> Vec<String> {
        let text = |item| match item {
            Item::Message(_, text) => text,
            other => panic!("{other:?} in {:?}", String::from_utf8_lossy(line.as_ref())),
        };
        read(line.as_ref()).into_iter().map(text).collect()
    }

    #[test]
    fn what_cannot_be_seen_around_a_message_is_taken_off() {
        for (before, after) in [
            ("", ""),
            ("", "\r"),
            (" \t", " "),
            ("\u{feff}", ""),
            ("\u{feff}\u{feff}", "\u{feff}"),
            ("\0", "\0"),
            ("\r", ""),
            ("\x1b]0;ready\x07", ""),
            ("\x1b]0;ready\x1b\\", ""),
            ("", "\x1b]0;idle\x07"),
            ("\x1b]0;{\"a\":1}\x07", ""),
            ("\x1b]2;caf\u{e9} \u{1f600}\x07\u{feff}", "\x1b[0m"),
            ("\x1b[?25l\x1b[2K\x1b[1;31m", "\x1b[?25h"),
            ("\x1bc\x1b(B\x1b7", "\x1b8"),
            ("\x1bP1$r0m\x1b\\", ""),
            ("\x1b", ""),
            ("\u{9b}", ""),
        ] {
            assert_eq!(messages(format!("{before}{MESSAGE}{after}")), [MESSAGE], "{before:?} {after:?}");
        }
        assert_eq!(messages(format!("{MESSAGE}{MESSAGE} \x1b[0m{MESSAGE}")), [MESSAGE; 3]);
        assert_eq!(messages("\x1b[2K\u{feff}\r"), [""; 0]);
    }

    #[test]
    fn what_is_seen_is_no_message() {
        for line in [
            "Loading",
            "{",
            "}",
            "{}",
            "[1]",
            "\"jsonrpc",
            r#"{"level":"info","msg":"sent {\"jsonrpc\":\"2.0\"}"}"#,
            r#"{"method":"GET","path":"/"}"#,
            r#"{"level":"debug","frame":{"jsonrpc":"2.0","method":"m"}}"#,
        ] {
            assert_eq!(read(line.as_bytes()), [Item::Stray(line.into())], "{line}");
        }
        assert_eq!(read(b"\x1b[31mError: no license\x1b[0m"), [Item::Stray("Error: no license".into())]);
        let [Item::Message(..), Item::Stray(after)] = &read(format!("{MESSAGE} ok").as_bytes())[..] else {
            panic!("not both");
        };
        assert_eq!(after, "ok");
    }

    #[test]
    fn a_message_that_cannot_be_read_is_not_lost() {
        for line in [
            r#"{"jsonrpc":"2.0","method":"m""#,
            r#"{"jsonrpc":"2.0","method":"m","params":}"#,
            r#"{"jsonrpc":"2.0","meth{"jsonrpc":"2.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0"}"#,
            r#"{"jsonrpc":"1.0","method":"m"}"#,
            r#"{"jsonrpc":"2.0","id":1}"#,
            r#"{"id":1,"result":{}}"#,
            r#"{"method":"session/update","params":{}}"#,
            r#"[{"jsonrpc":"2.0","method":"m"}]"#,
            // It may be a message, and it may be a log of one.
            r#"Loading… {"jsonrpc":"2.0","method":"m"}"#,
            "{\"jsonrpc\":\"2.0\",\"method\":\"a\tb\"}",
            r#"  "jsonrpc": "2.0","#,
            "\x1b]0;no end {\"jsonrpc\":\"2.0\",\"method\":\"m\"}",
        ] {
            let items = read(line.as_bytes());
            assert!(matches!(items.last(), Some(Item::Broken(_))), "{line}: {items:?}");
        }
    }

    #[test]
    fn halves_of_characters_and_bytes_that_are_no_text_are_survived() {
        for (line, expected) in [
            (&br#"{"jsonrpc":"2.0","method":"\ud83d"}"#[..], "\u{fffd}"),
            (br#"{"jsonrpc":"2.0","method":"\ud83d\ude00"}"#, "\\ud83d\\ude00"),
            (b"{\"jsonrpc\":\"2.0\",\"method\":\"\xed\xa0\xbd\"}", "\u{fffd}"),
            (b"{\"jsonrpc\":\"2.0\",\"method\":\"\xed\xa0\xbd\xed\xb8\x80\"}", "\\ud83d\\ude00"),
            (b"{\"jsonrpc\":\"2.0\",\"method\":\"caf\xe9!\xf0\x9f\"}", "caf\u{fffd}!\u{fffd}"),
            (b"\xff{\"jsonrpc\":\"2.0\",\"method\":\"\xed\"}", "\u{fffd}"),
        ] {
            let [.., Item::Message(_, text) | Item::Broken(text)] = &read(line)[..] else {
                panic!("{:?}", String::from_utf8_lossy(line));
            };
            assert!(text.ends_with(&format!("\"{expected}\"}}")), "{text}");
        }
    }

    #[test]
    fn lines_come_whole_however_they_are_read() {
        let text = b"a\n\nbcd\r\ne";
        for size in 1..text.len() {
            let mut lines = Lines::default();
            let mut found: Vec<_> =
                text.chunks(size).flat_map(|bytes| lines.push(bytes, 100).unwrap()).collect();
            found.push(lines.rest());
            assert_eq!(found, [&b"a"[..], b"", b"bcd\r", b"e"]);
        }
    }

    #[test]
    fn a_line_that_never_ends_is_not_kept() {
        let mut lines = Lines::default();
        assert!(lines.push(&b"0123456789\n".repeat(100), 10).is_ok());
        let fate = (0..100).find_map(|_| lines.push(b"xxxxx", 100).err());
        assert_eq!((fate, lines.rest().len()), (Some(TooLong), 105));
    }

    // Anything worse than linear takes minutes here.
    #[test]
    fn hostile_lines_take_no_time() {
        const MANY: usize = 1_000_000;
        for line in [
            "{".repeat(MANY),
            "{}".repeat(MANY),
            "{\"a\":".repeat(MANY),
            "\x1b".repeat(MANY),
            "\x1b[".repeat(MANY),
            "\x1b]".repeat(MANY),
            "\u{feff}".repeat(MANY),
            "\\ud83d".repeat(MANY),
        ] {
            assert!(!read(line.as_bytes()).iter().any(|item| matches!(item, Item::Message(..))));
        }
        for bytes in [b"\xff".repeat(MANY), b"\xed\xa0\xbd".repeat(MANY)] {
            assert!(!read(&bytes).is_empty());
        }
    }
}

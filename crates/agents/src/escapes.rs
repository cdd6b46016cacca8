//! Terminal escape codes in what agents say: colours, titles, links. They are taken out before an answer is read.
//!
//! Only whole sequences go, those of 7 bits (`ESC [`) and of 8 (`U+009B`). What merely begins like one stays, so that no
//! text is lost for a stray character; other control characters stay too. (ECMA-48; xterm's control sequences.)

use std::borrow::Cow;

const ESCAPE: char = '\u{1b}';

/// The text without terminal escape codes. Takes time in proportion to its length.
pub(crate) fn strip(text: &str) -> Cow<'_, str> {
    let mut out = String::new();
    let mut copied = 0;
    let mut at = 0;
    while let Some(found) = text[at..].find(introduces) {
        at += found;
        match sequence(&text[at..]) {
            Some(length) => {
                out.push_str(&text[copied..at]);
                at += length;
                copied = at;
            }
            None => at += text[at..].chars().next().map_or(1, char::len_utf8),
        }
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// Whether a sequence may begin with this character.
pub(crate) fn introduces(c: char) -> bool {
    c == ESCAPE || matches!(c, '\u{90}' | '\u{98}' | '\u{9b}'..='\u{9f}')
}

/// How long the sequence is that a text begins with, if it begins with one.
fn sequence(text: &str) -> Option<usize> {
    let mut chars = text.chars();
    let first = chars.next()?;
    let kind = if first == ESCAPE { chars.next()? } else { seven_bits(first)? };
    let begun = text.len() - chars.as_str().len();
    let rest = chars.as_str();
    match kind {
        '[' => {
            let parameters = rest.find(|c| !matches!(c, '0'..='?'))?;
            let end = parameters + rest[parameters..].find(|c| !matches!(c, ' '..='/'))?;
            let last = rest[end..].chars().next()?;
            matches!(last, '@'..='Z' | 'a'..='z' | '`' | '~').then_some(begun + end + 1)
        }
        ']' | 'P' | 'X' | '^' | '_' => {
            // A terminal reads on for ever; here, a control character that cannot be part of it ends it.
            let end = rest.find(char::is_control)?;
            match rest[end..].chars().next()? {
                '\u{7}' => Some(begun + end + 1),
                '\u{9c}' => Some(begun + end + '\u{9c}'.len_utf8()),
                ESCAPE => rest[end + 1..].starts_with('\\').then_some(begun + end + 2),
                _ => None,
            }
        }
        '(' | ')' | '*' | '+' | '-' | '.' | '/' | '#' | '%' => {
            rest.starts_with(|c| matches!(c, '0'..='~')).then_some(begun + 1)
        }
        '7' | '8' | '=' | '>' | 'c' | 'D' | 'E' | 'H' | 'M' | 'N' | 'O' | 'Z' | 'n' | 'o' => Some(begun),
        _ => None,
    }
}

/// What follows `ESC` where terminals of 7 bits say what this character says.
fn seven_bits(c: char) -> Option<char> {
    introduces(c).then(|| char::from_u32(u32::from(c) - 0x40)).flatten()
}

/// What a process wrote, as text. Bytes that are not UTF-8 become U+FFFD, but for those that terminals of 8 bits take for
/// the beginning or the end of a sequence.
pub(crate) fn decode(bytes: Vec<u8>) -> String {
    let bytes = match String::from_utf8(bytes) {
        Ok(text) => return text,
        Err(error) => error.into_bytes(),
    };
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        match *chunk.invalid() {
            [] => {}
            [byte] if introduces(char::from(byte)) => text.push(char::from(byte)),
            _ => text.push(char::REPLACEMENT_CHARACTER),
        }
    }
    // What turned out to be no sequence is a byte of another encoding.
    match strip(&text) {
        Cow::Borrowed(_) if !text.contains(is_eight_bits) => text,
        stripped => stripped.replace(is_eight_bits, "\u{fffd}"),
    }
}

fn is_eight_bits(c: char) -> bool {
    c != ESCAPE && introduces(c)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_sequences_are_taken_out() {
        for (name, sequence) in [
            ("colour", "\u{1b}[1;37m"),
            ("reset", "\u{1b}[m"),
            ("24 bits", "\u{1b}[38:2::255:0:0m"),
            ("private", "\u{1b}[?25l"),
            ("with an intermediate", "\u{1b}[2 q"),
            ("8 bits", "\u{9b}0m"),
            ("title, ended by BEL", "\u{1b}]0;a {\"title\"} ✓\u{7}"),
            ("link, ended by ST", "\u{1b}]8;;https://example.com\u{1b}\\"),
            ("8 bits, ended by 8 bits", "\u{9d}0;title\u{9c}"),
            ("8 bits, ended by 7", "\u{9d}0;title\u{1b}\\"),
            ("device control", "\u{1b}P$q\"p\u{1b}\\"),
            ("program command", "\u{1b}_Gf=24\u{1b}\\"),
            ("privacy message", "\u{9e}x\u{9c}"),
            ("start of string", "\u{98}x\u{9c}"),
            ("character set", "\u{1b}(B"),
            ("save", "\u{1b}7"),
            ("several", "\u{1b}[1m\u{1b}[m\u{1b}(B\u{9b}m"),
        ] {
            assert_eq!(strip(sequence), "", "{name}");
            assert_eq!(strip(&format!("{{é{sequence}}}{sequence}")), "{é}", "{name}");
        }
    }

    #[test]
    fn what_is_no_whole_sequence_stays() {
        for text in [
            "",
            "[1;37m {\"a\": \"\\u001b[1m\"}",
            "\u{1b}",
            "\u{1b}{\"a\": 1}",
            "\u{1b}\"a\"",
            "\u{1b}[",
            "\u{1b}[1;37",
            "\u{1b}[1;é",
            "\u{1b}[{",
            "\u{1b}]0;never ended {\"a\": 1}",
            "\u{1b}]0;a line\nand another\u{7}",
            "\u{9d}0;x\u{1}\u{9c}",
            "\u{9b}\u{9c}\u{1b}\\",
            "\u{85}\u{7}\0\r\n\t",
        ] {
            assert_eq!(strip(text), text, "{text:?}");
        }
    }

    /// Anything worse than linear takes minutes here.
    #[test]
    fn hostile_text_takes_no_time() {
        for begun in
            ["\u{1b}", "\u{1b}[", "\u{1b}[1", "\u{1b}]", "\u{9d}", "\u{9d}x", "\u{9b}1;", "\u{1b}P\u{98}"]
        {
            let text = begun.repeat(1_000_000);
            assert!(strip(&text).len() <= text.len());
        }
        let open = format!("\u{1b}]{}", "x".repeat(10_000_000));
        assert_eq!(strip(&open), open);
    }

    #[test]
    fn bytes_that_are_not_utf_8_are_replaced_unless_a_terminal_obeys_them() {
        for (bytes, text) in [
            (&b"\x9b1;37m{\x9bm}"[..], "{}"),
            (b"\x9d0;title\x9c\x9b31mred\xff", "red\u{fffd}"),
            (b"\x9b\xff", "\u{fffd}\u{fffd}"),
            // Another encoding, in which 0x9c is a ligature of o and e.
            (b"c\x9cur", "c\u{fffd}ur"),
            (b"\x9eena", "\u{fffd}ena"),
            (b"a\x85\x93b", "a\u{fffd}\u{fffd}b"),
            (b"\xe2\x9b\x31m", "\u{fffd}1m"),
            ("\u{9b}1mé".as_bytes(), "\u{9b}1mé"),
        ] {
            assert_eq!(decode(bytes.to_vec()), text, "{bytes:?}");
        }
    }
}

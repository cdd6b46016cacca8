//! Halves of surrogate pairs: what a JSON text of one piece of an answer ends with, and that of the next begins with.
//!
//! Programs whose strings are UTF-16 cut an answer where they like, also within a character. Each piece is then
//! JSON with half a pair in it, such as `"\ud83d"`, that a Rust string cannot hold. [`kept`] makes something of a half
//! that it can hold, and [`joined`] makes a character of two of them, once the pieces are together.

use std::borrow::Cow;

use crate::json;

/// Marks a half, whose own code follows, moved to the private use area. A noncharacter: it is not for texts that are
/// exchanged, so nothing else means the two.
const MARK: char = '\u{fdd0}';
const MOVED: u32 = 0xe000 - 0xd800;

/// The JSON text with each half of a surrogate pair in a form that survives reading it.
pub(crate) fn kept(json: &str) -> Cow<'_, str> {
    json::replace_lone_surrogates(json, |digits, out| {
        let code = u32::from_str_radix(digits, 16).unwrap_or(0xdfff);
        out.push(MARK);
        out.push(char::from_u32(code + MOVED).unwrap_or(char::REPLACEMENT_CHARACTER));
    })
}

/// The text with halves that belong together as the character that they are, and others as U+FFFD.
pub(crate) fn joined(text: &str) -> Cow<'_, str> {
    if !text.contains(MARK) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((half, after)) = half(rest) else {
            out.push(MARK);
            rest = &rest[MARK.len_utf8()..];
            continue;
        };
        let pair = self::half(after).and_then(|(low, after)| Some((pair(half, low)?, after)));
        let (character, after) = pair.unwrap_or((char::REPLACEMENT_CHARACTER, after));
        out.push(character);
        rest = after;
    }
    out.push_str(rest);
    Cow::Owned(out)
}

/// The half that a text begins with, and what follows it.
fn half(text: &str) -> Option<(u16, &str)> {
    let mut characters = text.strip_prefix(MARK)?.chars();
    let code = u32::from(characters.next()?).checked_sub(MOVED)?;
    let code = u16::try_from(code).ok().filter(|code| (0xd800..=0xdfff).contains(code))?;
    Some((code, characters.as_str()))
}

fn pair(high: u16, low: u16) -> Option<char> {
    char::decode_utf16([high, low]).next()?.ok()
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    /// The pieces, read and put together.
    fn read(pieces: &[&str]) -> String {
        let read = |piece: &&str| match serde_json::from_str(&kept(piece)).unwrap() {
            Value::String(text) => text,
            other => panic!("{other}"),
        };
        joined(&pieces.iter().map(read).collect::<String>()).into_owned()
    }

    #[test]
    fn a_character_that_was_cut_is_whole_again() {
        for (pieces, expected) in [
            (&[r#""a""#, r#""b""#][..], "ab"),
            (&[r#""nothing \ud83d""#, r#""\ude00 but""#], "nothing \u{1f600} but"),
            (&[r#""\uD83D""#, r#""""#, r#""\uDE00""#], "\u{1f600}"),
            (&[r#""\ud83d\ude00\ud83d""#, r#""\ude00""#], "\u{1f600}\u{1f600}"),
            (&[r#""\ud83d""#, r#""x\ude00""#], "\u{fffd}x\u{fffd}"),
            (&[r#""\ude00""#, r#""\ud83d""#], "\u{fffd}\u{fffd}"),
            (&[r#""\ud83d""#, r#""\ud83d""#, r#""\ude00""#], "\u{fffd}\u{1f600}"),
            (&[r#""x\udfff""#], "x\u{fffd}"),
            (&[r#""\\ud83d""#], "\\ud83d"),
            (&["\"\u{fdd0}\"", "\"\u{fdd0}x\u{e000}\""], "\u{fdd0}\u{fdd0}x\u{e000}"),
        ] {
            assert_eq!(read(pieces), expected, "{pieces:?}");
        }
    }
}

//! Pieces of messages.

use super::lex::{self, Cursor};

/// How much of a name a message shows.
pub(super) const MAX_NAME: usize = 60;
/// How much of what QuickJS says a message shows.
pub(super) const MAX_MESSAGE: usize = 300;

/// What stands at a byte of the text: a word, or what begins there.
pub(super) fn shown(text: &str, at: usize) -> String {
    let mut cursor = Cursor::new(text, at);
    match cursor.word() {
        "" => match cursor.peek() {
            None => "the end of the script".into(),
            Some('"' | '\'') => "a string".into(),
            Some('`') => "a template literal".into(),
            Some(c) if lex::ends_line(c) => "the end of the line".into(),
            Some(c) if c.is_control() => format!("`{}`", c.escape_unicode()),
            Some(c) => format!("`{c}`"),
        },
        word => format!("`{}`", brief(word, MAX_NAME)),
    }
}

/// A text without control characters, and only its beginning when it is long.
pub(super) fn brief(text: &str, max_chars: usize) -> String {
    let shown = text.chars().map(|c| if c.is_control() { char::REPLACEMENT_CHARACTER } else { c });
    let rest = if text.chars().nth(max_chars).is_some() { "…" } else { "" };
    shown.take(max_chars).chain(rest.chars()).collect()
}

/// What to say of TypeScript behind a literal.
pub(super) fn typescript(word: &str) -> String {
    format!("`{word}` is TypeScript; scripts are plain JavaScript, so remove it and the type behind it")
}

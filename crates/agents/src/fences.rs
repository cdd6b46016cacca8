//! Fenced code blocks of Markdown.

use std::ops::Range;

/// A fenced block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fence {
    /// What is between the fences.
    pub(crate) content: Range<usize>,
    /// Where the text goes on after the closing fence.
    pub(crate) end: usize,
}

/// The block that begins with the line at a byte of a text, if one does. One that is not closed reaches to the end.
pub(crate) fn at(text: &str, line: usize) -> Option<Fence> {
    let first = &text[line..line_end(text, line)];
    let (opening, info) = split(first.trim());
    if opening.is_empty() || info.contains('`') {
        return None;
    }
    let from = line + first.len();
    let mut at = from;
    while at < text.len() {
        let end = line_end(text, at);
        let (fence, rest) = split(text[at..end].trim());
        if fence.starts_with(opening) && rest.is_empty() {
            return Some(Fence { content: from..at, end });
        }
        at = end;
    }
    Some(Fence { content: from..text.len(), end: text.len() })
}

/// Where the line with this byte ends, its line end included.
pub(crate) fn line_end(text: &str, at: usize) -> usize {
    text[at..].find('\n').map_or(text.len(), |length| at + length + 1)
}

/// Splits a line into the three or more backticks or tildes that it begins with, if it does, and the rest.
fn split(line: &str) -> (&str, &str) {
    let run = |mark: u8| line.bytes().take_while(|&byte| byte == mark).count();
    let length = run(b'`').max(run(b'~'));
    line.split_at(if length < 3 { 0 } else { length })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_reaches_to_the_fence_that_closes_it() {
        for (text, content) in [
            ("```\na\n```\nb", Some("a\n")),
            ("```json\na\n```", Some("a\n")),
            ("  ~~~~ json\r\n  a\r\n  ~~~~\r\n", Some("  a\r\n")),
            ("````\n```\na\n```\n````", Some("```\na\n```\n")),
            ("```\n```json\n```", Some("```json\n")),
            ("```\na", Some("a")),
            ("```", Some("")),
            ("``\na\n``", None),
            ("```a```", None),
            ("a\n```\nb\n```", None),
        ] {
            assert_eq!(at(text, 0).map(|fence| &text[fence.content]), content, "{text}");
        }
        assert_eq!(at("```\na\n```\nb", 0).map(|fence| fence.end), Some(10));
    }
}

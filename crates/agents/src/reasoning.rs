//! What a model thinks before it answers, where it says so in its answer: `<think>…</think>` and the like.
//!
//! Which tags count, and where, is documented in `docs/agents.md`. A value is never looked for in any of them. A text
//! loses only what stands where models put it, so that text about such tags is left alone.

use std::borrow::Cow;
use std::ops::Range;

use crate::fences;

/// An answer, with what the model thought apart.
///
/// ```
/// use fanfold_agents::reasoning;
///
/// let split = reasoning::split("<think>Is it 3? No.</think>\n\nIt is 4.");
/// assert_eq!((&*split.rest, &*split.reasoning), ("It is 4.", &["Is it 3? No."][..]));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Split<'a> {
    /// What is in the tags, block by block.
    pub reasoning: Vec<&'a str>,
    /// The answer itself: the whole text, unchanged, if there is no reasoning in it, and else what is left, trimmed.
    pub rest: Cow<'a, str>,
}

/// Splits an answer into reasoning and the rest. Takes time in proportion to the length of the answer.
///
/// `<think>` and `<thinking>` count at the start of a line, and the other tags at the start of the answer; at both, further
/// ones may follow at once. A block ends with the first closing tag. One that is never closed counts if the answer
/// begins with it, and reaches to the end. A closing tag that no opening one precedes ends reasoning that began with the
/// answer, as that of models whose opening tag is part of their prompt, unless it stands in a sentence. Tags in fenced code
/// and in quotation marks do not count.
pub fn split(answer: &str) -> Split<'_> {
    let mut splitter = Splitter::default();
    splitter.run(answer);
    let Splitter { blocks, .. } = splitter;
    if blocks.is_empty() {
        return Split { reasoning: Vec::new(), rest: answer.into() };
    }
    let mut rest = String::new();
    let mut copied = 0;
    for block in &blocks {
        rest.push_str(&answer[copied..block.whole.start]);
        copied = block.whole.end;
    }
    rest.push_str(&answer[copied..]);
    let reasoning = blocks.into_iter().map(|block| &answer[block.content]).collect();
    Split { reasoning, rest: rest.trim().to_owned().into() }
}

impl Split<'_> {
    /// Whether there is reasoning, and nothing else.
    pub fn is_all_reasoning(&self) -> bool {
        !self.reasoning.is_empty() && self.rest.is_empty()
    }
}

/// A block of reasoning: with its tags, and without.
struct Block {
    whole: Range<usize>,
    content: Range<usize>,
}

#[derive(Default)]
struct Splitter {
    blocks: Vec<Block>,
    /// Whether there is text outside of the blocks so far, and whether there was before the last block.
    said_something: bool,
    said_before: bool,
    /// Whether an opening tag was seen since the last block.
    opened: bool,
    /// No closing tag follows any more.
    no_more_closed: bool,
}

impl Splitter {
    fn run(&mut self, text: &str) {
        let mut at = 0;
        let mut line = Line::default();
        while at < text.len() {
            if at >= line.end {
                if let Some(fence) = fences::at(text, at) {
                    self.said_something = true;
                    at = fence.end;
                    continue;
                }
                line = Line::at(text, at);
            }
            // Here a line begins, or what follows a block.
            let begins = at + text[at..].find(|c| c != ' ' && c != '\t').unwrap_or(text.len() - at);
            let block = self.opening(text, begins).or_else(|| self.closing(text, at, &line));
            self.said_something |=
                block.is_none() && at < line.words.end && line.words.start < line.words.end;
            at = block.unwrap_or(line.end);
        }
    }

    /// The end of the block that begins at a byte, if one does.
    fn opening(&mut self, text: &str, at: usize) -> Option<usize> {
        let tag = tag(text, at).filter(|tag| tag.kind != Kind::Closing)?;
        if !tag.thinks && self.said_something {
            return None;
        }
        let content = tag.range.end;
        let closing = match tag.kind {
            Kind::Empty => Some(content..content),
            _ if self.no_more_closed => None,
            _ => closing(text, content..text.len()),
        };
        self.no_more_closed |= closing.is_none();
        let closing = match closing {
            Some(closing) => closing,
            None if self.said_something => return None,
            None => text.len()..text.len(),
        };
        let end = closing.end;
        self.block(Block { whole: at..end, content: content..closing.start });
        Some(end)
    }

    /// The end of the closing tag from a byte to the end of its line that ends reasoning which no tag began.
    fn closing(&mut self, text: &str, at: usize, line: &Line) -> Option<usize> {
        for tag in tags(text, at..line.end) {
            if tag.kind != Kind::Closing {
                self.opened = true;
            } else if !self.opened && tag.thinks && !line.is_a_sentence_around(text, &tag.range) {
                let from = self.blocks.last().map_or(0, |block| block.whole.end);
                // What was said since then was reasoning.
                self.said_something = self.said_before;
                self.block(Block { whole: from..tag.range.end, content: from..tag.range.start });
                return Some(tag.range.end);
            }
        }
        None
    }

    fn block(&mut self, block: Block) {
        self.said_before = self.said_something;
        self.opened = false;
        self.blocks.push(block);
    }
}

/// A line of a text.
#[derive(Default)]
struct Line {
    /// From its first word to its last.
    words: Range<usize>,
    /// Where the next line begins.
    end: usize,
}

impl Line {
    fn at(text: &str, start: usize) -> Self {
        let end = fences::line_end(text, start);
        let line = &text[start..end];
        let last = start + line.trim_end().len();
        let first = end - line.trim_start().len();
        Self { words: first..last, end }
    }

    /// Whether there are spaces before a tag and words on both sides of it.
    fn is_a_sentence_around(&self, text: &str, tag: &Range<usize>) -> bool {
        text[..tag.start].ends_with(char::is_whitespace)
            && self.words.start < tag.start
            && tag.end < self.words.end
    }
}

/// A tag around reasoning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Tag {
    pub(crate) kind: Kind,
    pub(crate) range: Range<usize>,
    /// Whether nothing but reasoning has such tags.
    thinks: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Opening,
    Closing,
    /// `<think/>`.
    Empty,
}

/// The names of tags, and whether nothing but reasoning has them.
const NAMES: [(&str, bool); 7] = [
    ("think", true),
    ("thinking", true),
    ("antthinking", true),
    ("seed:think", true),
    ("thought", false),
    ("thoughts", false),
    ("reasoning", false),
];

/// Tags that are not those of markup, as they are written.
const OTHERS: [(&str, Kind); 4] = [
    ("[THINK]", Kind::Opening),
    ("[/THINK]", Kind::Closing),
    ("◁think▷", Kind::Opening),
    ("◁/think▷", Kind::Closing),
];

/// The longest tag, in bytes: attributes are no text.
const MAX_TAG: usize = 200;

/// What tags begin with.
pub(crate) const BEGINNINGS: [char; 3] = ['<', '[', '◁'];

/// The tag at a byte of a text, unless it is in quotation marks of any kind.
pub(crate) fn tag(text: &str, at: usize) -> Option<Tag> {
    let rest = text.get(at..)?;
    let (kind, length, thinks) = match rest.strip_prefix('<') {
        Some(inside) => {
            let (kind, length, thinks) = markup(inside)?;
            (kind, length + 1, thinks)
        }
        None => {
            let (tag, kind) = OTHERS.iter().find(|(tag, _)| rest.starts_with(tag))?;
            (*kind, tag.len(), true)
        }
    };
    let is_mark = |c: char| matches!(c, '`' | '"' | '\'' | '“' | '”' | '‘' | '’' | '«' | '»');
    let quoted = text[..at].ends_with(is_mark) && rest[length..].starts_with(is_mark);
    (!quoted).then_some(Tag { kind, range: at..at + length, thinks })
}

/// What follows a `<`, if it is such a tag: its kind, its length and whether nothing but reasoning has it.
fn markup(inside: &str) -> Option<(Kind, usize, bool)> {
    let name = inside.trim_start_matches(' ');
    let (name, closes) = match name.strip_prefix('/') {
        Some(name) => (name.trim_start_matches(' '), true),
        None => (name, false),
    };
    let length = name.find(|c: char| !c.is_ascii_alphanumeric() && c != ':').unwrap_or(name.len());
    let (_, thinks) = NAMES.iter().find(|(known, _)| known.eq_ignore_ascii_case(&name[..length]))?;
    let attributes = &name[length..];
    let end = attributes.bytes().take(MAX_TAG).position(|byte| matches!(byte, b'>' | b'<'))?;
    let is_tag =
        attributes[end..].starts_with('>') && attributes.starts_with(['>', '/', ' ', '\t', '\r', '\n']);
    let kind = match (closes, attributes[..end].ends_with('/')) {
        (true, _) => Kind::Closing,
        (false, true) => Kind::Empty,
        (false, false) => Kind::Opening,
    };
    is_tag.then(|| (kind, inside.len() - attributes.len() + end + 1, *thinks))
}

/// The tags in a part of a text.
pub(crate) fn tags(text: &str, part: Range<usize>) -> impl Iterator<Item = Tag> {
    let mut at = part.start;
    std::iter::from_fn(move || {
        while at < part.end {
            at += text[at..part.end].find(BEGINNINGS)?;
            match tag(text, at) {
                Some(tag) if tag.range.end <= part.end => {
                    at = tag.range.end;
                    return Some(tag);
                }
                _ => at += text[at..].chars().next().map_or(1, char::len_utf8),
            }
        }
        None
    })
}

/// The closing tag that ends the reasoning which a part of a text begins with.
pub(crate) fn closing(text: &str, part: Range<usize>) -> Option<Range<usize>> {
    tags(text, part).find(|tag| tag.kind == Kind::Closing).map(|tag| tag.range)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rest(answer: &str) -> (String, Vec<&str>) {
        let Split { reasoning, rest } = split(answer);
        (rest.into_owned(), reasoning)
    }

    #[test]
    fn reasoning_is_told_apart() {
        for (answer, expected, reasoning) in [
            ("<think>a</think>b", "b", vec!["a"]),
            ("<think>\n\n</think>\n\nb\n", "b", vec!["\n\n"]),
            ("\n <THINK>a</Think>\nb", "b", vec!["a"]),
            ("<thinking mode=\"deep\">a</thinking >b", "b", vec!["a"]),
            ("< think >a</ think>b", "b", vec!["a"]),
            ("<think\n id=1>a</think>b", "b", vec!["a"]),
            ("<think/>b", "b", vec![""]),
            ("<antThinking>a</antThinking>b", "b", vec!["a"]),
            ("<seed:think>a</seed:think>b", "b", vec!["a"]),
            ("[THINK]a[/THINK]b", "b", vec!["a"]),
            ("◁think▷a◁/think▷b", "b", vec!["a"]),
            ("<think>a</thinking>b", "b", vec!["a"]),
            ("<think>a</think> <think>b</think>\n<thought>c</thought>d", "d", vec!["a", "b", "c"]),
            ("<think>a</think>\nb\n<think>c</think>\nd", "b\n\nd", vec!["a", "c"]),
            ("<think>```\nx</think>b\n```", "b\n```", vec!["```\nx"]),
            (
                "<think>I close with `</think>` or \"</think>\"</think>b",
                "b",
                vec!["I close with `</think>` or \"</think>\""],
            ),
            ("<reasoning>a</reasoning>\nb", "b", vec!["a"]),
            ("<thought>a</thought>b", "b", vec!["a"]),
            ("<think>a", "", vec!["a"]),
            ("<reasoning>a\nb", "", vec!["a\nb"]),
            ("<think>a</think><think>b", "", vec!["a", "b"]),
            ("<think>a</think>", "", vec!["a"]),
            // Models whose prompt ends with the opening tag.
            ("a\nb\n</think>\n\nc", "c", vec!["a\nb\n"]),
            ("a is b.</think>391", "391", vec!["a is b."]),
            ("a is b.</think> It is 391.", "It is 391.", vec!["a is b."]),
            ("a </think>\nc", "c", vec!["a "]),
            ("a\n```\nx\n```\n</think>b\n<think>c</think>d", "b\nd", vec!["a\n```\nx\n```\n", "c"]),
            ("a\n</think>\n<reasoning>b</reasoning>c", "c", vec!["a\n", "b"]),
            // A block within a block.
            ("<think>a <think>b</think> c\n</think>\nd", "d", vec!["a <think>b", " c\n"]),
        ] {
            assert_eq!(rest(answer), (expected.to_owned(), reasoning), "{answer}");
        }
    }

    #[test]
    fn ordinary_text_is_left_alone() {
        for answer in [
            "",
            " a \n",
            "Models think in <think> tags.",
            "Models put <think> and </think> around it.",
            "Remove the stray </think> from line 3.",
            "Write `<think>`, not \"<thinking>\".",
            "`</think>`\nends it.",
            "\"<think>\" is a tag",
            "```xml\n<think>a</think>\n```\nb",
            "~~~\na\n</think>\n~~~",
            "It is so.\n<think> is never closed here",
            "<thinker>a</thinker>",
            "<think-tank>a</think-tank>",
            "<thinks>a",
            "I am thinking</thinks>",
            "a < think",
            "[think] a [/think] b",
            "Here:\n<reasoning>a</reasoning>\n<verdict>b</verdict>",
            "Dear reader,\n<thought>a</thought>\nb",
            "a</reasoning>\nb",
            "{\"html\": \"<think>a</think>\"}",
            "<think",
            "<think <",
            "◁",
            "[THINK",
        ] {
            assert_eq!(split(answer), Split { reasoning: vec![], rest: answer.into() }, "{answer}");
        }
    }

    #[test]
    fn reasoning_alone_is_no_answer() {
        for answer in ["<think>a", "<think>a</think>\n ", "<think></think>", "a\n</think>"] {
            assert!(split(answer).is_all_reasoning(), "{answer}");
        }
        for answer in ["", " ", "a", "<think>a</think>b"] {
            assert!(!split(answer).is_all_reasoning(), "{answer}");
        }
    }

    /// Anything worse than linear takes minutes here.
    #[test]
    fn hostile_answers_take_no_time() {
        for part in [
            "<think>",
            "<think>\n",
            "x\n<think>\n",
            "</think>",
            "</think>\n",
            "x </think> y\n",
            "<think ",
            "<",
            "[",
            "◁",
            "<think>a</think>\n",
            "```\n",
            "```a\n",
            "<think>`</think>`",
            "< ",
            "</",
            "\n",
            "`</think>`\n",
            "x </think> y ",
        ] {
            let answer = part.repeat(1_500_000 / part.len());
            let split = split(&answer);
            assert!(split.rest.len() <= answer.len());
        }
    }
}

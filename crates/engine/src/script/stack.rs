//! Thrown errors, with the author's lines and columns.

use std::cell::OnceCell;
use std::collections::HashSet;

use fanfold_types::WorkflowError;

use super::culprit::Culprit;
use super::tokens::Tokens;
use super::{Script, names};

/// QuickJS writes at most so many frames.
const MAX_FRAMES: usize = 64;

/// Reads what a script threw. The script is looked through once, for all that it threw.
pub(crate) struct Thrown<'a> {
    script: &'a Script,
    tokens: OnceCell<Tokens<'a>>,
    own_names: OnceCell<HashSet<&'a str>>,
}

impl<'a> Thrown<'a> {
    pub(crate) fn by(script: &'a Script) -> Self {
        Self { script, tokens: OnceCell::new(), own_names: OnceCell::new() }
    }

    /// Makes an error of the text of a thrown value: its message, then the frames of its stack, one a line.
    ///
    /// A message can look like anything, frames included, so only the frames at the very end are the stack. A
    /// message that ends in what looks like frames cannot be told from the stack; that only harms itself.
    pub(crate) fn read(&self, text: &str) -> WorkflowError {
        let source = &self.script.source;
        let (message, frames) = split(text);
        let mut shown = message.to_string();
        if let Some(hint) = names::explain(message, || self.own_names(), self.script.dialect) {
            shown.push_str("\n  ");
            shown.push_str(&hint);
        }
        let known = |frame: &Frame<'_>| self.known(frame);
        // Only the innermost frame is where the error is. Before a script's first call QuickJS knows no place at all.
        let last_call = match frames.first().and_then(known) {
            Some((line, column)) => Some(source.offset(line, column)),
            None => frames.iter().all(|frame| known(frame).is_none()).then_some(0),
        };
        let mut culprit = Culprit::of(message).and_then(|culprit| culprit.find(self.tokens(), last_call));
        if culprit.is_some_and(|offset| self.is_of_absent_args(message, offset)) {
            shown.push_str("\n  (args is undefined: the run was given none)");
        }
        let mut place = None;
        for frame in &frames {
            let Some((line, column)) = known(frame) else { continue };
            let (line, column) = match culprit.take() {
                Some(offset) => source.place(offset),
                None => (line, source.column(line, column)),
            };
            place.get_or_insert((line, column));
            shown.push_str(&match frame.function {
                Some(name) => format!("\n    at {name} (workflow:{line}:{column})"),
                None => format!("\n    at workflow:{line}:{column}"),
            });
        }
        if place.is_none()
            && let Some(offset) = culprit
        {
            let (line, column) = *place.insert(source.place(offset));
            shown.push_str(&format!("\n    at workflow:{line}:{column}"));
        }
        let error = WorkflowError::thrown(shown);
        match place {
            Some((line, column)) => error.at(line, column),
            None => error,
        }
    }

    /// Whether what cannot be read there is a property of the global `args`, which is undefined.
    fn is_of_absent_args(&self, message: &str, offset: usize) -> bool {
        let tokens = self.tokens();
        let at = tokens.list.partition_point(|token| token.start < offset);
        let before = |n: usize| at.checked_sub(n).map_or("", |at| tokens.word(at));
        message.ends_with("' of undefined")
            && before(1) == "."
            && before(2) == "args"
            && !matches!(before(3), "." | "?.")
            && !self.own_names().contains("args")
    }

    /// The line of the first frame of a stack that is the script's.
    pub(crate) fn line(&self, stack: &str) -> Option<u32> {
        let frames = stack.lines().filter_map(Frame::parse);
        frames.take(MAX_FRAMES).find_map(|frame| self.known(&frame)).map(|(line, _)| line)
    }

    /// Where a frame is, if the script has such a line.
    fn known(&self, frame: &Frame<'_>) -> Option<(u32, u32)> {
        frame.place.filter(|(line, _)| (1..=self.script.source.lines()).contains(line))
    }

    fn tokens(&self) -> &Tokens<'a> {
        self.tokens.get_or_init(|| Tokens::scan(&self.script.body))
    }

    fn own_names(&self) -> &HashSet<&'a str> {
        self.own_names.get_or_init(|| names::own(self.tokens()))
    }
}

/// The message of what was thrown, and its stack, innermost frame first.
fn split(text: &str) -> (&str, Vec<Frame<'_>>) {
    let text = text.trim_end_matches('\n');
    let mut message_end = text.len();
    let mut frames = Vec::new();
    // The first line is always the message's.
    while let Some(newline) = text[..message_end].rfind('\n').filter(|_| frames.len() < MAX_FRAMES) {
        let Some(frame) = Frame::parse(&text[newline + 1..message_end]) else { break };
        frames.push(frame);
        message_end = newline;
    }
    frames.reverse();
    (&text[..message_end], frames)
}

/// A line of a stack: `    at function (where)` or `    at where`.
struct Frame<'a> {
    function: Option<&'a str>,
    /// Line and column in bytes, when it is a frame of the script.
    place: Option<(u32, u32)>,
}

impl<'a> Frame<'a> {
    fn parse(line: &'a str) -> Option<Self> {
        let frame = line.strip_prefix("    at ")?;
        // A function can have any name, so what counts is the last parenthesis.
        let (function, location) = match frame.strip_suffix(')').and_then(|frame| frame.rsplit_once(" (")) {
            Some((function, location)) => (Some(function), location),
            None => (None, frame),
        };
        // Native functions, and places that QuickJS lost: it has none for what comes before a function's first call.
        if function.is_some() && matches!(location, "native" | "missing" | "workflow" | "fanfold") {
            return Some(Self { function, place: None });
        }
        let mut parts = location.rsplitn(3, ':');
        let column = parts.next()?.parse().ok()?;
        let line = parts.next()?.parse().ok()?;
        // Of the script, of the hooks, or of code without a file, such as `<input>`.
        let file =
            parts.next().filter(|file| *file == "workflow" || *file == "fanfold" || file.starts_with('<'))?;
        Some(Self { function, place: (file == "workflow").then_some((line, column)) })
    }
}

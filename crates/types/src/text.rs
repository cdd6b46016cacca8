//! A result as a model reads it.

use alloc::format;
use alloc::string::{String, ToString};

use crate::{RunResult, StopReason};

/// How many characters of the value's JSON a model is shown unless told otherwise.
pub const DEFAULT_MAX_RESULT_CHARS: usize = 50_000;

/// What a model is shown of a finished run: the value, cut after `max_result_chars` characters of its
/// pretty-printed JSON, or one line that says why there is none.
///
/// ```
/// use fanfold_types::{RunResult, StopReason, text};
/// let result = RunResult::new(StopReason::Completed, None);
/// assert_eq!(text::render("demo", &result, 100), "workflow \"demo\" completed (0 agents).\nReturn value:\nnull");
/// ```
pub fn render(name: &str, result: &RunResult, max_result_chars: usize) -> String {
    if let Some(failure) = failure(result) {
        return format!("Error: {failure}");
    }
    let shown = page(result.value.get(), 0, max_result_chars);
    let mut text = format!("{}\nReturn value:\n{}", completed(name, result.agents_started), shown.text);
    if let omitted @ 1.. = shown.total - shown.chars {
        text.push_str(&format!("\n… [truncated: {omitted} more characters]"));
    }
    text
}

/// The sentence that says a run completed.
pub fn completed(name: &str, agents_started: u32) -> String {
    let agents = if agents_started == 1 { "agent" } else { "agents" };
    format!("workflow \"{name}\" completed ({agents_started} {agents}).")
}

/// Why a run has no value, in one sentence; `None` for a run that completed.
pub fn failure(result: &RunResult) -> Option<String> {
    let error = result.error.as_ref();
    match (result.stop_reason, error) {
        (StopReason::Completed, None) => None,
        // Whoever made such a result contradicts himself. What it says of a value is not believed.
        (StopReason::Completed, Some(error)) => {
            Some(format!("workflow run ended abnormally (completed, with an error: {error})"))
        }
        (StopReason::Cancelled, Some(error)) => {
            Some(format!("workflow run was cancelled ({})", error.message))
        }
        (StopReason::Cancelled, None) => Some("workflow run was cancelled".to_string()),
        (StopReason::Error, Some(error)) => Some(format!("workflow run failed: {error}")),
        (StopReason::Error, None) => Some("workflow run failed: unknown error".to_string()),
    }
}

/// Indents compact JSON by two spaces a level, as `JSON.stringify(value, null, 2)` does.
///
/// Works on the text alone, so that numbers stay as they were written. `json` must be valid; other text comes out
/// as it may.
pub fn pretty(json: &str) -> String {
    page(json, 0, usize::MAX).text
}

/// A part of a longer text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Page {
    /// The part.
    pub text: String,
    /// Its length in characters.
    pub chars: usize,
    /// The length of the whole in characters.
    pub total: usize,
}

/// Of the JSON that [`pretty`] gives, at most `max_chars` characters from the `offset`th on. Characters are Unicode
/// scalar values; none is ever cut, and pages that follow each other add up to the whole.
///
/// What is not on the page is only counted: indentation can make a value a hundred times as long.
///
/// ```
/// use fanfold_types::text;
/// let page = text::page("[1,2]", 2, 4);
/// assert_eq!((page.text.as_str(), page.chars, page.total), ("  1,", 4, 12));
/// ```
pub fn page(json: &str, offset: usize, max_chars: usize) -> Page {
    let mut out = Window { text: String::new(), skip: offset, room: max_chars, chars: 0, total: 0 };
    let (mut depth, mut in_string, mut escaped, mut just_opened) = (0usize, false, false, false);
    for c in json.chars() {
        if in_string {
            out.push(c, 1);
            in_string = escaped || c != '"';
            escaped = !escaped && c == '\\';
            continue;
        }
        if c.is_ascii_whitespace() {
            continue;
        }
        let closes = matches!(c, '}' | ']');
        if closes {
            depth = depth.saturating_sub(1);
        }
        if just_opened != closes {
            // The first element of a container, or the end of one that has elements.
            out.new_line(depth);
        }
        just_opened = matches!(c, '{' | '[');
        depth += usize::from(just_opened);
        out.push(c, 1);
        match c {
            '"' => in_string = true,
            ',' => out.new_line(depth),
            ':' => out.push(' ', 1),
            _ => {}
        }
    }
    Page { text: out.text, chars: out.chars, total: out.total }
}

/// Text of which a part is kept and the rest is counted.
struct Window {
    text: String,
    /// Characters to leave out before the part.
    skip: usize,
    /// Characters that the part may still take.
    room: usize,
    /// Characters that it has.
    chars: usize,
    /// Characters of the whole so far.
    total: usize,
}

impl Window {
    /// Adds a character some times.
    fn push(&mut self, c: char, times: usize) {
        let skipped = times.min(self.skip);
        let kept = (times - skipped).min(self.room);
        self.skip -= skipped;
        self.room -= kept;
        self.chars += kept;
        self.total += times;
        self.text.extend(core::iter::repeat_n(c, kept));
    }

    fn new_line(&mut self, depth: usize) {
        self.push('\n', 1);
        self.push(' ', 2 * depth);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use serde_json::value::to_raw_value;

    use super::*;
    use crate::ErrorCode;

    #[test]
    fn pretty_is_what_json_libraries_print() {
        let value = json!({
            "a": [1, "two", {"three": null}, [], {}], "b": "{\"x\":[1,2]}, \\ : \u{1F389}", "c": {"d": [[]]}, "": {}
        });
        assert_eq!(pretty(&value.to_string()), serde_json::to_string_pretty(&value).unwrap());
        for scalar in ["1", "-0.5", "\"\"", "null", "[]", "{}"] {
            assert_eq!(pretty(scalar), scalar);
        }
    }

    #[test]
    fn a_long_value_is_cut_between_characters() {
        let mut result = RunResult::new(StopReason::Completed, None);
        result.value = to_raw_value("🎉🎉🎉🎉").unwrap();
        result.agents_started = 1;
        assert_eq!(
            render("x", &result, 3),
            "workflow \"x\" completed (1 agent).\nReturn value:\n\"🎉🎉\n… [truncated: 3 more characters]"
        );
        assert!(render("x", &result, 6).ends_with("\"🎉🎉🎉🎉\""));
    }

    #[test]
    fn a_deep_value_takes_no_more_memory_than_is_shown() {
        let json = "[".repeat(90) + &"0,".repeat(1000) + "0" + &"]".repeat(90);
        let whole = pretty(&json);
        for offset in [0, 77, 1000, whole.len() - 1] {
            let cut = page(&json, offset, 500);
            assert_eq!(cut.text, whole[offset..(offset + 500).min(whole.len())]);
            assert_eq!((cut.chars, cut.total), (cut.text.len(), whole.len()));
            assert!(cut.text.capacity() < 2000);
        }
    }

    #[test]
    fn pages_add_up_to_the_whole_wherever_they_are_cut() {
        // An emoji of several scalar values, a combining accent, a character outside the basic plane, an escape.
        let value = json!({"e\u{301}": ["👩‍👩‍👧", "é", "🎉\n\u{0}"], "": [[], {}, 1e21]});
        let json = value.to_string();
        let whole = pretty(&json);
        for size in 1..=whole.chars().count() + 1 {
            let (mut joined, mut offset) = (String::new(), 0);
            loop {
                let page = page(&json, offset, size);
                assert_eq!(page.total, whole.chars().count());
                assert_eq!(page.chars, page.text.chars().count());
                if page.chars == 0 {
                    break;
                }
                offset += page.chars;
                joined.push_str(&page.text);
            }
            assert_eq!(joined, whole, "{size} characters a page");
        }
    }

    #[test]
    fn failures_are_one_sentence() {
        let render = |reason, error| render("x", &RunResult::new(reason, error), 10);
        assert_eq!(render(StopReason::Cancelled, None), "Error: workflow run was cancelled");
        assert_eq!(
            render(StopReason::Cancelled, Some(ErrorCode::Cancelled.error("user"))),
            "Error: workflow run was cancelled (user)"
        );
        assert_eq!(render(StopReason::Error, None), "Error: workflow run failed: unknown error");
        assert_eq!(
            render(StopReason::Error, Some(ErrorCode::AgentCap.error("3 is the cap"))),
            "Error: workflow run failed: AGENT_CAP: 3 is the cap"
        );
        assert_eq!(
            render(StopReason::Completed, Some(ErrorCode::Internal.error("odd"))),
            "Error: workflow run ended abnormally (completed, with an error: INTERNAL: odd)"
        );
    }
}

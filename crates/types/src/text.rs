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
    let error = result.error.as_ref().map(ToString::to_string);
    match result.stop_reason {
        StopReason::Completed => {
            let agents = match result.agents_started {
                1 => "1 agent".to_string(),
                n => format!("{n} agents"),
            };
            let (value, omitted) = shown(result.value.get(), max_result_chars);
            let mut text = format!("workflow \"{name}\" completed ({agents}).\nReturn value:\n{value}");
            if omitted > 0 {
                text.push_str(&format!("\n… [truncated: {omitted} more characters]"));
            }
            text
        }
        StopReason::Cancelled => match result.error.as_ref() {
            Some(error) => format!("Error: workflow run was cancelled ({})", error.message),
            None => "Error: workflow run was cancelled".to_string(),
        },
        StopReason::Error => {
            format!("Error: workflow run failed: {}", error.as_deref().unwrap_or("unknown error"))
        }
    }
}

/// Indents compact JSON by two spaces a level, as `JSON.stringify(value, null, 2)` does.
///
/// Works on the text alone, so that numbers stay as they were written. `json` must be valid; other text comes out
/// as it may.
pub fn pretty(json: &str) -> String {
    shown(json, usize::MAX).0
}

/// The first `max_chars` characters of the indented JSON, and how many more there are. Those are only counted:
/// indentation can make a value a hundred times as long.
fn shown(json: &str, max_chars: usize) -> (String, usize) {
    let mut out = Bounded { text: String::new(), room: max_chars, omitted: 0 };
    let (mut depth, mut in_string, mut escaped, mut just_opened) = (0usize, false, false, false);
    for c in json.chars() {
        if in_string {
            out.push(c);
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
        out.push(c);
        match c {
            '"' => in_string = true,
            ',' => out.new_line(depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    (out.text, out.omitted)
}

/// Text that keeps its beginning and counts the rest.
struct Bounded {
    text: String,
    room: usize,
    omitted: usize,
}

impl Bounded {
    fn push(&mut self, c: char) {
        if self.room == 0 {
            self.omitted += 1;
        } else {
            self.room -= 1;
            self.text.push(c);
        }
    }

    fn new_line(&mut self, depth: usize) {
        self.push('\n');
        let fits = self.room.min(2 * depth);
        self.text.extend(core::iter::repeat_n(' ', fits));
        self.room -= fits;
        self.omitted += 2 * depth - fits;
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
        let (cut, omitted) = shown(&json, 500);
        assert!(whole.starts_with(&cut) && cut.len() == 500);
        assert_eq!(omitted, whole.len() - 500);
        assert!(cut.capacity() < 2000);
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
    }
}

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
            let value = truncate(pretty(result.value.get()), max_result_chars);
            format!("workflow \"{name}\" completed ({agents}).\nReturn value:\n{value}")
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
/// Works on the text alone, so that numbers stay as they were written and depth costs nothing. `json` must
/// be valid; other text comes out as it may.
pub fn pretty(json: &str) -> String {
    let mut out = String::with_capacity(json.len() * 2);
    let (mut depth, mut in_string, mut escaped, mut just_opened) = (0usize, false, false, false);
    let newline = |out: &mut String, depth: usize| {
        out.push('\n');
        out.extend(core::iter::repeat_n("  ", depth));
    };
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
            newline(&mut out, depth);
        }
        just_opened = matches!(c, '{' | '[');
        depth += usize::from(just_opened);
        out.push(c);
        match c {
            '"' => in_string = true,
            ',' => newline(&mut out, depth),
            ':' => out.push(' '),
            _ => {}
        }
    }
    out
}

fn truncate(mut text: String, max_chars: usize) -> String {
    if let Some((cut, _)) = text.char_indices().nth(max_chars) {
        let omitted = text[cut..].chars().count();
        text.truncate(cut);
        text.push_str(&format!("\n… [truncated: {omitted} more characters]"));
    }
    text
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

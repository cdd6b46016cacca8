//! JSON text that comes from outside: checked before any parser sees it.

use fanfold_types::{ErrorCode, WorkflowError};
use serde_json::value::RawValue;

/// Levels of arrays and objects in a value, the same for args and results. Below what common JSON parsers take
/// (serde_json: 127), so that whatever leaves a run can be read.
pub(crate) const MAX_DEPTH: usize = 100;

/// How deep the arrays and objects of a JSON text are nested. Takes one pass and no stack.
fn depth(json: &str) -> usize {
    let (mut depth, mut deepest, mut in_string, mut escaped) = (0usize, 0, false, false);
    for byte in json.bytes() {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            _ if in_string => {}
            b'[' | b'{' => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

/// Takes JSON text in, if it is valid and nested no deeper than [`MAX_DEPTH`].
///
/// # Errors
/// `INVALID_ARGUMENT` that names `what`.
pub(crate) fn read(what: &str, json: String) -> Result<Box<RawValue>, WorkflowError> {
    if depth(&json) > MAX_DEPTH {
        let message = format!("{what} must not be nested deeper than {MAX_DEPTH} levels");
        return Err(ErrorCode::InvalidArgument.error(message).on(what));
    }
    RawValue::from_string(json).map_err(|error| {
        ErrorCode::InvalidArgument.error(format!("{what} is not valid JSON: {error}")).on(what)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_strings() {
        for (json, expected) in
            [("1", 0), ("[]", 1), (r#"{"a":[{}]}"#, 3), (r#""[[\"[[""#, 0), (r#"["\\",[]]"#, 2)]
        {
            assert_eq!(depth(json), expected, "{json}");
        }
    }

    #[test]
    fn text_that_would_exhaust_a_parser_is_refused() {
        let deep = |n: usize| "[".repeat(n) + &"]".repeat(n);
        assert!(read("args", deep(MAX_DEPTH)).is_ok());
        for json in [deep(MAX_DEPTH + 1), deep(1_000_000), "[1,".into(), String::new()] {
            assert_eq!(read("args", json).unwrap_err().path.as_deref(), Some("args"));
        }
    }
}

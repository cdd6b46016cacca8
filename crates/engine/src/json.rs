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

/// Takes the args of a script in: as [`read`], and no number is infinite in JavaScript.
pub(crate) fn read_args(json: String) -> Result<Box<RawValue>, WorkflowError> {
    let what = "args";
    let value = read(what, json)?;
    if let Some(number) = too_large(value.get()) {
        let number = number.get(..20).map_or(number.to_owned(), |start| format!("{start}…"));
        let message = format!(
            "{what} has the number {number}, which is too large for JavaScript (at most about 1.8e308); pass it as a string"
        );
        return Err(ErrorCode::InvalidArgument.error(message).on(what));
    }
    Ok(value)
}

/// The first number of a valid JSON text that is infinite in JavaScript.
fn too_large(json: &str) -> Option<&str> {
    let bytes = json.as_bytes();
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let start = at;
        at += 1;
        match byte {
            b'"' => {
                while bytes.get(at).is_some_and(|byte| *byte != b'"') {
                    at += if bytes[at] == b'\\' { 2 } else { 1 };
                }
                at += 1;
            }
            b'-' | b'0'..=b'9' => {
                while bytes
                    .get(at)
                    .is_some_and(|byte| matches!(byte, b'+' | b'-' | b'.' | b'e' | b'E' | b'0'..=b'9'))
                {
                    at += 1;
                }
                let number = &json[start..at];
                if number.parse().is_ok_and(f64::is_infinite) {
                    return Some(number);
                }
            }
            _ => {}
        }
    }
    None
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
    fn numbers_that_javascript_cannot_hold_are_refused() {
        let digits = "9".repeat(400);
        for json in ["1e400", "-1E+400", r#"{"a": [1, "x\\", -1e999]}"#, &digits] {
            let error = read_args(json.to_owned()).unwrap_err();
            assert_eq!(error.path.as_deref(), Some("args"), "{json}");
            assert!(error.message.contains("args has the number") && error.message.len() < 150, "{error}");
        }
        for json in ["1.7976931348623157e308", "1e-400", r#""1e400""#, r#"{"1e400": "\"1e400"}"#, "-0", "1e5"]
        {
            assert!(read_args(json.to_owned()).is_ok(), "{json}");
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

//! Asking for a value that satisfies a schema, and finding it in the answer.

use serde_json::Value;

use crate::{json, text};
use fanfold::{AgentType, Schema};

/// How much of a bad answer goes back to who gave it, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// The prompt of a child of a kind that has instructions.
pub(crate) fn with_instructions(prompt: &str, definition: &AgentType) -> String {
    let AgentType { name, instructions, .. } = definition;
    format!(
        "You are the agent {name:?}. These are your instructions:\n\n{instructions}\n\nThis is your task:\n\n{prompt}"
    )
}

/// The prompt of a child that is to answer with a value.
pub(crate) fn with_schema(prompt: &str, schema: &Value) -> String {
    format!(
        "{prompt}\n\n\
         Your final answer must be one JSON value that satisfies this JSON Schema, and nothing else:\n\
         {schema}\n"
    )
}

/// The prompt after an answer that was no good; `prompt` is that of [`with_schema`].
pub(crate) fn again(prompt: &str, answer: &str, errors: &[String]) -> String {
    format!(
        "{prompt}\n\
         You were asked this before, and this was your answer:\n\
         {}\n\n\
         It does not satisfy the schema:\n\
         - {}\n\n\
         Answer again, with the whole corrected JSON value and nothing else.\n",
        text::ends(answer, MAX_ANSWER_BYTES),
        errors.join("\n- "),
    )
}

/// Finds the value in an answer.
///
/// # Errors
/// What is wrong with the likeliest value in it; never empty.
pub(crate) fn read(answer: &str, schema: &Schema) -> Result<Value, Vec<String>> {
    let mut wrong = None;
    for candidate in json::candidates(answer) {
        let errors = match json::parse(candidate) {
            Ok(value) => match schema.violations(&value) {
                errors if errors.is_empty() => return Ok(value),
                errors => errors,
            },
            Err(error) if candidate.starts_with('{') => vec![format!("not JSON: {error}")],
            // Prose, or code of another kind.
            Err(_) => continue,
        };
        wrong.get_or_insert(errors);
    }
    Err(wrong.unwrap_or_else(|| vec!["there is no JSON in the answer".into()]))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Schema::new(&schema).unwrap()
    }

    #[test]
    fn the_first_place_whose_value_satisfies_the_schema_counts() {
        let answer = "Draft {\"n\": 1}, example {\"n\": \"x\"}\n```json\n{\"m\": 2}\n```\nwith {}.";
        assert_eq!(read(answer, &schema()), Ok(json!({"n": 1})));
    }

    #[test]
    fn errors_are_those_of_the_likeliest_value() {
        for (answer, expected) in [
            ("I cannot.", "there is no JSON in the answer"),
            ("", "there is no JSON in the answer"),
            ("[1]", r#"(root): value is not of type "object""#),
            ("{\"n\": 1", "not JSON: EOF while parsing an object at line 1 column 7"),
            ("```\n{\"n\": 1.5}\n```\n{\"n\": null}", r#"/n: value is not of type "integer""#),
            ("It is {\"n\": 1,}.", "not JSON: trailing comma at line 1 column 9"),
            ("fn main() { nothing }", "there is no JSON in the answer"),
        ] {
            assert_eq!(read(answer, &schema()), Err(vec![expected.to_owned()]), "{answer}");
        }
    }

    #[test]
    fn asking_again_tells_everything_that_helps_within_bounds() {
        let prompt = with_schema("Count the files.", &json!({"type": "object"}));
        let second = again(&prompt, &"z".repeat(1 << 20), &["/n: no".into(), "/m: no".into()]);
        for part in ["Count the files.", r#"{"type":"object"}"#, "zzz", "\n- /n: no\n- /m: no\n"] {
            assert!(second.contains(part), "{part}");
        }
        assert!(second.len() < MAX_ANSWER_BYTES + 1024);
    }
}

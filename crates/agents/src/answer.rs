//! What an answer says: its text without the reasoning, or the value in it that satisfies a schema. All providers read
//! their agents' answers by this.

use fanfold::{Answer, Schema};
use serde_json::Value;

use crate::json::{self, Reasoning};
use crate::{escapes, reasoning, text};

/// How much of a bad answer goes back to the agent that gave it, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// Why an answer cannot be used.
#[derive(Debug, PartialEq)]
pub(crate) enum Unusable {
    /// There is reasoning of so many characters, and nothing after it.
    ReasoningAlone(usize),
    /// No value in it satisfies the schema.
    NoValue {
        /// The answer, shortened.
        said: String,
        /// What is wrong with it, a violation each; never empty.
        wrong: Vec<String>,
    },
}

/// Reads an answer.
///
/// Takes time in proportion to the length of the answer.
pub(crate) fn read(answer: &str, schema: Option<&Schema>) -> Result<Answer, Unusable> {
    let answer = escapes::strip(answer);
    let Some(schema) = schema else {
        let split = reasoning::split(&answer);
        if split.is_all_reasoning() {
            let chars = split.reasoning.iter().map(|part| part.trim().chars().count()).sum();
            return Err(Unusable::ReasoningAlone(chars));
        }
        return Ok(Answer::text(split.rest));
    };
    value(&answer, schema).map(Answer::structured).map_err(|wrong| {
        let rest = reasoning::split(&answer).rest;
        let said = if rest.is_empty() { &answer } else { &rest };
        Unusable::NoValue { said: text::ends(said, MAX_ANSWER_BYTES), wrong }
    })
}

/// Whether a text is an object or a list in JSON, and nothing else: a text that was cut off is none.
pub(crate) fn is_value(text: &str) -> bool {
    let text = text.trim();
    text.starts_with(['{', '[']) && json::parse(text).is_ok()
}

/// Finds the value in an answer without escape codes.
///
/// # Errors
/// What is wrong with the likeliest value in it; never empty.
fn value(answer: &str, schema: &Schema) -> Result<Value, Vec<String>> {
    let search = json::search(answer);
    for text in &search.values {
        if let Ok(value) = json::parse(text)
            && schema.violations(&value).is_empty()
        {
            return Ok(value);
        }
    }
    Err(match search.best.map(|best| (best, json::parse(best))) {
        Some((_, Ok(value))) => schema.violations(&value),
        Some((best, Err(error))) => vec![json::fault(best, &error)],
        None => vec![
            match search.reasoning {
                Reasoning::None => "there is no JSON in the answer",
                Reasoning::Closed => "there is no JSON in the answer after its reasoning",
                Reasoning::Unclosed => {
                    "there is no JSON in the answer: it ends within its reasoning, whose tag is never closed"
                }
            }
            .to_owned(),
        ],
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Schema {
        let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]});
        Schema::new(&schema).unwrap()
    }

    fn found(answer: &str) -> Result<Value, Vec<String>> {
        match read(answer, Some(&schema())) {
            Ok(answer) => Ok(answer.structured.unwrap()),
            Err(Unusable::NoValue { wrong, .. }) => Err(wrong),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_last_value_that_satisfies_the_schema_counts() {
        for (answer, n) in [
            ("Draft {\"n\": 1}, example {\"n\": \"x\"}\n```json\n{\"m\": 2}\n```\nwith {}.", 1),
            ("{\"n\": 1} and {\"n\": 2}", 2),
            ("{\"n\": 1}\n```\n{\"n\": 2}\n```", 1),
            ("{\"m\": 1}\n```\n{\"n\": 2}\n```", 2),
            ("{\"n\": 1} and {\"n\": ", 1),
            ("\u{1b}[1m{\u{9b}34m\"n\"\u{1b}[m: 3}\u{1b}]0;done\u{7}", 3),
        ] {
            assert_eq!(found(answer), Ok(json!({"n": n})), "{answer}");
        }
    }

    #[test]
    fn errors_are_those_of_the_likeliest_value() {
        for (answer, expected) in [
            ("I cannot.", "there is no JSON in the answer"),
            ("", "there is no JSON in the answer"),
            ("fn main() { nothing }", "there is no JSON in the answer"),
            ("<think>{\"n\": 1}</think>No.", "there is no JSON in the answer after its reasoning"),
            (
                "<think>{\"n\": 1}",
                "there is no JSON in the answer: it ends within its reasoning, whose tag is never closed",
            ),
            ("[1]", r#"(root): value is not of type "object""#),
            ("4", r#"(root): value is not of type "object""#),
            ("[{\"n\": 1}]", r#"(root): value is not of type "object""#),
            (
                "{\"n\": 1",
                "not JSON: it breaks off before its end (line 1, column 8 of the value, after `{\"n\": 1`)",
            ),
            ("```\n{\"n\": 1.5}\n```\n{\"n\": null}", r#"/n: value is not of type "integer""#),
            ("{\"n\": null} [1]", r#"/n: value is not of type "integer""#),
            (
                "It is {\"n\": 1,}.",
                "not JSON: trailing comma (line 1, column 9 of the value, after `{\"n\": 1,`)",
            ),
            (
                "{\"m\": 1} no: {\"n\": 1,}.",
                "not JSON: trailing comma (line 1, column 9 of the value, after `{\"n\": 1,`)",
            ),
            ("{\"n\": null} is like { n: int }", r#"/n: value is not of type "integer""#),
            ("{n: 1}", "not JSON: key must be a string (line 1, column 2 of the value, after `{`)"),
        ] {
            assert_eq!(found(answer), Err(vec![expected.to_owned()]), "{answer}");
        }
    }

    #[test]
    fn a_text_is_the_answer_without_reasoning_and_escape_codes() {
        for (answer, expected) in [
            ("", ""),
            (" a\n", " a\n"),
            ("<think>maybe {\"n\":1}? no</think>\nI cannot say.", "I cannot say."),
            ("\u{1b}[2m<think>a</think>\u{1b}[0m\n\u{1b}[1mb\u{1b}[m", "b"),
            ("Models think in <think> tags.", "Models think in <think> tags."),
        ] {
            assert_eq!(read(answer, None), Ok(Answer::text(expected)), "{answer}");
        }
        assert_eq!(read("<think> so it is\n</think>\n", None), Err(Unusable::ReasoningAlone(8)));
        assert_eq!(read("<think>so", None), Err(Unusable::ReasoningAlone(2)));
    }

    #[test]
    fn a_bad_answer_is_shown_without_its_reasoning_and_shortened() {
        let said = |answer: &str| match read(answer, Some(&schema())) {
            Err(Unusable::NoValue { said, .. }) => said,
            other => panic!("{other:?}"),
        };
        assert_eq!(said("<think>a</think>\u{1b}[1mNo."), "No.");
        assert_eq!(said("<think>a"), "<think>a");
        assert!(said(&"z".repeat(1 << 20)).len() < MAX_ANSWER_BYTES + 100);
    }
}

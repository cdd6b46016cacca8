//! Asking for an answer and, where there is a schema, for a value that satisfies it: finding the value in the answer,
//! and asking again.

use std::fmt;
use std::sync::Arc;

use fanfold::{AgentRequest, AgentType, Answer, ChildError, Schema, StartError};
use serde_json::Value;

use crate::{json, text};

/// How much of a bad answer goes back to who gave it, in bytes.
const MAX_ANSWER_BYTES: usize = 8 * 1024;

/// Whoever answers prompts.
pub trait Answerer: Send {
    /// Why there is no answer.
    type Error: From<Unsatisfied> + Send;

    /// The answer to a prompt.
    fn answer(&mut self, prompt: &str) -> impl Future<Output = Result<String, Self::Error>> + Send;

    /// Ready once the answer is no longer wanted.
    fn unwanted(&self) -> impl Future<Output = Self::Error> + Send;
}

/// What is to be asked, and what for.
#[derive(Clone, Debug)]
pub struct Question {
    /// The prompt, with the order to answer with a value where one is wanted.
    prompt: String,
    schema: Option<Arc<Schema>>,
    /// How often to ask, in all, for a value that satisfies the schema.
    attempts: u32,
}

impl Question {
    /// The question of a call of `agent()`. As many `attempts` are made in all for a value that satisfies the schema.
    ///
    /// # Errors
    /// For a schema that cannot be enforced; never for a request that the engine made.
    pub fn new(request: &AgentRequest, attempts: u32) -> Result<Self, StartError> {
        let unusable = |error| StartError::new(format!("the schema cannot be used: {error}"));
        let schema = request.options.validator().map_err(unusable)?;
        let prompt = match &request.options.schema {
            Some(schema) => with_schema(&request.prompt, schema),
            None => request.prompt.clone(),
        };
        Ok(Self { prompt, schema, attempts })
    }

    /// Asks until the answer is good or was asked for often enough.
    ///
    /// # Errors
    /// The answerer's own, and what comes of [`Unsatisfied`].
    pub async fn ask<A: Answerer>(&self, whom: &mut A) -> Result<Answer, A::Error> {
        let Some(schema) = &self.schema else {
            return whom.answer(&self.prompt).await.map(Answer::text);
        };
        let mut prompt = self.prompt.clone();
        let mut wrong = Vec::new();
        for _ in 0..self.attempts {
            let answer: Arc<str> = whom.answer(&prompt).await?.into();
            // Megabytes of JSON take their time.
            let reading = {
                let (answer, schema) = (answer.clone(), schema.clone());
                tokio::task::spawn_blocking(move || read(&answer, &schema))
            };
            let read = tokio::select! {
                biased;
                error = whom.unwanted() => return Err(error),
                read = reading => read,
            };
            match read {
                Ok(Ok(value)) => return Ok(Answer::structured(value)),
                Ok(Err(errors)) => wrong = errors,
                Err(error) => return Err(Unsatisfied::Unreadable(error.to_string()).into()),
            }
            prompt = again(&self.prompt, &answer, &wrong);
        }
        Err(Unsatisfied::Wrong { attempts: self.attempts, wrong }.into())
    }
}

/// Why no value was found.
#[derive(Debug)]
#[non_exhaustive]
pub enum Unsatisfied {
    /// No answer satisfied the schema; what was wrong with the last.
    Wrong {
        /// How often was asked.
        attempts: u32,
        /// What was wrong, a violation each.
        wrong: Vec<String>,
    },
    /// Reading an answer broke.
    Unreadable(String),
}

impl fmt::Display for Unsatisfied {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong { attempts, wrong } => write!(
                f,
                "no answer satisfied the schema, asked {attempts} {}; the last: {}",
                if *attempts == 1 { "time" } else { "times" },
                wrong.join("; "),
            ),
            Self::Unreadable(error) => write!(f, "cannot read the answer: {error}"),
        }
    }
}

impl From<Unsatisfied> for ChildError {
    fn from(unsatisfied: Unsatisfied) -> Self {
        match unsatisfied {
            Unsatisfied::Wrong { .. } => Self::failed(unsatisfied.to_string()),
            Unsatisfied::Unreadable(_) => Self::broken(unsatisfied.to_string()),
        }
    }
}

/// The prompt of a child, after the instructions of its kind of agent if it has any.
pub fn with_instructions(request: &AgentRequest) -> String {
    let AgentRequest { prompt, options, .. } = request;
    let Some(AgentType { name, instructions, .. }) = options.definition.as_deref() else {
        return prompt.clone();
    };
    if instructions.is_empty() {
        return prompt.clone();
    }
    format!(
        "You are the agent {name:?}. These are your instructions:\n\n{instructions}\n\nThis is your task:\n\n{prompt}"
    )
}

/// The prompt of a child that is to answer with a value.
fn with_schema(prompt: &str, schema: &Value) -> String {
    format!(
        "{prompt}\n\n\
         Your final answer must be one JSON value that satisfies this JSON Schema, and nothing else:\n\
         {schema}\n"
    )
}

/// The prompt after an answer that was no good; `prompt` is that of [`with_schema`].
fn again(prompt: &str, answer: &str, errors: &[String]) -> String {
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
    fn a_kind_without_instructions_leaves_the_prompt_as_it_is() {
        let mut request = AgentRequest::new("Look.");
        assert_eq!(with_instructions(&request), "Look.");
        request.options.definition = Some(Arc::new(AgentType::new("reviewer", "")));
        assert_eq!(with_instructions(&request), "Look.");
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

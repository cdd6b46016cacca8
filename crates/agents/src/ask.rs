//! Asking for an answer and, where there is a schema, for a value that satisfies it, and asking again.

use std::fmt;
use std::sync::Arc;

use fanfold::{AgentRequest, AgentType, Answer, Schema, StartError};
use serde_json::Value;

use crate::answer::{self, Unusable};
use crate::failure::Failure;

/// A text up to this size takes too little time to leave the executor's thread for.
const QUICK_BYTES: usize = 64 * 1024;

/// Whoever answers prompts.
pub(crate) trait Answerer: Send {
    /// The answer to a prompt.
    fn answer(&mut self, prompt: &str) -> impl Future<Output = Result<String, Failure>> + Send;

    /// The last answer was no good, for these reasons, and there will be another prompt.
    fn again(&mut self, wrong: &[String]);

    /// Ready once the answer is no longer wanted.
    fn unwanted(&mut self) -> impl Future<Output = Failure> + Send;
}

/// What is to be asked, and what for.
#[derive(Clone, Debug)]
pub(crate) struct Question {
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
    pub(crate) fn new(request: &AgentRequest, attempts: u32) -> Result<Self, StartError> {
        let unusable = |error| StartError::new(format!("the schema cannot be used: {error}"));
        let schema = request.options.validator().map_err(unusable)?;
        let prompt = match &request.options.schema {
            Some(schema) => with_schema(&request.prompt, schema),
            None => request.prompt.clone(),
        };
        Ok(Self { prompt, schema, attempts })
    }

    /// Asks until the answer is good or was asked for often enough. Reasoning and terminal escape codes are left out of it.
    ///
    /// # Errors
    /// The answerer's own, and what comes of [`Unsatisfied`].
    pub(crate) async fn ask(&self, whom: &mut impl Answerer) -> Result<Answer, Failure> {
        let mut prompt = self.prompt.clone();
        let mut last = Vec::new();
        for left in (0..self.attempts.max(1)).rev() {
            let answer = whom.answer(&prompt).await?;
            let read = if self.schema.is_none() && answer.len() <= QUICK_BYTES {
                Ok(answer::read(&answer, None))
            } else {
                let schema = self.schema.clone();
                let reading = tokio::task::spawn_blocking(move || answer::read(&answer, schema.as_deref()));
                tokio::select! {
                    biased;
                    error = whom.unwanted() => return Err(error),
                    read = reading => read,
                }
            };
            match read {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(Unusable::NoValue { said, wrong })) => {
                    if left > 0 {
                        whom.again(&wrong);
                        prompt = again(&self.prompt, &said, &wrong);
                    }
                    last = wrong;
                }
                Ok(Err(Unusable::ReasoningAlone(chars))) => {
                    return Err(Unsatisfied::ReasoningAlone { chars }.into());
                }
                Err(error) => return Err(Unsatisfied::Unreadable(error.to_string()).into()),
            }
        }
        Err(Unsatisfied::Wrong { attempts: self.attempts, wrong: last }.into())
    }

    /// Whether a text is a whole answer: it holds the value that is wanted, or is one where none is. `None` if that
    /// cannot be told.
    pub(crate) async fn is_answered_by(&self, text: String) -> Option<bool> {
        let schema = self.schema.clone();
        let reading = tokio::task::spawn_blocking(move || match schema {
            Some(schema) => Some(answer::read(&text, Some(&schema)).is_ok()),
            None => answer::is_value(&text).then_some(true),
        });
        reading.await.unwrap_or_default()
    }
}

/// Why there is no answer in what was said.
#[derive(Debug)]
pub(crate) enum Unsatisfied {
    /// No answer satisfied the schema; what was wrong with the last.
    Wrong {
        /// How often was asked.
        attempts: u32,
        /// What was wrong, a violation each.
        wrong: Vec<String>,
    },
    /// There was reasoning of so many characters, and no text after it.
    ReasoningAlone {
        /// Its length.
        chars: usize,
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
            Self::ReasoningAlone { chars } => {
                write!(
                    f,
                    "the answer has no text: reasoning came, {chars} characters of it, and nothing after it"
                )
            }
            Self::Unreadable(error) => write!(f, "cannot read the answer: {error}"),
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
        answer,
        errors.join("\n- "),
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_kind_without_instructions_leaves_the_prompt_as_it_is() {
        let mut request = AgentRequest::new("Look.");
        assert_eq!(with_instructions(&request), "Look.");
        request.options.definition = Some(Arc::new(AgentType::new("reviewer", "")));
        assert_eq!(with_instructions(&request), "Look.");
    }

    #[test]
    fn asking_again_tells_everything_that_helps() {
        let prompt = with_schema("Count the files.", &json!({"type": "object"}));
        let second = again(&prompt, "zzz", &["/n: no".into(), "/m: no".into()]);
        for part in ["Count the files.", r#"{"type":"object"}"#, "zzz", "\n- /n: no\n- /m: no\n"] {
            assert!(second.contains(part), "{part}");
        }
    }
}

//! What the model APIs differ in: how a request is written and how an answer is read.

use std::fmt;

use fanfold::Usage;
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::refusal::{Complaint, failure_within};
use crate::failure::{Failure, FailureKind};

/// One request.
pub(crate) struct Turn<'a> {
    pub(crate) model: &'a str,
    /// What comes before the prompt and is not part of it: the instructions of a kind of agent.
    pub(crate) system: Option<&'a str>,
    pub(crate) prompt: &'a str,
    /// The schema to hand to the API, where its own structured output is to be used.
    pub(crate) schema: Option<&'a Value>,
    pub(crate) effort: Option<&'a str>,
    pub(crate) max_tokens: Option<u32>,
}

/// A model API.
pub(crate) trait Protocol: fmt::Debug + Send + Sync + 'static {
    /// Its name, in child ids and reasons.
    const NAME: &'static str;
    /// The operation, below the base URL.
    const OPERATION: &'static str;
    /// The header that holds the key, and what comes before it there.
    const KEY: (&'static str, &'static str);
    /// Headers that every request has.
    const HEADERS: &'static [(&'static str, &'static str)];

    /// The body of a request for a streamed answer.
    fn body(turn: &Turn<'_>) -> Value;

    /// Reads one event of a streamed answer.
    fn event(reply: &mut Reply, event: &Value);

    /// Reads an answer that came in one piece, from a server that does not stream.
    fn whole(reply: &mut Reply, body: &Value);

    /// What a reason to stop means.
    fn stop(reason: &str) -> Stop;
}

/// Why a model stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It had said everything.
    Done,
    /// Before it had.
    Early(FailureKind, &'static str),
}

/// What was read of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub(crate) text: String,
    /// What the model said when it declined.
    pub(crate) refusal: String,
    /// Why it stopped, in the API's words.
    pub(crate) stop: Option<String>,
    /// The API said that the answer is complete.
    pub(crate) complete: bool,
    pub(crate) usage: Option<Usage>,
}

impl Reply {
    /// Reads an event's JSON. An error in it is how APIs tell what goes wrong in the midst of an answer.
    pub(super) fn read<P: Protocol>(&mut self, json: &Value) -> Result<(), Failure> {
        let broken = json.get("error").is_some_and(|error| !error.is_null());
        if let Some(complaint) = broken.then(|| Complaint::of(json)).flatten() {
            return Err(failure_within(P::NAME, &complaint));
        }
        P::event(self, json);
        Ok(())
    }

    /// The answer, if it is one.
    pub(super) fn finish<P: Protocol>(self) -> Result<String, Failure> {
        if !self.refusal.is_empty() {
            return Err(Failure::new(FailureKind::Refusal, format!("the model declined: {}", self.refusal)));
        }
        match self.stop.as_deref().map(P::stop) {
            Some(Stop::Early(kind, what)) => Err(Failure::new(kind, what)),
            None if !self.complete => {
                Err(Failure::new(FailureKind::CutOff, format!("{}'s answer broke off", P::NAME)))
            }
            Some(Stop::Done) | None => Ok(self.text),
        }
    }
}

/// A header of a [`Protocol`].
pub(super) fn header(name: &'static str, value: &'static str) -> (HeaderName, HeaderValue) {
    (HeaderName::from_static(name), HeaderValue::from_static(value))
}

/// A number of tokens; 0 where there is none.
pub(crate) fn tokens(usage: &Value, name: &str) -> u64 {
    usage.get(name).and_then(Value::as_u64).unwrap_or_default()
}

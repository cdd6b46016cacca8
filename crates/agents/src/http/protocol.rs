//! What the model APIs differ in: how a request is written and how an answer is read.

use std::fmt;

use fanfold::{Usage, Usd};
use reqwest::header::{HeaderName, HeaderValue};
use serde_json::Value;

use super::refusal::{Complaint, failure_within};
use super::stop::{CALLED_A_TOOL, Stop, Stops};
use crate::failure::{Failure, FailureKind, Unfinished};

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

    /// Its reasons to stop.
    const STOPS: &'static Stops;

    /// The body of a request for a streamed answer.
    fn body(turn: &Turn<'_>) -> Value;

    /// Reads one event of a streamed answer.
    fn event(reply: &mut Reply, event: &Value);

    /// Reads an answer that came in one piece, from a server that does not stream.
    fn whole(reply: &mut Reply, body: &Value);
}

/// What was read of an answer so far.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    text: String,
    /// What the model, or the API for it, said when it declined, and which category that is of.
    refusal: String,
    category: Option<String>,
    /// The model thought.
    thought: bool,
    /// It called a tool.
    tool: bool,
    /// Why it stopped, and that in the API's words.
    stop: Option<(Stop, String)>,
    /// Text came after the reason to stop: only the end of the stream says that the answer is whole.
    resumed: bool,
    /// A reason that is none came: `""`.
    no_reason: bool,
    /// Something of the answer came, be it only that there is going to be one.
    pub(super) begun: bool,
    /// Keep-alives came, if nothing else.
    pub(super) alive: bool,
    /// The API said that the answer is at its end.
    ended: bool,
    usage: Option<Usage>,
}

impl Reply {
    /// Adds text of the answer.
    pub(crate) fn say(&mut self, text: &str) {
        self.resumed |= self.stop.is_some() && !text.is_empty();
        self.text.push_str(text);
    }

    /// Adds what was said in place of an answer.
    pub(crate) fn decline(&mut self, words: &str) {
        self.refusal.push_str(words);
    }

    /// Notes what kind of refusal it is.
    pub(crate) fn decline_as(&mut self, category: &str) {
        self.category = Some(category.into());
    }

    /// Notes that the model thought, if it did.
    pub(crate) fn think(&mut self, thought: bool) {
        self.thought |= thought;
    }

    /// Notes that the model called a tool, if it did.
    pub(crate) fn call(&mut self, called: bool) {
        self.tool |= called;
    }

    /// Notes why the model stopped; `reason` is what the API's field holds. A reason for a failure stays, whatever
    /// comes after it.
    pub(crate) fn stop<P: Protocol>(&mut self, reason: Option<&Value>) {
        let words = match reason {
            None | Some(Value::Null) => return,
            Some(Value::String(words)) => words.clone(),
            Some(reason) => {
                reason.get("type").and_then(Value::as_str).map_or(reason.to_string(), str::to_owned)
            }
        };
        if words.is_empty() {
            self.no_reason = true;
        } else if self.stop.as_ref().is_none_or(|(stop, _)| *stop == Stop::Done) {
            self.stop = Some((P::STOPS.classify(&words), words));
        }
    }

    /// Counts what the whole answer cost so far; what is less than before, or missing, changes nothing.
    pub(crate) fn count(&mut self, usage: Usage) {
        let all = self.usage.get_or_insert_default();
        all.input_tokens = all.input_tokens.max(usage.input_tokens);
        all.output_tokens = all.output_tokens.max(usage.output_tokens);
        all.cache_read_tokens = all.cache_read_tokens.max(usage.cache_read_tokens);
        all.cache_creation_tokens = all.cache_creation_tokens.max(usage.cache_creation_tokens);
        all.cost_usd = all.cost_usd.max(usage.cost_usd);
    }

    /// Notes that the answer is at its end.
    pub(crate) fn end(&mut self) {
        self.ended = true;
    }

    pub(super) fn has_ended(&self) -> bool {
        self.ended
    }

    pub(super) fn usage(&self) -> Option<Usage> {
        self.usage
    }

    /// The text of the answer so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// How far an answer had come that was no longer waited for: without a reason to stop it is not whole, whatever
    /// it looks like.
    pub(super) fn unfinished(self) -> Unfinished {
        let missing = if self.text.is_empty() { "" } else { "the answer had not ended" };
        Unfinished { text: String::new(), missing }
    }

    /// How long the longest text is that was read, in bytes.
    pub(super) fn size(&self) -> usize {
        self.text.len().max(self.refusal.len())
    }

    /// Whether the API has said why the model stopped: whatever happens then, nothing of the answer is missing.
    pub(super) fn is_told(&self) -> bool {
        self.stop.is_some() && !self.resumed
    }

    /// Reads an event's JSON. An error in it is how APIs tell what goes wrong in the midst of an answer.
    pub(super) fn read<P: Protocol>(&mut self, event: &str, json: &Value) -> Result<(), Failure> {
        self.begun = true;
        if let Some(complaint) = Complaint::within(event, json) {
            return Err(failure_within(P::NAME, &complaint));
        }
        P::event(self, json);
        Ok(())
    }

    /// Reads an answer that came in one piece.
    pub(super) fn read_whole<P: Protocol>(&mut self, json: &Value) -> Result<(), Failure> {
        self.begun = true;
        if let Some(complaint) = Complaint::within("", json) {
            return Err(failure_within(P::NAME, &complaint));
        }
        P::whole(self, json);
        self.end();
        let nothing = self.stop.is_none() && !self.no_reason && self.size() == 0;
        if nothing && !self.thought && !self.tool {
            let what = format!("{} answered with JSON that holds no answer: {json}", P::NAME);
            return Err(Failure::new(FailureKind::Protocol, what));
        }
        Ok(())
    }

    /// The answer, if it is one: whole, and with text.
    pub(super) fn finish<P: Protocol>(self) -> Result<String, Failure> {
        let (api, field) = (P::NAME, P::STOPS.field);
        let blank = self.text.trim().is_empty();
        let fail = |kind, what: String| Err(Failure::new(kind, what));
        if !self.refusal.is_empty() || matches!(self.stop, Some((Stop::Refusal, _))) {
            return fail(FailureKind::Refusal, self.declined());
        }
        if !self.begun {
            return fail(FailureKind::Connection, self.unheard(api));
        }
        let Some((stop, reason)) = &self.stop else {
            let reason = if self.no_reason { "\"\"" } else { "null" };
            return match self.ended {
                false => fail(
                    FailureKind::CutOff,
                    format!("{api}'s answer broke off before it said why it stopped ({field} is {reason})"),
                ),
                true if blank => fail(
                    FailureKind::Protocol,
                    format!("{api}'s answer has no text, {} ({field} is {reason})", self.instead()),
                ),
                true => fail(
                    FailureKind::CutOff,
                    format!("{api}'s answer ended and did not say why it stopped ({field} is {reason})"),
                ),
            };
        };
        if let Some((kind, what)) = stop.failure() {
            fail(kind, format!("{what} ({field} {reason:?})"))
        } else if self.resumed && !self.ended {
            fail(
                FailureKind::CutOff,
                format!("{api}'s answer broke off: it went on after {field} {reason:?}"),
            )
        } else if self.tool {
            fail(FailureKind::Protocol, format!("{CALLED_A_TOOL} ({field} {reason:?})"))
        } else if blank {
            let instead = self.instead();
            fail(FailureKind::Protocol, format!("{api}'s answer has no text, {instead} ({field} {reason:?})"))
        } else {
            Ok(self.text)
        }
    }

    /// That nothing of the answer came.
    pub(super) fn unheard(&self, api: &str) -> String {
        let alone = if self.alive { "; only keep-alives came" } else { "" };
        format!("{api} closed the connection before its answer began{alone}")
    }

    /// What came in place of text.
    fn instead(&self) -> &'static str {
        match (self.tool, self.thought) {
            (true, _) => "only a call of a tool",
            (false, true) => "only thinking",
            (false, false) => "it is empty",
        }
    }

    fn declined(&self) -> String {
        let category = self.category.as_deref().map(|name| format!(" ({name})")).unwrap_or_default();
        // What it said before may tell why.
        let words = if self.refusal.is_empty() { self.text.trim() } else { &self.refusal };
        let separator = if words.is_empty() { "" } else { ": " };
        format!("the model declined{category}{separator}{words}")
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

/// What an answer cost, where the API says so: OpenRouter (`cost`, its credits are dollars), Perplexity
/// (`cost.total_cost`), xAI (`cost_in_usd_ticks`, ten billion a dollar) and DeepInfra (`estimated_cost`).
/// - <https://openrouter.ai/docs/use-cases/usage-accounting>
/// - <https://docs.x.ai/docs/api-reference>
pub(crate) fn cost(usage: &Value) -> Option<Usd> {
    const TICKS: f64 = 1e10;
    let number = |place: &str| usage.pointer(place).and_then(Value::as_f64);
    number("/cost")
        .or_else(|| number("/cost/total_cost"))
        .or_else(|| number("/cost_in_usd_ticks").map(|ticks| ticks / TICKS))
        .or_else(|| number("/estimated_cost"))
        .and_then(Usd::from_dollars)
}

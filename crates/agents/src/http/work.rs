//! One agent of a model API: a request for each prompt.

use std::marker::PhantomData;
use std::sync::Arc;

use fanfold::{AgentRequest, Answer};
use reqwest::Request;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use super::exchange::{Bounds, exchange};
use super::protocol::{Protocol, Reply, Turn, header};
use super::said::Said;
use super::{ApiKey, Config};
use crate::failure::{Failure, FailureKind};
use crate::policy::{Attempt, PlainProvider};

/// Asks a model API for one agent.
pub(super) struct Model<P> {
    config: Arc<Config>,
    id: String,
    model: Arc<str>,
    request: AgentRequest,
    /// The schema for the API's structured output, as long as it is used.
    schema: Option<Value>,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Model<P> {
    pub(super) fn new(config: Arc<Config>, id: String, model: Arc<str>, request: AgentRequest) -> Self {
        let schema = request.options.schema.clone().filter(|_| config.structured_output);
        Self { config, id, model, request, schema, protocol: PhantomData }
    }

    fn write(&self, prompt: &str) -> Result<Request, Failure> {
        let (config, definition) = (&self.config, self.request.options.definition.as_deref());
        let turn = Turn {
            model: &self.model,
            system: definition.map(|kind| &*kind.instructions).filter(|text| !text.is_empty()),
            prompt,
            schema: self.schema.as_ref(),
            effort: self.request.options.effort.as_deref().filter(|_| config.effort),
            max_tokens: config.max_tokens,
        };
        let mut request = Request::new(reqwest::Method::POST, config.operation.clone());
        *request.body_mut() = Some(P::body(&turn).to_string().into());
        let headers = request.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(ACCEPT, HeaderValue::from_static("text/event-stream, application/json"));
        headers.extend(P::HEADERS.iter().map(|(name, value)| header(name, value)));
        if let Some(key) = &config.key {
            let (name, prefix) = P::KEY;
            let unusable = || Failure::Broken("the API key cannot be sent".into());
            headers.insert(HeaderName::from_static(name), key.header(prefix).ok_or_else(unusable)?);
        }
        Ok(request)
    }

    async fn exchange(&self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let request = self.write(prompt)?;
        let mut reply = Reply::default();
        let (client, config) = (&self.config.client, &self.config);
        let bounds = Bounds { answer_bytes: config.answer_bytes, deadline: attempt.deadline() };
        let mut said =
            Said::new(&attempt.transcript, config.key.as_ref().filter(|key| key.is_hidden_in_answers()));
        let exchange = exchange::<P>(client, request, bounds, &mut said, &mut reply);
        let outcome = attempt.unless_stopped(exchange).await.and_then(|outcome| outcome);
        said.end();
        if let Some(usage) = reply.usage() {
            attempt.meter.add(usage);
        }
        match outcome {
            Ok(()) => reply.finish::<P>(),
            // The model had said why it stopped: what is missing is not part of the answer.
            Err(Failure::Stopped(_)) if reply.is_told() => reply.finish::<P>(),
            Err(Failure::Stopped(_)) => Err(Failure::Stopped(reply.unfinished())),
            Err(failure) => Err(failure),
        }
    }
}

impl<P: Protocol> PlainProvider for Model<P> {
    fn id(&self) -> String {
        self.id.clone()
    }

    async fn answer(&mut self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let outcome = self.exchange(prompt, attempt).await;
        let refused = matches!(&outcome, Err(failure) if failure.kind() == Some(FailureKind::InvalidRequest));
        if refused && self.schema.take().is_some() {
            // Not every model and server knows structured output, nor every schema. The prompt asks for the value
            // too, and the engine checks it.
            return self.exchange(prompt, attempt).await;
        }
        outcome
    }

    fn given(&self, answer: Answer) -> Answer {
        match &self.config.key {
            Some(key) => hide_in_answer(key, answer),
            None => answer,
        }
    }

    /// Without the key, whoever put it there.
    fn shown(&self, text: String) -> String {
        match &self.config.key {
            Some(key) => key.hide_in(&text),
            None => text,
        }
    }
}

/// The same answer without the key. A value that does not satisfy its schema then is refused by the engine.
fn hide_in_answer(key: &ApiKey, mut answer: Answer) -> Answer {
    answer.text = key.hide_in_answer(answer.text);
    answer.structured = answer.structured.map(|value| hide_in_value(key, value));
    answer
}

fn hide_in_value(key: &ApiKey, value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(key.hide_in_answer(text)),
        Value::Array(items) => items.into_iter().map(|item| hide_in_value(key, item)).collect(),
        Value::Object(fields) => fields
            .into_iter()
            .map(|(name, field)| (key.hide_in_answer(name), hide_in_value(key, field)))
            .collect(),
        other => other,
    }
}

//! A child from start to answer: one request or, for retries and schemas, several in turn.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, UsageMeter};
use reqwest::Request;
use reqwest::header::{ACCEPT, CONTENT_TYPE, HeaderName, HeaderValue};
use serde_json::Value;

use super::exchange::{Bounds, exchange};
use super::protocol::{Protocol, Reply, Turn, header};
use super::{ApiKey, Config};
use crate::ask::{Answerer, Question};
use crate::attempts::Attempt;
use crate::failure::{Failure, FailureKind};
use crate::patience::Patience;
use crate::text;

/// How much of what the other side said goes into a reason, in bytes.
const MAX_MESSAGE_BYTES: usize = 2000;

pub(super) fn start<P: Protocol>(
    config: Arc<Config>,
    id: String,
    request: AgentRequest,
    cancel: CancellationToken,
) -> Result<Child, StartError> {
    let Some(model) = request.options.model.as_deref().or(config.model.as_deref()).map(Arc::from) else {
        return Err(StartError::new("no model is set; name one in the settings, or in the call"));
    };
    let question = Question::new(&request, config.schema_attempts)?;
    let schema = request.options.schema.clone().filter(|_| config.structured_output);
    let stall = request.options.stall_ms.map_or(config.bounds.stall, Duration::from_millis);
    let meter = UsageMeter::default();
    let patience = Patience::new(&request, cancel);
    let bounds = Bounds { stall, deadline: patience.deadline(), ..config.bounds };
    let work = Work { config, request, patience, bounds, model, schema, meter: meter.clone() };
    Ok(Child::new(id, work.run::<P>(question)).metered(meter))
}

/// What one child has to do.
struct Work {
    config: Arc<Config>,
    request: AgentRequest,
    patience: Patience,
    bounds: Bounds,
    model: Arc<str>,
    /// The schema for the API's structured output, as long as it is used.
    schema: Option<Value>,
    meter: UsageMeter,
}

impl Work {
    async fn run<P: Protocol>(self, question: Question) -> Result<Answer, ChildError> {
        let (config, request, patience) = (self.config.clone(), self.request.clone(), self.patience.clone());
        let mut asked = Asked::<P> { work: self, question, protocol: PhantomData };
        let outcome = config.retries.run(&mut asked, &request, &patience).await;
        match &config.key {
            Some(key) => outcome.map(|answer| hide_in_answer(key, answer)).map_err(|error| hide(key, error)),
            None => outcome,
        }
    }

    fn write<P: Protocol>(&self, prompt: &str) -> Result<Request, Failure> {
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

    async fn exchange<P: Protocol>(&self, prompt: &str) -> Result<String, Failure> {
        let request = self.write::<P>(prompt)?;
        let mut reply = Reply::default();
        let exchange = exchange::<P>(&self.config.client, request, self.bounds, &mut reply);
        let outcome = self.patience.with(exchange).await;
        if let Some(usage) = reply.usage() {
            self.meter.add(usage);
        }
        outcome.and_then(|()| reply.finish::<P>()).map_err(|failure| self.config.shown(failure))
    }
}

/// The API, as one child asks it.
struct Asked<P> {
    work: Work,
    question: Question,
    protocol: PhantomData<fn() -> P>,
}

impl<P: Protocol> Attempt for Asked<P> {
    async fn attempt(&mut self) -> Result<Answer, Failure> {
        self.question.clone().ask(self).await
    }
}

impl<P: Protocol> Answerer for Asked<P> {
    type Error = Failure;

    async fn answer(&mut self, prompt: &str) -> Result<String, Failure> {
        let outcome = self.work.exchange::<P>(prompt).await;
        let refused = matches!(&outcome, Err(failure) if failure.kind() == Some(FailureKind::InvalidRequest));
        if refused && self.work.schema.take().is_some() {
            // Not every model and server knows structured output, nor every schema. The prompt asks for the value
            // too, and the engine checks it.
            return self.work.exchange::<P>(prompt).await;
        }
        outcome
    }

    async fn unwanted(&self) -> Failure {
        self.work.patience.over().await.into()
    }
}

impl Config {
    /// A failure as it may be shown: without the key, and of bounded length. In this order: a key that a cut had split
    /// would not be found.
    fn shown(&self, failure: Failure) -> Failure {
        let Failure::Failed(mut reason) = failure else { return failure };
        if let Some(key) = &self.key {
            reason.message = key.hide_in(&reason.message);
        }
        reason.message = text::ends(&reason.message, MAX_MESSAGE_BYTES);
        Failure::Failed(reason)
    }
}

/// The same error without the key; this covers what did not come from an exchange.
fn hide(key: &ApiKey, error: ChildError) -> ChildError {
    match error {
        ChildError::Failed(reason) => ChildError::Failed(key.hide_in(&reason)),
        ChildError::Broken(reason) => ChildError::Broken(key.hide_in(&reason)),
        ChildError::Fatal(reason) => ChildError::Fatal(key.hide_in(&reason)),
        other => other,
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

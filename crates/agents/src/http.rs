//! A provider whose children are requests to a model API; the documentation is that of [`HttpAgents`].

mod client;
mod exchange;
mod key;
pub(crate) mod protocol;
mod refusal;
mod said;
mod schema;
mod sse;
pub(crate) mod stop;
mod work;

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use futures::future::BoxFuture;
use reqwest::Url;

pub use self::client::HttpError;
pub use self::key::{ApiKey, KeyError};
use self::protocol::Protocol;
pub(crate) use self::schema::closed;
use self::work::Model;
use crate::policy::AgentPolicy;
use crate::retry::RetryPolicy;

/// A provider whose children are requests to a model API: [`OpenAi`](crate::OpenAi) or
/// [`Anthropic`](crate::Anthropic).
///
/// # Which options it honours
/// `schema`, `model`, `timeoutMs`, `stallMs` and `retries` always; `effort` once
/// [`honours_effort`](Self::honours_effort) says that the models know it; `provider` and `isolation` never.
/// `agentType` where the host defines it: its instructions are the system prompt. A call that names no model gets that
/// of its `agentType`, or else the one of [`model`](Self::model).
///
/// # Schemas
/// The prompt ends with the order to answer with a JSON value that satisfies the schema, and the API's own structured
/// output is used where it can take the schema. If the API refuses such a request, it is asked without. A value that
/// does not satisfy the schema is asked for again, with what was wrong, up to
/// [`schema_attempts`](Self::schema_attempts) times in all.
///
/// # Tries
/// A failure that may pass (`rateLimit`, `server`, `connection`; see [`FailureKind`](crate::FailureKind)) is tried
/// again twice, or as often as [`transient_retries`](Self::transient_retries) says, or as often as the call's
/// `retries` says. With `retries`, answers that broke off, stalled, were declined or no good are tried again too.
/// Between tries is the pause that the API asks for, or one that doubles each time, at random somewhat shorter. A
/// refused key or a used-up quota is never tried again, and ends the run's starts ([`ChildError::Fatal`]).
///
/// `timeoutMs` spans all tries. `stallMs`, or [`stall`](Self::stall), bounds each silence: until the answer begins, and
/// between its pieces. A child that is cancelled, out of time or dropped closes its connection at once.
///
/// # Answers
/// A text is an answer only if the API has said why the model stopped, and that means that it had said everything:
/// reasons are closed lists, which `docs/agents.md` has. Once the reason has come, what the answer cost is waited for
/// up to two seconds.
///
/// # Keys
/// A key goes into one header of requests to the base URL, and nowhere else. Redirects are not followed. The key is
/// left out of every error and of `Debug`, and of answers that repeat it, unless it may be a word: fewer than 8
/// characters, or fewer than 12 and no digit.
///
/// # Panics
/// Children panic outside of a Tokio runtime, or in one whose I/O or time driver is not enabled.
///
/// [`ChildError::Fatal`]: fanfold::ChildError::Fatal
pub struct HttpAgents<P> {
    config: Arc<Config>,
    /// How many children there were; clones go on counting together.
    children: Arc<AtomicU64>,
    protocol: PhantomData<fn() -> P>,
}

/// What is fixed for all children.
#[derive(Clone, Debug)]
struct Config {
    client: reqwest::Client,
    operation: Url,
    key: Option<ApiKey>,
    model: Option<Arc<str>>,
    effort: bool,
    max_tokens: Option<u32>,
    structured_output: bool,
    answer_bytes: usize,
    /// The longest silence.
    stall: Duration,
    schema_attempts: u32,
    retries: RetryPolicy,
}

#[expect(private_bounds, reason = "which APIs there are is this crate's to say")]
impl<P: Protocol> HttpAgents<P> {
    pub(crate) fn at(base_url: &str, key: Option<ApiKey>) -> Result<Self, HttpError> {
        let base = client::base_url(base_url)?;
        if key.is_some() && !client::is_private(&base) {
            return Err(HttpError::BaseUrl(
                "over http:// everyone on the way could read the key; use https://",
            ));
        }
        let config = Config {
            client: client::client(&base)?,
            operation: client::operation(&base, P::OPERATION),
            key,
            model: None,
            effort: false,
            max_tokens: None,
            structured_output: true,
            answer_bytes: 10 * 1024 * 1024,
            stall: Duration::from_secs(300),
            schema_attempts: 3,
            retries: RetryPolicy { transient: 2, longest_wait: Duration::from_secs(60) },
        };
        Ok(Self { config: Arc::new(config), children: Arc::default(), protocol: PhantomData })
    }

    /// The model of children that name none. Without it they cannot start.
    #[must_use]
    pub fn model(self, model: impl Into<Arc<str>>) -> Self {
        self.with(|config| config.model = Some(model.into()))
    }

    /// Says that the models know efforts: `effort` is passed on. Models that do not know them refuse such requests.
    #[must_use]
    pub fn honours_effort(self) -> Self {
        self.with(|config| config.effort = true)
    }

    /// The most tokens of one answer; one that needs more has failed (`length`).
    #[must_use]
    pub fn max_tokens(self, tokens: u32) -> Self {
        self.with(|config| config.max_tokens = Some(tokens))
    }

    /// Whether the API's own structured output is used for schemas. True by default; without it the prompt alone asks
    /// for the value, which works everywhere.
    #[must_use]
    pub fn structured_output(self, used: bool) -> Self {
        self.with(|config| config.structured_output = used)
    }

    /// The longest silence of children that do not say `stallMs`. 5 minutes by default.
    #[must_use]
    pub fn stall(self, longest: Duration) -> Self {
        self.with(|config| config.stall = longest)
    }

    /// The longest answer, in bytes; a child that says more has failed. 10 MiB by default.
    #[must_use]
    pub fn max_answer_bytes(self, bytes: usize) -> Self {
        self.with(|config| config.answer_bytes = bytes)
    }

    /// How often a child is asked, in all, for a value that satisfies its schema. 3 by default, 1 at least.
    #[must_use]
    pub fn schema_attempts(self, attempts: u32) -> Self {
        self.with(|config| config.schema_attempts = attempts.max(1))
    }

    /// How often a failure that may pass is tried again, for children that do not say `retries`. 2 by default.
    #[must_use]
    pub fn transient_retries(self, retries: u32) -> Self {
        self.with(|config| config.retries.transient = retries)
    }

    /// The longest pause that the API may ask for before another try; a child that would have to wait longer has
    /// failed. A minute by default.
    #[must_use]
    pub fn max_retry_wait(self, longest: Duration) -> Self {
        self.with(|config| config.retries.longest_wait = longest)
    }

    fn with(mut self, change: impl FnOnce(&mut Config)) -> Self {
        change(Arc::make_mut(&mut self.config));
        self
    }
}

impl<P: Protocol> Subagents for HttpAgents<P> {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let number = self.children.fetch_add(1, Ordering::Relaxed) + 1;
        let config = self.config.clone();
        Box::pin(async move {
            let Some(model) = request.options.model.as_deref().or(config.model.as_deref()).map(Arc::from)
            else {
                return Err(StartError::new("no model is set; name one in the settings, or in the call"));
            };
            let stall = request.options.stall_ms.map_or(config.stall, Duration::from_millis);
            let policy = AgentPolicy::default()
                .retries(config.retries)
                .stall(Some(stall))
                .schema_attempts(config.schema_attempts);
            let id = format!("{}-{number}", P::NAME);
            policy.start(Model::<P>::new(config, id, model, request.clone()), &request, cancel).await
        })
    }

    fn supports(&self) -> Support {
        let mut support = Support::default();
        (support.schema, support.model, support.timeout, support.retries) = (true, true, true, true);
        (support.stall, support.instructions, support.effort) = (true, true, self.config.effort);
        support
    }
}

impl<P> Clone for HttpAgents<P> {
    fn clone(&self) -> Self {
        Self { config: self.config.clone(), children: self.children.clone(), protocol: PhantomData }
    }
}

impl<P: Protocol> fmt::Debug for HttpAgents<P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(P::NAME).field("config", &self.config).finish_non_exhaustive()
    }
}

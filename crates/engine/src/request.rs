//! What a run is started with.

use std::fmt;

use fanfold_types::Meta;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::observe::Observer;

/// A request to run a script; see [`Engine::start`](crate::Engine::start).
///
/// ```
/// use fanfold::{Meta, StartRequest};
/// let request = StartRequest::new("return args.n + 1")
///     .meta(Meta::new("add", "adds one"))
///     .args(serde_json::json!({"n": 1}))
///     .max_total_agents(10);
/// # let _ = request;
/// ```
#[must_use]
pub struct StartRequest {
    pub(crate) script: String,
    pub(crate) meta: Option<Meta>,
    pub(crate) args: Option<String>,
    pub(crate) provider: Option<String>,
    pub(crate) max_total_agents: Option<u32>,
    pub(crate) max_output_tokens: Option<u64>,
    pub(crate) seed: Option<u64>,
    pub(crate) start_time_ms: Option<u64>,
    pub(crate) parent: Option<String>,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) observers: Vec<Box<dyn Observer>>,
}

impl StartRequest {
    /// Runs this text: the body of an async function, or a body behind an `export const meta = {…}` header.
    pub fn new(script: impl Into<String>) -> Self {
        Self {
            script: script.into(),
            meta: None,
            args: None,
            provider: None,
            max_total_agents: None,
            max_output_tokens: None,
            seed: None,
            start_time_ms: None,
            parent: None,
            cancel: None,
            observers: Vec::new(),
        }
    }

    /// What the script is. Needed unless the script has a header.
    pub fn meta(mut self, meta: Meta) -> Self {
        self.meta = Some(meta);
        self
    }

    /// The script's global `args`. Without it, `args` is `undefined`.
    pub fn args(self, args: Value) -> Self {
        self.args_json(args.to_string())
    }

    /// The script's global `args` as JSON text, which is checked when the run starts.
    pub fn args_json(mut self, json: impl Into<String>) -> Self {
        self.args = Some(json.into());
        self
    }

    /// Which provider runs `agent()`, by the name it was registered under. Default `spawn`.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// A cap for this run alone: at least 1 and at most the engine's.
    pub fn max_total_agents(mut self, cap: u32) -> Self {
        self.max_total_agents = Some(cap);
        self
    }

    /// The budget of this run alone, in output tokens: at least 1 and at most the engine's, if that has one.
    pub fn max_output_tokens(mut self, budget: u64) -> Self {
        self.max_output_tokens = Some(budget);
        self
    }

    /// What `Math.random` is seeded with. Default: something new for each run.
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = Some(seed);
        self
    }

    /// What the script's `Date` says at first, in milliseconds since 1970. Default: the engine's clock at the start.
    pub fn start_time_ms(mut self, start_time_ms: u64) -> Self {
        self.start_time_ms = Some(start_time_ms);
        self
    }

    /// Who starts the run, such as the calling agent's id; handed to the provider with every child.
    pub fn parent(mut self, parent: impl Into<String>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// Cancels the run when it fires. One that has fired before the start lets no instruction run.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Has someone watch the run.
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
}

impl fmt::Debug for StartRequest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { meta, provider, max_total_agents, seed, .. } = self;
        f.debug_struct("StartRequest")
            .field("meta", meta)
            .field("provider", provider)
            .field("max_total_agents", max_total_agents)
            .field("seed", seed)
            .finish_non_exhaustive()
    }
}

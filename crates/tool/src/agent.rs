//! The calling agent, its session and its calls: what a host implements and passes.

use std::fmt;
use std::sync::Arc;

use fanfold::{CancellationToken, Observer, SessionRecord};
use futures::future::BoxFuture;

use crate::answer::Notice;

/// The agent whose model calls the tool.
///
/// ```
/// use fanfold_tool::{AppendError, CallingAgent, Session};
/// use fanfold::SessionRecord;
/// use futures::future::BoxFuture;
///
/// /// An agent that keeps its session in memory.
/// struct Assistant {
///     id: String,
///     log: std::sync::Mutex<Vec<SessionRecord>>,
/// }
///
/// impl CallingAgent for Assistant {
///     fn id(&self) -> &str {
///         &self.id
///     }
///     fn session(&self) -> Option<&dyn Session> {
///         Some(self)
///     }
/// }
///
/// impl Session for Assistant {
///     fn append(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), AppendError>> {
///         Box::pin(async move {
///             self.log.lock().map_err(|_| "the session is broken")?.push(record);
///             Ok(())
///         })
///     }
/// }
/// ```
pub trait CallingAgent: Send + Sync + 'static {
    /// Its id: the parent of the subagents, as their provider sees it, and the owner of background runs.
    fn id(&self) -> &str;

    /// Where its records go. Default: nowhere.
    fn session(&self) -> Option<&dyn Session> {
        None
    }

    /// Something went wrong that a person should know of and that changed no run: records that could not be kept.
    /// Must not block. Default: ignored.
    fn warning(&self, _warning: &str) {}

    /// A background run of this agent has ended. A host that can push tells the model; one that cannot ignores it,
    /// and the model asks for itself. Must not block. Default: ignored.
    fn run_ended(&self, _notice: &Notice) {}
}

/// An agent's session: a log that the run's records are appended to, in order and one at a time.
pub trait Session: Send + Sync {
    /// Appends a record.
    ///
    /// Observes only: whatever this does, the run goes on. The first append of a run that fails, panics or takes
    /// longer than five seconds is the last one of that run.
    fn append(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), AppendError>>;
}

/// Why a record could not be appended.
pub type AppendError = Box<dyn std::error::Error + Send + Sync>;

/// One call of a tool: who calls, and what the host has to do with it.
#[derive(Default)]
#[must_use]
pub struct Call {
    pub(crate) agent: Option<Arc<dyn CallingAgent>>,
    pub(crate) nested: bool,
    pub(crate) cancel: Option<CancellationToken>,
    pub(crate) provider: Option<String>,
    pub(crate) parent: Option<String>,
    pub(crate) confirms: bool,
    pub(crate) observers: Vec<Box<dyn Observer>>,
}

impl Call {
    /// A call by this agent.
    pub fn by(agent: Arc<dyn CallingAgent>) -> Self {
        Self { agent: Some(agent), ..Self::default() }
    }

    /// A call by nobody, which the tools refuse: for hosts that cannot tell who calls.
    pub fn anonymous() -> Self {
        Self::default()
    }

    /// The call is made within another tool's transport: it leaves no records in the session.
    pub fn nested(mut self) -> Self {
        self.nested = true;
        self
    }

    /// Cancels the call when it fires, and may have fired before. A background run that has started is no longer
    /// part of the call that started it.
    pub fn cancel_with(mut self, token: CancellationToken) -> Self {
        self.cancel = Some(token);
        self
    }

    /// Which provider runs the subagents, by the name that the engine knows it by. Default: the engine's default.
    pub fn provider(mut self, name: impl Into<String>) -> Self {
        self.provider = Some(name.into());
        self
    }

    /// What the provider of the subagents is told of who starts the run. Default: the agent's id.
    pub fn parent(mut self, parent: impl Into<String>) -> Self {
        self.parent = Some(parent.into());
        self
    }

    /// The answer may be lost on its way to the model. A result that it holds counts as read once the host says so with
    /// [`Runs::mark_read`](crate::Runs::mark_read). Default: a result that was answered is read.
    pub fn confirms_reading(mut self) -> Self {
        self.confirms = true;
        self
    }

    /// Has someone watch the run that the call starts.
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.observers.push(Box::new(observer));
        self
    }
}

impl fmt::Debug for Call {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Call")
            .field("agent", &self.agent.as_ref().map(|agent| agent.id()))
            .field("nested", &self.nested)
            .field("provider", &self.provider)
            .finish_non_exhaustive()
    }
}

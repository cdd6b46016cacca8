//! The host's side of `agent()`: who runs a child, and what it can promise.

use std::borrow::Cow;
use std::error::Error;
use std::fmt;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use fanfold_types::{ErrorCode, Usage, WorkflowError, Worktree};
use futures::future::BoxFuture;
use serde::Serialize;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use crate::activity::Activity;
use crate::agent_types::{AgentType, AgentTypes};
use crate::schema::Schema;

/// Starts children on behalf of scripts.
///
/// Starting and running are two steps: a child that cannot start is an error that kills the script
/// (`AGENT_START`), while a child that ends badly is `null` to it.
///
/// ```
/// use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents};
/// use futures::future::BoxFuture;
///
/// /// Answers every prompt with its length.
/// struct Count;
///
/// impl Subagents for Count {
///     fn start(
///         &self,
///         request: AgentRequest,
///         _cancel: CancellationToken,
///     ) -> BoxFuture<'static, Result<Child, StartError>> {
///         Box::pin(async move {
///             let answer = request.prompt.len().to_string();
///             Ok(Child::new(format!("count-{}", request.seq), async move { Ok(Answer::text(answer)) }))
///         })
///     }
/// }
/// ```
pub trait Subagents: Send + Sync + 'static {
    /// Starts a child: the future is ready once the child runs.
    ///
    /// Called in the order of the script's calls. The future, and the child's result after it, is polled by the
    /// run's own task together with those of its siblings: work that computes or blocks belongs into a task of
    /// its own.
    ///
    /// `cancel` fires when the child is no longer wanted: the run was cancelled, or the script ended without
    /// it. Whatever has been started must then stop, and the child's result must come to its end. The run waits
    /// for that within its grace period (`disposeGraceMs`) and drops the future afterwards; dropping it must
    /// stop the child too.
    ///
    /// A panic counts as an error.
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>>;

    /// Which options of `agent()` this provider honours. By default those that cost it nothing: none.
    fn supports(&self) -> Support {
        Support::default()
    }

    /// Why this option of `agent()` cannot be guaranteed and what to do about it, as a clause such as `the command
    /// does not read FANFOLD_MODEL`. For the message of `UNSUPPORTED_OPTION`.
    fn why_not(&self, option: &str) -> Option<String> {
        let _ = option;
        None
    }
}

macro_rules! delegate {
    ($($pointer:ty),*) => {$(
        impl<S: Subagents + ?Sized> Subagents for $pointer {
            fn start(
                &self,
                request: AgentRequest,
                cancel: CancellationToken,
            ) -> BoxFuture<'static, Result<Child, StartError>> {
                (**self).start(request, cancel)
            }

            fn supports(&self) -> Support {
                (**self).supports()
            }

            fn why_not(&self, option: &str) -> Option<String> {
                (**self).why_not(option)
            }
        }
    )*};
}

delegate!(Arc<S>, Box<S>);

/// Which options of `agent()` a provider honours.
///
/// A hint that it does not honour is ignored with a warning; a guarantee that it cannot give is
/// `UNSUPPORTED_OPTION` before the child starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Support {
    /// Guarantee: [`Answer::structured`] is given where the request has a schema. The engine validates it.
    pub schema: bool,
    /// Guarantee: the child runs on the model asked for.
    pub model: bool,
    /// Guarantee: the child runs at the model provider asked for.
    pub provider: bool,
    /// Guarantee: the child works in a place of its own.
    pub isolation: bool,
    /// Guarantee: the child ends within the time asked for.
    pub timeout: bool,
    /// Guarantee: a child that fails is tried again as often as asked for.
    pub retries: bool,
    /// Hint: how hard to think.
    pub effort: bool,
    /// Hint: which kind of agent to use. This is for a provider that knows kinds of its own: it gets every name,
    /// also one that the host does not define.
    pub agent_type: bool,
    /// Hint: children follow the instructions of the [`AgentType`](crate::AgentType) that the host defines, see
    /// [`AgentOptions::definition`].
    pub instructions: bool,
    /// Hint: how long the child may say nothing.
    pub stall: bool,
}

impl Support {
    /// Everything.
    pub const ALL: Self = Self {
        schema: true,
        model: true,
        provider: true,
        isolation: true,
        timeout: true,
        retries: true,
        effort: true,
        agent_type: true,
        instructions: true,
        stall: true,
    };
}

/// What a child is asked to do: a validated call of `agent()`.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentRequest {
    /// The run's id.
    #[serde(skip)]
    pub run_id: Arc<str>,
    /// The number of the call in its run, from 1.
    #[serde(skip)]
    pub seq: u32,
    /// Who started the run, as its [`StartRequest`](crate::StartRequest) says.
    #[serde(skip)]
    pub parent: Option<Arc<str>>,
    /// What people call the child: its label, or its prompt's first line.
    #[serde(skip)]
    pub label: Arc<str>,
    /// The phase it belongs to: its own, or the script's at the time of the call.
    #[serde(skip)]
    pub phase: Option<Arc<str>>,
    /// The prompt, never empty.
    pub prompt: String,
    /// The options of the call.
    #[serde(flatten)]
    pub options: AgentOptions,
    /// Where the provider reports what the child does while it works.
    #[serde(skip)]
    pub activity: Activity,
}

impl AgentRequest {
    /// A request without options, for tests of providers.
    pub fn new(prompt: impl Into<String>) -> Self {
        let prompt = prompt.into();
        let label = crate::run::default_label(&prompt).into();
        let options = AgentOptions::default();
        let activity = Activity::default();
        Self { run_id: "".into(), seq: 1, parent: None, label, phase: None, prompt, options, activity }
    }
}

/// The options of a call of `agent()`, as the script gave them: absent is `None`.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentOptions {
    /// What people call the child.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// The phase it belongs to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The JSON Schema (2020-12, an object at the root) that its answer must satisfy, by the keywords of that draft
    /// alone: those of others are rewritten, see [`Schema::as_json`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<Value>,
    /// The schema, compiled.
    #[serde(skip)]
    pub(crate) validator: Option<Arc<Schema>>,
    /// The model provider.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider: Option<String>,
    /// The model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// How hard to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Which kind of agent to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent_type: Option<String>,
    /// The kind of agent that `agentType` names, where the host defines it.
    #[serde(skip)]
    pub definition: Option<Arc<AgentType>>,
    /// Where the child works: `worktree` for a place of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub isolation: Option<String>,
    /// The longest the child may take, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
    /// The longest the child may say nothing, in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stall_ms: Option<u64>,
    /// How often to try again a child that fails.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retries: Option<u32>,
}

impl AgentOptions {
    /// The schema, ready to check values.
    ///
    /// # Errors
    /// `UNSUPPORTED_SCHEMA` for one that cannot be enforced; never for a request that the engine made.
    pub fn validator(&self) -> Result<Option<Arc<Schema>>, WorkflowError> {
        match (&self.validator, &self.schema) {
            (Some(validator), _) => Ok(Some(validator.clone())),
            (None, Some(schema)) => Ok(Some(Arc::new(Schema::new(schema)?))),
            (None, None) => Ok(None),
        }
    }

    /// `timeoutMs` as a duration.
    pub fn timeout(&self) -> Option<Duration> {
        self.timeout_ms.map(Duration::from_millis)
    }
}

/// A child that runs.
pub struct Child {
    /// The provider's name for it, shown in events. Never empty.
    pub id: String,
    /// Its result. Dropping it stops the child.
    pub result: BoxFuture<'static, Result<Answer, ChildError>>,
    /// What it has cost so far. The engine reads it when the result is there.
    pub meter: UsageMeter,
    /// Where the worktree is noted that it leaves behind, before its result is there.
    pub left: Arc<OnceLock<Worktree>>,
}

impl Child {
    /// A child with this id and result.
    pub fn new(
        id: impl Into<String>,
        result: impl Future<Output = Result<Answer, ChildError>> + Send + 'static,
    ) -> Self {
        Self { id: id.into(), result: Box::pin(result), meter: UsageMeter::default(), left: Arc::default() }
    }

    /// The same child, whose cost is told on this meter.
    #[must_use]
    pub fn metered(mut self, meter: UsageMeter) -> Self {
        self.meter = meter;
        self
    }
}

impl fmt::Debug for Child {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Child").field("id", &self.id).finish_non_exhaustive()
    }
}

/// Counts the tokens of one child: its provider adds what each request cost, whether it succeeded or not.
///
/// Clones share the count.
///
/// ```
/// use fanfold::{Answer, Child, Usage, UsageMeter};
///
/// let meter = UsageMeter::default();
/// let child = Child::new("child-1", {
///     let meter = meter.clone();
///     async move {
///         meter.add(Usage::new(1200, 80));
///         Ok(Answer::text("done"))
///     }
/// });
/// let child = child.metered(meter);
/// ```
#[derive(Clone, Debug, Default)]
pub struct UsageMeter(Arc<Mutex<Option<Usage>>>);

impl UsageMeter {
    /// Adds what one request cost.
    pub fn add(&self, usage: Usage) {
        let mut total = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *total = Some(total.unwrap_or_default() + usage);
    }

    /// What was added, together; `None` if nothing ever was.
    pub fn total(&self) -> Option<Usage> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a child that succeeded answered.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Answer {
    /// Its final text.
    pub text: String,
    /// Its value, where a schema was asked for. The engine validates it, whatever the provider claims.
    pub structured: Option<Value>,
}

impl Answer {
    /// An answer in text.
    pub fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), structured: None }
    }

    /// An answer that is a value.
    pub fn structured(value: Value) -> Self {
        Self { text: String::new(), structured: Some(value) }
    }
}

/// Why a child could not start: kills the script with `AGENT_START`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct StartError(pub String);

impl StartError {
    /// A start that failed, and why.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// Why a child failed, as its provider tells. Shown as `kind: message`, or the message alone.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct FailureReason {
    /// What kind of failure it was, in one word that programs can rely on, such as `rateLimit`.
    pub kind: Option<Cow<'static, str>>,
    /// What happened, for people.
    pub message: String,
    /// The error that it comes of.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl FailureReason {
    /// A reason of this kind.
    pub fn of_kind(kind: impl Into<Cow<'static, str>>, message: impl Into<String>) -> Self {
        Self { kind: Some(kind.into()), message: message.into(), source: None }
    }
}

impl<S: Into<String>> From<S> for FailureReason {
    fn from(message: S) -> Self {
        Self { message: message.into(), ..Self::default() }
    }
}

/// The sources are not compared.
impl PartialEq for FailureReason {
    fn eq(&self, other: &Self) -> bool {
        (&self.kind, &self.message) == (&other.kind, &other.message)
    }
}

impl Eq for FailureReason {}

impl fmt::Display for FailureReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(kind) = &self.kind {
            write!(f, "{kind}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl Error for FailureReason {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source.as_ref().map(|source| &**source as &(dyn Error + 'static))
    }
}

/// How a child ended without an answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ChildError {
    /// It ended without success: `null` to the script.
    #[error(transparent)]
    Failed(FailureReason),
    /// It was told to stop, and did.
    #[error("the child was told to stop")]
    Cancelled,
    /// The provider itself broke: kills the script with `AGENT_RESULT`.
    #[error("{0}")]
    Broken(String),
    /// The provider broke, and would for every other child too, since a key is refused or a quota used up: as
    /// [`Broken`](Self::Broken), and the run starts no more children. Calls that wait and calls to come get
    /// `AGENT_START` with this reason.
    #[error(transparent)]
    Fatal(FailureReason),
}

impl ChildError {
    /// A child that ended without success, and why.
    pub fn failed(reason: impl Into<FailureReason>) -> Self {
        Self::Failed(reason.into())
    }

    /// A provider that broke, and how.
    pub fn broken(reason: impl Into<String>) -> Self {
        Self::Broken(reason.into())
    }

    /// A provider that cannot run any more children, and why.
    pub fn fatal(reason: impl Into<FailureReason>) -> Self {
        Self::Fatal(reason.into())
    }
}

/// Checks a provider's claim against a request; see [`Support`].
pub(crate) fn unsupported(
    options: &AgentOptions,
    support: Support,
    provider: &dyn Subagents,
) -> Result<Vec<&'static str>, WorkflowError> {
    let guarantees = [
        ("schema", options.schema.is_some(), support.schema),
        ("model", options.model.is_some(), support.model),
        ("provider", options.provider.is_some(), support.provider),
        ("isolation", options.isolation.is_some(), support.isolation),
        ("timeoutMs", options.timeout_ms.is_some(), support.timeout),
        ("retries", options.retries.is_some(), support.retries),
    ];
    if let Some((name, ..)) = guarantees.iter().find(|(_, asked, given)| *asked && !given) {
        let why = provider.why_not(name).map_or_else(String::new, |why| format!(" ({why})"));
        return Err(ErrorCode::UnsupportedOption
            .error(format!(
                "agent() option {name:?} is a guarantee that this run's provider cannot give{why}; leave it out"
            ))
            .on(*name));
    }
    let hints = [
        ("effort", options.effort.is_some(), support.effort),
        (
            "agentType",
            options.agent_type.is_some(),
            support.agent_type || (support.instructions && options.definition.is_some()),
        ),
        ("stallMs", options.stall_ms.is_some(), support.stall),
    ];
    Ok(hints.iter().filter(|(_, asked, given)| *asked && !given).map(|(name, ..)| *name).collect())
}

/// Looks up the kind of agent that a call names.
///
/// # Errors
/// `AGENT_START` for a name that neither the host nor the provider defines.
pub(crate) fn define(
    options: &mut AgentOptions,
    support: Support,
    types: Option<&dyn AgentTypes>,
) -> Result<(), WorkflowError> {
    let (Some(name), Some(types)) = (&options.agent_type, types) else { return Ok(()) };
    match types.find(name) {
        Some(definition) => {
            // Half of a kind is none: a provider that ignores its instructions is not given its model either.
            let honoured = support.instructions || support.agent_type;
            if honoured && support.model && options.model.is_none() {
                options.model.clone_from(&definition.model);
            }
            options.definition = Some(definition);
            Ok(())
        }
        // The provider knows kinds of its own.
        None if support.agent_type => Ok(()),
        None => {
            let names = types.names();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let how = types.how_to_define();
            Err(ErrorCode::AgentStart
                .error(format!(
                    "agent() option \"agentType\" names {name:?}, which nobody defines (known: {known}); {how}"
                ))
                .on("agentType"))
        }
    }
}

//! How a run ended.

use alloc::borrow::ToOwned as _;
use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{Usage, WorkflowError};

/// The one terminal state of a run.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "lowercase")]
pub enum StopReason {
    /// The script returned a value.
    Completed,
    /// The run was cancelled, whatever the script did afterwards.
    Cancelled,
    /// The script failed or broke a limit.
    Error,
}

/// What became of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunResult {
    /// What the script returned, as JSON text; `null` when it returned nothing or did not complete.
    pub value: Box<RawValue>,
    /// The terminal state.
    pub stop_reason: StopReason,
    /// Present exactly when the run did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    /// `agent()` calls that were accepted.
    pub agents_started: u32,
    /// What all children cost together, where a provider said so; children that failed are counted too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The children that could not start or ended without success, in the order they ended.
    #[serde(default)]
    pub failures: Vec<AgentFailure>,
    /// The worktrees with changes that children left behind, in the order they ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Worktree>,
    /// `agent()` calls whose promise nothing ever looked at: their answers were lost.
    #[serde(default)]
    pub never_awaited: u32,
    /// What was put right or ignored on the way, for people: unhandled rejections, errors that
    /// `parallel()` and `pipeline()` made `null` of, hints that the provider does not honour.
    #[serde(default)]
    pub warnings: Vec<String>,
    /// WebAssembly fuel that the script used, about one unit an instruction.
    #[serde(default)]
    pub fuel_used: u64,
    /// What `Math.random` was seeded with. With the same seed and start time a run sees the same values again.
    #[serde(default)]
    pub seed: u64,
    /// What `Date` said, in milliseconds since 1970.
    #[serde(default)]
    pub start_time_ms: u64,
}

impl RunResult {
    /// A result without value, failures or warnings; the fields are public.
    pub fn new(stop_reason: StopReason, error: Option<WorkflowError>) -> Self {
        Self {
            value: RawValue::NULL.to_owned(),
            stop_reason,
            error,
            agents_started: 0,
            usage: None,
            failures: Vec::new(),
            worktrees: Vec::new(),
            never_awaited: 0,
            warnings: Vec::new(),
            fuel_used: 0,
            seed: 0,
            start_time_ms: 0,
        }
    }
}

/// A child that ended without success, or could not start.
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
pub struct AgentFailure {
    /// The number of its `agent()` call.
    pub seq: u32,
    /// Its label.
    pub label: String,
    /// What kind of failure it was, in one word of the provider's such as `rateLimit`, if it told any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why, as the provider says it, after the kind.
    pub reason: String,
}

impl AgentFailure {
    /// A failure of no kind in particular; the fields are public.
    pub fn new(seq: u32, label: impl Into<String>, reason: impl Into<String>) -> Self {
        Self { seq, label: label.into(), kind: None, reason: reason.into() }
    }
}

/// A git worktree in which a child worked alone (`isolation: "worktree"`), with what it changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Worktree {
    /// The number of the child's `agent()` call.
    pub seq: u32,
    /// The child's label.
    pub label: String,
    /// The worktree's folder.
    pub path: String,
    /// The branch that is checked out in it, or the one it was made with.
    pub branch: String,
    /// The commit that it was made from.
    pub base: String,
    /// The commits that were added to it, the oldest first; the last 100 of them.
    pub commits: Vec<String>,
    /// Whether it holds changes that are not committed.
    pub uncommitted: bool,
    /// Why it could not be told what changed; it was kept for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

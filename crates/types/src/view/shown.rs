//! What there is to see of a run.

use alloc::string::String;
use alloc::sync::Arc;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::{AgentOutcome, FailureGroup, Meta, StopReason, Usage, WorkflowError};

/// How far a run is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum RunState {
    /// Its start was not told yet.
    #[default]
    Waiting,
    /// It runs.
    Running,
    /// It returned a value.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// It failed, or could not start.
    Error,
    /// Its log is over without an end.
    Interrupted,
}

impl From<StopReason> for RunState {
    fn from(reason: StopReason) -> Self {
        match reason {
            StopReason::Completed => Self::Completed,
            StopReason::Cancelled => Self::Cancelled,
            StopReason::Error => Self::Error,
        }
    }
}

/// How far an agent is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum AgentState {
    /// It waits for its turn.
    Queued,
    /// It did not start.
    Refused,
    /// It runs.
    Running,
    /// It gave an answer.
    Completed,
    /// It ended without success.
    Failed,
    /// It was told to stop.
    Cancelled,
    /// The log of its run is over without its end.
    Interrupted,
}

impl From<AgentOutcome> for AgentState {
    fn from(outcome: AgentOutcome) -> Self {
        match outcome {
            AgentOutcome::Completed => Self::Completed,
            AgentOutcome::Failed => Self::Failed,
            AgentOutcome::Cancelled => Self::Cancelled,
        }
    }
}

/// How many agents are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "they are AgentState's")]
pub struct Tally {
    #[serde(default)]
    pub queued: u32,
    #[serde(default)]
    pub refused: u32,
    pub running: u32,
    pub completed: u32,
    pub failed: u32,
    pub cancelled: u32,
    pub interrupted: u32,
}

impl Tally {
    /// Those that are over, with or without success. One that did not start is not among them.
    pub fn ended(&self) -> u32 {
        self.completed + self.failed + self.cancelled + self.interrupted
    }

    /// Those that have started.
    pub fn started(&self) -> u32 {
        self.running + self.ended()
    }

    /// All that were called: those that have started, wait for their turn, or did not start.
    pub fn called(&self) -> u32 {
        self.queued + self.refused + self.started()
    }

    /// What has not ended was interrupted.
    pub(super) fn interrupt(&mut self) {
        self.interrupted += self.queued + self.running;
        (self.queued, self.running) = (0, 0);
    }

    pub(super) fn count(&mut self, state: AgentState) -> &mut u32 {
        match state {
            AgentState::Queued => &mut self.queued,
            AgentState::Refused => &mut self.refused,
            AgentState::Running => &mut self.running,
            AgentState::Completed => &mut self.completed,
            AgentState::Failed => &mut self.failed,
            AgentState::Cancelled => &mut self.cancelled,
            AgentState::Interrupted => &mut self.interrupted,
        }
    }

    pub(super) fn move_from(&mut self, from: AgentState, to: AgentState) {
        let count = self.count(from);
        *count = count.saturating_sub(1);
        *self.count(to) += 1;
    }
}

/// The run as a whole. Times are those of its events, in milliseconds since 1970; session records have none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunHead {
    /// The run's id, once something was told of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The workflow's name, once the run has started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// What the script says it is. Session records know the name alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub meta: Option<Arc<Meta>>,
    /// How far it is.
    pub state: RunState,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// When the last thing that is known happened.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<u64>,
    /// The phase the script is in, by its index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub current_phase: Option<u32>,
    /// Its agents.
    pub agents: Tally,
    /// The most agents that ran at once.
    pub peak: u32,
    /// `agent()` calls that were accepted, known at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agents_started: Option<u32>,
    /// What its agents have cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    /// What was put right or ignored on the way.
    pub warnings: Vec<String>,
    /// Whether the result was told.
    pub has_result: bool,
    /// How many lines it has logged.
    pub logged: u32,
    /// How many of them, the oldest, are no longer kept.
    pub forgotten_logs: u32,
    /// How many events were never told.
    pub missing_events: u64,
}

impl RunHead {
    pub(super) fn interrupt(&mut self) {
        if matches!(self.state, RunState::Waiting | RunState::Running) {
            self.state = RunState::Interrupted;
        }
        self.current_phase = None;
        self.agents.interrupt();
    }
}

/// A phase that has started: the script entered it, or called an agent of it. One that is only planned is in
/// [`Meta::phases`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PhaseView {
    /// Its place, in the order in which they started, from 0.
    pub index: u32,
    /// Its title. No phase is not the same as a phase with an empty title.
    pub title: Arc<str>,
    /// When it started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// When it was last seen to be left, or one of its agents to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// Whether the script is in it, or an agent of it runs or waits for its turn.
    pub active: bool,
    /// Its agents.
    pub agents: Tally,
    #[serde(skip)]
    pub(super) changed: u64,
}

impl PhaseView {
    /// `last` is when something of the run was last seen.
    pub(super) fn interrupt(&mut self, last: Option<u64>) {
        if self.active {
            self.ended = self.ended.max(last);
        }
        self.active = false;
        self.agents.interrupt();
    }
}

/// An agent: a call of `agent()` that waits for its turn, runs, or is over.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentView {
    /// Its place, in the order in which they were first heard of, from 0.
    pub index: u32,
    /// The number of its `agent()` call in the run, from 1.
    pub seq: u64,
    /// What people call it. Labels may repeat.
    pub label: String,
    /// Its phase by its index, if it has one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    /// The provider's name for it; empty before it has started.
    pub child_id: String,
    /// How far it is.
    pub state: AgentState,
    /// When it was called, where that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<u64>,
    /// When it began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began: Option<u64>,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<u64>,
    /// What it cost, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Why it did not start or succeed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// How many of its attempts failed and were followed by another one.
    #[serde(default)]
    pub retries: u32,
    /// The attempt that failed last, until something is heard of the next one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetryView>,
    /// When it last said something, or began.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub heard: Option<u64>,
    /// The end of what it has said, at most 400 characters. Its text, not its thinking.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub said: String,
    /// The tool that it called last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    #[serde(skip)]
    pub(super) changed: u64,
}

impl AgentView {
    /// After how many milliseconds without a word an agent is told to be quiet. An agent that says much is reported
    /// every five seconds.
    pub const QUIET_AFTER_MS: u64 = 8_000;

    /// For how many milliseconds it has been quiet by `now`, if that is worth telling: it runs, no wait for another
    /// attempt explains it, and it is longer than [`QUIET_AFTER_MS`](Self::QUIET_AFTER_MS).
    pub fn quiet_for(&self, now: u64) -> Option<u64> {
        let began = self.retry.as_ref().map_or(0, |retry| retry.until);
        let quiet = now.saturating_sub(self.heard?.max(began));
        (self.state == AgentState::Running && quiet >= Self::QUIET_AFTER_MS).then_some(quiet)
    }

    /// In how many milliseconds from `now` it is tried again, and why, if it waits for that.
    pub fn tries_again_in(&self, now: u64) -> Option<(u64, &RetryView)> {
        let retry = self.retry.as_ref().filter(|retry| retry.until > now)?;
        Some((retry.until - now, retry))
    }

    pub(super) fn interrupt(&mut self) {
        if matches!(self.state, AgentState::Queued | AgentState::Running) {
            self.state = AgentState::Interrupted;
            self.retry = None;
        }
    }
}

/// An attempt that failed, while the next one is waited for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RetryView {
    /// What kind of failure it was, in one word.
    pub kind: String,
    /// What was wrong.
    pub reason: String,
    /// When the next attempt begins.
    pub until: u64,
}

/// A line that the script logged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct LogView {
    /// Its number among the run's logs, from 1.
    pub number: u32,
    /// When it was logged.
    pub at: u64,
    /// What it says; cut after 16 KiB.
    pub message: Arc<str>,
    /// The phase the script was in, by its index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<u32>,
    #[serde(skip)]
    pub(super) changed: u64,
}

/// What is new in a view since it was last looked at.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ViewChanges {
    /// What to ask with next time.
    pub revision: u64,
    /// The run, always whole.
    pub run: RunHead,
    /// The phases that are new or have changed.
    pub phases: Vec<PhaseView>,
    /// The agents that are new or have changed.
    pub agents: Vec<AgentView>,
    /// The logs that are new.
    pub logs: Vec<LogView>,
    /// All failures by their reasons, if there are new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failures: Option<Vec<FailureGroup>>,
}

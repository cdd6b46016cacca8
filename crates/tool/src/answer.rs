//! What the tools answer: values for programs, text for models.

use fanfold::{AgentFailure, ErrorCode, RunResult, StopReason, WorkflowError, text};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::words::{failure_lines, short};

/// The answer of a call: the whole value, and what a model is shown of it.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer<T = Value> {
    /// The canonical value, whole.
    pub value: T,
    /// Its text for the model, which may be cut.
    pub text: String,
}

impl<T: Serialize> Answer<T> {
    pub(crate) fn new(value: T, text: String) -> Self {
        Self { value, text }
    }

    /// The same answer with its value as JSON.
    pub fn into_json(self) -> Answer {
        // Types with string keys and finite numbers alone: they have a JSON form.
        Answer { value: serde_json::to_value(self.value).unwrap_or_default(), text: self.text }
    }
}

/// A workflow that completed.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Completed {
    /// The run's id.
    pub run_id: String,
    /// `agent()` calls that were accepted.
    pub agents_started: u32,
    /// What the script returned: any JSON value.
    #[schemars(with = "Value")]
    pub result: Box<RawValue>,
    /// The agents that could not start or ended without success, if any, in the order they ended.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub failures: Vec<AgentFailure>,
}

impl Completed {
    pub(crate) fn new(run_id: &str, result: &RunResult) -> Self {
        Self {
            run_id: run_id.to_owned(),
            agents_started: result.agents_started,
            result: result.value.clone(),
            failures: result.failures.clone(),
        }
    }
}

/// A workflow that has started and goes on by itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Started {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
}

/// Whether a run still runs, and how it ended if not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum RunState {
    /// It has not ended.
    Running,
    /// The script returned a value.
    Completed,
    /// It was cancelled.
    Cancelled,
    /// The script failed or broke a limit.
    Error,
}

impl RunState {
    /// As JSON spells it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Cancelled => "cancelled",
            Self::Error => "error",
        }
    }
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

/// How agents are doing, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct AgentCounts {
    /// Have started and not ended.
    pub running: u32,
    /// Ended with an answer.
    pub completed: u32,
    /// Ended without success.
    pub failed: u32,
    /// Were told to stop.
    pub cancelled: u32,
}

/// A phase and its agents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct PhaseStatus {
    /// The phase's title.
    pub title: String,
    /// Its agents.
    pub agents: AgentCounts,
}

/// Something that happened in a run, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct EventLine {
    /// The event's number in its run, from 1.
    pub n: u64,
    /// How long ago it happened, in milliseconds.
    pub age_ms: u64,
    /// What happened, at most 200 characters.
    pub text: String,
}

/// How a run is doing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunStatus {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// Whether it still runs, and how it ended if not.
    pub state: RunState,
    /// Why it did not complete, once it has ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    /// From the start to now, or to the end, in milliseconds.
    pub elapsed_ms: u64,
    /// Since the last event, in milliseconds. A run that has said nothing for long may hang.
    pub last_event_age_ms: u64,
    /// The phase that the script is in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub phase: Option<String>,
    /// The phases that were planned, entered, or named by an agent; at most 50.
    pub phases: Vec<PhaseStatus>,
    /// All agents.
    pub agents: AgentCounts,
    /// The last events, at most 10, the latest last.
    pub last_events: Vec<EventLine>,
}

/// A run of an agent, in short.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ListedRun {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// Whether it still runs, and how it ended if not.
    pub state: RunState,
    /// From the start to now, or to the end, in milliseconds.
    pub elapsed_ms: u64,
    /// Its agents.
    pub agents: AgentCounts,
    /// Whether its result was read to its end.
    pub read: bool,
}

/// The runs of an agent that run or are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct RunList {
    /// The runs, the latest first; at most 50.
    pub runs: Vec<ListedRun>,
    /// How many more there are.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub more: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

/// A part of a run's result, or that there is none yet.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResultPage {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// `running`, in which case there is no page yet, or `completed`.
    pub state: RunState,
    /// `agent()` calls that were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agents_started: Option<u32>,
    /// The agents that could not start or ended without success, if any; on the first page. At most 50, with at most
    /// 300 characters of each reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(default)]
    pub failures: Vec<AgentFailure>,
    /// How many more agents failed.
    #[serde(skip_serializing_if = "is_zero")]
    #[schemars(default)]
    pub more_failures: u32,
    /// [`FailedAgents::lines`].
    #[serde(skip)]
    failure_lines: String,
    /// A part of the value's JSON, indented by two spaces. All pages together are the JSON text of the value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub page: Option<String>,
    /// Where the page begins, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub offset: Option<u64>,
    /// The length of the whole, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
    /// Where the next page begins. Missing on the last one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_offset: Option<u64>,
}

/// A run that was told to stop, and has.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Stopped {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// `cancelled`, or how it had ended before it could be.
    pub state: RunState,
}

/// That a background run has ended; see [`CallingAgent::run_ended`](crate::CallingAgent::run_ended).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Notice {
    /// The run's id.
    pub run_id: String,
    /// The workflow's name.
    pub name: String,
    /// How it ended.
    pub state: RunState,
    /// The same for the model, with what to do next.
    pub text: String,
}

impl ResultPage {
    /// The failed agents of the first page.
    pub fn failed_agents(&self) -> FailedAgents {
        let (failures, lines) = (self.failures.clone(), self.failure_lines.clone());
        FailedAgents { failures, more: self.more_failures, lines }
    }

    /// A run that has not ended: no page.
    pub(crate) fn running(run_id: &str, name: &str) -> Self {
        Self {
            run_id: run_id.to_owned(),
            name: name.to_owned(),
            state: RunState::Running,
            agents_started: None,
            failures: Vec::new(),
            more_failures: 0,
            failure_lines: String::new(),
            page: None,
            offset: None,
            total: None,
            next_offset: None,
        }
    }

    /// A part of a run's value, for a run that completed.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` when the value is not as long as that.
    pub(crate) fn of(
        run_id: &str,
        name: &str,
        result: &RunResult,
        offset: u64,
        max_chars: usize,
    ) -> Result<Self, WorkflowError> {
        let page = text::page(result.value.get(), usize::try_from(offset).unwrap_or(usize::MAX), max_chars);
        let total = page.total as u64;
        if offset > total {
            let message = format!("offset must be at most {total}, the length of the result, got {offset}");
            return Err(ErrorCode::InvalidArgument.error(message).on("offset"));
        }
        let end = offset + page.chars as u64;
        let FailedAgents { failures, more: more_failures, lines: failure_lines } =
            if offset == 0 { FailedAgents::of(result) } else { FailedAgents::default() };
        Ok(Self {
            state: RunState::Completed,
            agents_started: Some(result.agents_started),
            failures,
            more_failures,
            failure_lines,
            page: Some(page.text),
            offset: Some(offset),
            total: Some(total),
            next_offset: (end < total).then_some(end),
            ..Self::running(run_id, name)
        })
    }
}

/// How many failures one answer holds, and how many characters of each label and reason.
const MAX_FAILURES: usize = 50;
const LABEL_CHARS: usize = 100;
const REASON_CHARS: usize = 300;

/// The agents of a run that could not start or ended without success, as one answer holds them: cut, so that a thousand
/// failures are no thousand lines.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct FailedAgents {
    /// The first 50, with at most 300 characters of each reason.
    pub failures: Vec<AgentFailure>,
    /// How many more there are.
    pub more: u32,
    lines: String,
}

impl FailedAgents {
    /// Those of a run.
    pub fn of(result: &RunResult) -> Self {
        let brief = |failure: &AgentFailure| AgentFailure {
            seq: failure.seq,
            label: short(&failure.label, LABEL_CHARS),
            kind: failure.kind.clone(),
            reason: short(&failure.reason, REASON_CHARS),
        };
        let more = result.failures.len().saturating_sub(MAX_FAILURES);
        Self {
            failures: result.failures.iter().take(MAX_FAILURES).map(brief).collect(),
            more: u32::try_from(more).unwrap_or(u32::MAX),
            lines: failure_lines(&result.failures),
        }
    }

    /// How many there are in all.
    pub fn count(&self) -> usize {
        self.failures.len() + self.more as usize
    }

    /// All of them by their reasons: a line for each of the first 20 reasons, before each of them a line break, and one
    /// that says how many more reasons there are.
    pub fn lines(&self) -> &str {
        &self.lines
    }
}

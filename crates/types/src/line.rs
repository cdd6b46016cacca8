//! The lines that tell of runs: what `fanfold run --json` prints, and the records of a session's log.

use alloc::borrow::Cow;
use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::{
    AgentFailure, Event, RunResult, SessionRecord, StopReason, Usage, WorkflowError, Worktree, text,
};

/// One line of a log, as JSON.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Line {
    /// Something happened in a run.
    Event(Event),
    /// Something happened that only a later version can tell; it has a number all the same.
    UnknownEvent {
        /// The run's id.
        id: Arc<str>,
        /// The event's number in its run.
        n: u64,
    },
    /// A record of a session.
    Record(SessionRecord),
    /// The result of a run.
    Result(Box<ResultLine>),
    /// JSON that tells of no run.
    Other,
}

impl Line {
    /// Reads a line.
    ///
    /// # Errors
    /// If it is not a JSON object, or says that it is one of ours and is not.
    pub fn parse(line: &str) -> Result<Self, LineError> {
        #[derive(Deserialize)]
        struct Envelope<'a> {
            #[serde(rename = "type", borrow, default)]
            kind: Option<Cow<'a, str>>,
        }
        #[derive(Deserialize)]
        struct Numbered {
            id: Arc<str>,
            n: u64,
        }
        let fault = |error: serde_json::Error| LineError(error.to_string());
        if !line.trim_start().starts_with('{') {
            return Err(LineError("not a JSON object".to_string()));
        }
        let envelope: Envelope<'_> = match serde_json::from_str(line) {
            Ok(envelope) => envelope,
            // An object whose type is no text is somebody else's.
            Err(error) if error.is_data() => return Ok(Self::Other),
            Err(error) => return Err(fault(error)),
        };
        let kind = envelope.kind.unwrap_or_default();
        if kind == "result" {
            return serde_json::from_str(line).map(Self::Result).map_err(fault);
        }
        if kind.starts_with("tool-workflow/") {
            return serde_json::from_str(line).map(Self::Record).map_err(fault);
        }
        if !kind.starts_with("workflow/") {
            return Ok(Self::Other);
        }
        match serde_json::from_str(line) {
            Ok(event) => Ok(Self::Event(event)),
            Err(error) if error.to_string().starts_with("unknown variant") => {
                let Numbered { id, n } = serde_json::from_str(line).map_err(fault)?;
                Ok(Self::UnknownEvent { id, n })
            }
            Err(error) => Err(LineError(format!("{kind}: {error}"))),
        }
    }

    /// The run it tells of; none for a run that could not start.
    pub fn run_id(&self) -> Option<&str> {
        match self {
            Self::Event(event) => Some(&event.id),
            Self::UnknownEvent { id, .. } => Some(id),
            Self::Record(record) => Some(record.run_id()),
            Self::Result(result) => result.id.as_deref(),
            Self::Other => None,
        }
    }
}

/// Why a line could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LineError(String);

impl fmt::Display for LineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for LineError {}

/// The last line of a run: what became of it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(tag = "type", rename = "result", rename_all = "camelCase")]
#[non_exhaustive]
pub struct ResultLine {
    /// The run; none if it could not start.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Arc<str>>,
    /// The terminal state.
    pub stop_reason: StopReason,
    /// What the script returned, if it completed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", tsify(type = "unknown"))]
    pub value: Option<Box<RawValue>>,
    /// Otherwise why it did not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    /// `agent()` calls that were accepted.
    pub agents_started: u32,
    /// What the children cost, where their providers said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The children that could not start or ended without success.
    #[serde(default)]
    pub failures: Vec<AgentFailure>,
    /// The worktrees that children left behind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub worktrees: Vec<Worktree>,
    /// `agent()` calls whose answers were lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub never_awaited: Option<u32>,
    /// What was put right or ignored on the way.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
    /// Computation, about one unit an instruction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fuel_used: Option<u64>,
    /// What `Math.random` was seeded with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    /// What `Date` said, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_time_ms: Option<u64>,
    /// What a model would be shown.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

impl ResultLine {
    /// What became of the run with this id and workflow name. The text is cut after so many characters of the
    /// value.
    pub fn new(id: &str, name: &str, result: &RunResult, max_result_chars: usize) -> Self {
        let completed = result.stop_reason == StopReason::Completed;
        Self {
            id: Some(id.into()),
            stop_reason: result.stop_reason,
            value: completed.then(|| result.value.clone()),
            error: result.error.clone(),
            agents_started: result.agents_started,
            usage: result.usage,
            failures: result.failures.clone(),
            worktrees: result.worktrees.clone(),
            never_awaited: (result.never_awaited > 0).then_some(result.never_awaited),
            warnings: result.warnings.clone(),
            fuel_used: Some(result.fuel_used),
            seed: Some(result.seed),
            start_time_ms: Some(result.start_time_ms),
            text: text::render(name, result, max_result_chars),
        }
    }

    /// Why a run could not start.
    pub fn refused(error: &WorkflowError) -> Self {
        Self {
            id: None,
            stop_reason: StopReason::Error,
            value: None,
            error: Some(error.clone()),
            agents_started: 0,
            usage: None,
            failures: Vec::new(),
            worktrees: Vec::new(),
            never_awaited: None,
            warnings: Vec::new(),
            fuel_used: None,
            seed: None,
            start_time_ms: None,
            text: format!("Error: {error}"),
        }
    }
}

//! What a tool call leaves in the calling agent's session, and what must hold of it.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use core::fmt;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::{AgentOutcome, Event, EventKind, StopReason};

/// The prefix of every record type that belongs to this crate.
const PREFIX: &str = "tool-workflow/";

/// The largest integer that JavaScript represents exactly.
const MAX_SAFE_INTEGER: u64 = (1 << 53) - 1;

/// A log-only record in the calling agent's session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(tag = "type", content = "payload")]
#[non_exhaustive]
pub enum SessionRecord {
    /// A run started.
    #[serde(rename = "tool-workflow/run-start", rename_all = "camelCase")]
    RunStart {
        /// The run's id.
        run_id: String,
        /// The workflow's name.
        name: String,
    },
    /// A child started.
    #[serde(rename = "tool-workflow/agent-start", rename_all = "camelCase")]
    AgentStart {
        /// The run's id.
        run_id: String,
        /// The number of its `agent()` call in the run, from 1.
        seq: u64,
        /// What people call it.
        label: String,
        /// The phase it belongs to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        phase: Option<String>,
        /// The provider's name for it.
        child_id: String,
    },
    /// A child ended.
    #[serde(rename = "tool-workflow/agent-end", rename_all = "camelCase")]
    AgentEnd {
        /// The run's id.
        run_id: String,
        /// The number of its `agent()` call.
        seq: u64,
        /// How it ended.
        outcome: AgentOutcome,
    },
    /// A run ended, its children have stopped.
    #[serde(rename = "tool-workflow/run-end", rename_all = "camelCase")]
    RunEnd {
        /// The run's id.
        run_id: String,
        /// The terminal state.
        stop_reason: StopReason,
    },
}

impl SessionRecord {
    /// Reads a record of a session log; `None` for records of other kinds.
    ///
    /// # Errors
    /// When the type starts with `tool-workflow/` and is unknown, or the payload does not fit it.
    pub fn from_log(record_type: &str, payload: &Value) -> Result<Option<Self>, RecordError> {
        if !record_type.starts_with(PREFIX) {
            return Ok(None);
        }
        let mut record = Map::new();
        record.insert("type".to_owned(), record_type.into());
        record.insert("payload".to_owned(), payload.clone());
        match serde_json::from_value(Value::Object(record)) {
            Ok(record) => Ok(Some(record)),
            Err(error) => Err(RecordError(format!("{record_type}: {error}"))),
        }
    }

    /// What a session keeps of an event; `None` for phases and logs.
    ///
    /// Of `workflow/end` it keeps a `run-end`, which belongs into the session only once the run's result is known
    /// and everything of it has stopped.
    pub fn of_event(event: &Event) -> Option<Self> {
        let run_id = event.id.to_string();
        Some(match &event.kind {
            EventKind::Start { meta } => Self::RunStart { run_id, name: meta.name.clone() },
            EventKind::AgentStart { agent } => Self::AgentStart {
                run_id,
                seq: agent.seq.into(),
                label: agent.label.clone(),
                phase: agent.phase.as_deref().map(ToOwned::to_owned),
                child_id: agent.child_id.clone(),
            },
            EventKind::AgentEnd { agent } => {
                Self::AgentEnd { run_id, seq: agent.agent.seq.into(), outcome: agent.outcome }
            }
            EventKind::End { result } => Self::RunEnd { run_id, stop_reason: result.stop_reason },
            _ => return None,
        })
    }

    /// The run this record is of.
    pub fn run_id(&self) -> &str {
        match self {
            Self::RunStart { run_id, .. }
            | Self::AgentStart { run_id, .. }
            | Self::AgentEnd { run_id, .. }
            | Self::RunEnd { run_id, .. } => run_id,
        }
    }
}

/// Why a record does not belong where it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordError(String);

impl fmt::Display for RecordError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for RecordError {}

/// Checks the records of a session one by one, as they are loaded or appended.
///
/// Every prefix of a legal log is legal: a run whose end is missing was interrupted. A record that is refused
/// leaves the checker as it was.
///
/// ```
/// use fanfold_types::{RecordChecker, SessionRecord};
/// let mut checker = RecordChecker::default();
/// let start = SessionRecord::RunStart { run_id: "r1".into(), name: "demo".into() };
/// assert!(checker.check(&start).is_ok());
/// assert_eq!(checker.check(&start).unwrap_err().to_string(), "run \"r1\" starts twice");
/// ```
#[derive(Clone, Debug, Default)]
pub struct RecordChecker {
    runs: BTreeMap<String, Run>,
}

#[derive(Clone, Debug, Default)]
struct Run {
    seen: BTreeSet<u64>,
    open: BTreeSet<u64>,
    ended: bool,
}

impl RecordChecker {
    /// Takes the next record.
    ///
    /// # Errors
    /// When the record breaks an invariant; the message names the run and the fault.
    pub fn check(&mut self, record: &SessionRecord) -> Result<(), RecordError> {
        let id = record.run_id();
        let fault = |what: &str| Err(RecordError(format!("run {id:?} {what}")));
        if id.is_empty() {
            return Err(RecordError("a record has an empty runId".to_string()));
        }
        if let SessionRecord::RunStart { run_id, name } = record {
            if name.is_empty() {
                return fault("has an empty name");
            }
            if self.runs.contains_key(run_id) {
                return fault("starts twice");
            }
            self.runs.insert(run_id.clone(), Run::default());
            return Ok(());
        }
        let Some(run) = self.runs.get_mut(id) else { return fault("has a record before its run-start") };
        if run.ended {
            return fault("has a record after its run-end");
        }
        match record {
            SessionRecord::RunStart { .. } => {}
            SessionRecord::AgentStart { seq, child_id, .. } => {
                if child_id.is_empty() {
                    return fault(&format!("starts agent {seq} with an empty childId"));
                }
                if !(1..=MAX_SAFE_INTEGER).contains(seq) {
                    return fault(&format!("starts agent {seq}, which is not a positive safe integer"));
                }
                if !run.seen.insert(*seq) {
                    return fault(&format!("starts agent {seq} twice"));
                }
                run.open.insert(*seq);
            }
            SessionRecord::AgentEnd { seq, .. } => {
                if !run.open.remove(seq) {
                    return fault(&format!("ends agent {seq}, which is not open"));
                }
            }
            SessionRecord::RunEnd { .. } => {
                if let Some(seq) = run.open.first() {
                    return fault(&format!("ends while agent {seq} is open"));
                }
                // An ended run is remembered by its id alone.
                *run = Run { ended: true, ..Run::default() };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use serde_json::json;

    use super::*;

    fn record(kind: &str, payload: Value) -> SessionRecord {
        SessionRecord::from_log(&format!("tool-workflow/{kind}"), &payload).unwrap().unwrap()
    }
    fn run_start(run: &str) -> SessionRecord {
        record("run-start", json!({"runId": run, "name": "n"}))
    }
    fn agent_start(run: &str, seq: u64) -> SessionRecord {
        record("agent-start", json!({"runId": run, "seq": seq, "label": "", "childId": "c"}))
    }
    fn agent_end(run: &str, seq: u64) -> SessionRecord {
        record("agent-end", json!({"runId": run, "seq": seq, "outcome": "failed"}))
    }
    fn run_end(run: &str) -> SessionRecord {
        record("run-end", json!({"runId": run, "stopReason": "error"}))
    }
    fn first_fault(log: &[SessionRecord]) -> Option<String> {
        let mut checker = RecordChecker::default();
        log.iter().find_map(|record| checker.check(record).err()).map(|error| error.to_string())
    }

    #[test]
    fn records_have_their_wire_names() {
        let wire = json!({"type": "tool-workflow/agent-start", "payload": {
            "runId": "r", "seq": 1, "label": "l", "phase": "p", "childId": "c"}});
        let record = record("agent-start", wire["payload"].clone());
        assert_eq!(serde_json::to_value(&record).unwrap(), wire);
    }

    #[test]
    fn two_interleaved_runs_are_legal_at_every_prefix() {
        let log: Vec<_> = [
            run_start("a"),
            agent_start("a", 1),
            run_start("b"),
            agent_start("b", 1),
            agent_start("a", 2),
            agent_end("a", 1),
            agent_end("b", 1),
            run_end("b"),
            agent_end("a", 2),
            run_end("a"),
        ]
        .into();
        for end in 0..=log.len() {
            assert_eq!(first_fault(&log[..end]), None);
        }
    }

    #[test]
    fn every_invariant_is_enforced() {
        let cases: [(&[SessionRecord], &str); 10] = [
            (&[run_start("a"), run_start("a")], "run \"a\" starts twice"),
            (&[run_start("a"), run_end("a"), run_start("a")], "run \"a\" starts twice"),
            (&[run_start("")], "a record has an empty runId"),
            (&[record("run-start", json!({"runId": "a", "name": ""}))], "run \"a\" has an empty name"),
            (&[agent_start("a", 1)], "run \"a\" has a record before its run-start"),
            (
                &[run_start("a"), agent_start("a", 0)],
                "run \"a\" starts agent 0, which is not a positive safe integer",
            ),
            (
                &[run_start("a"), agent_start("a", 1), agent_end("a", 1), agent_start("a", 1)],
                "run \"a\" starts agent 1 twice",
            ),
            (&[run_start("a"), agent_end("a", 1)], "run \"a\" ends agent 1, which is not open"),
            (&[run_start("a"), agent_start("a", 7), run_end("a")], "run \"a\" ends while agent 7 is open"),
            (&[run_start("a"), run_end("a"), run_end("a")], "run \"a\" has a record after its run-end"),
        ];
        for (log, fault) in cases {
            assert_eq!(first_fault(log).as_deref(), Some(fault));
        }
        let no_child = record("agent-start", json!({"runId": "a", "seq": 1, "label": "", "childId": ""}));
        assert!(first_fault(&[run_start("a"), no_child]).is_some());
    }

    #[test]
    fn a_refused_record_changes_nothing() {
        let mut checker = RecordChecker::default();
        checker.check(&run_start("a")).unwrap();
        checker.check(&agent_start("a", 1)).unwrap();
        assert!(checker.check(&run_end("a")).is_err());
        assert!(checker.check(&agent_end("a", 2)).is_err());
        checker.check(&agent_end("a", 1)).unwrap();
        checker.check(&run_end("a")).unwrap();
    }

    #[test]
    fn unknown_types_of_our_own_are_refused_and_others_are_not_ours() {
        assert!(SessionRecord::from_log("tool-workflow/resume", &json!({})).is_err());
        assert!(SessionRecord::from_log("tool-workflow/run-end", &json!({"runId": 1})).is_err());
        assert!(
            SessionRecord::from_log(
                "tool-workflow/agent-end",
                &json!({"runId": "a", "seq": -1, "outcome": "failed"})
            )
            .is_err()
        );
        assert_eq!(SessionRecord::from_log("message", &json!({})).unwrap(), None);
    }
}

//! What observers of a run see.

use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Meta, StopReason, Usage, WorkflowError};

/// One thing that happened in a run.
///
/// `workflow/start` comes first and `workflow/end` last, each exactly once. Every `workflow/agent-start` has
/// exactly one `workflow/agent-end`, before `workflow/end`. Numbers are consecutive from 1, so a reader that
/// comes late or again knows what it missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    pub kind: EventKind,
    /// The run's id.
    pub id: Arc<str>,
    /// The event's number in its run, from 1.
    pub n: u64,
    /// When it happened by the host's clock, in milliseconds since 1970.
    pub at: u64,
}

/// What an [`Event`] says, by its wire `type`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "type")]
#[non_exhaustive]
pub enum EventKind {
    /// The run began.
    #[serde(rename = "workflow/start")]
    Start {
        /// What the script says it is.
        meta: Arc<Meta>,
    },
    /// The script entered a phase.
    #[serde(rename = "workflow/phase")]
    Phase {
        /// The phase's title, never empty.
        title: Arc<str>,
    },
    /// The script logged a line.
    #[serde(rename = "workflow/log")]
    Log {
        /// What it said.
        message: String,
    },
    /// A child started.
    #[serde(rename = "workflow/agent-start")]
    AgentStart {
        /// The child.
        agent: Arc<Agent>,
    },
    /// A child ended.
    #[serde(rename = "workflow/agent-end")]
    AgentEnd {
        /// The child and how it ended.
        agent: EndedAgent,
    },
    /// The run ended.
    #[serde(rename = "workflow/end")]
    End {
        /// How, but not with what value.
        result: RunEnd,
    },
}

/// A child of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Agent {
    /// The number of its `agent()` call in the run, from 1.
    pub seq: u32,
    /// What people call it. Labels may repeat.
    pub label: String,
    /// The phase it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Arc<str>>,
    /// The provider's name for it.
    pub child_id: String,
}

/// A child and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndedAgent {
    /// The child.
    #[serde(flatten)]
    pub agent: Arc<Agent>,
    /// How it ended.
    pub outcome: AgentOutcome,
    /// What it cost, where its provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum AgentOutcome {
    /// With an answer.
    Completed,
    /// Without success.
    Failed,
    /// Because it was told to stop.
    Cancelled,
}

/// How a run ended, as observers see it: never the value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RunEnd {
    /// The one terminal state.
    pub stop_reason: StopReason,
    /// Present exactly when the run did not complete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<WorkflowError>,
    /// `agent()` calls that were accepted.
    pub agents_started: u32,
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn event(kind: EventKind) -> Event {
        Event { id: "r1".into(), n: 3, at: 1000, kind }
    }

    #[test]
    fn events_have_their_wire_names_and_come_back_the_same() {
        let agent = Arc::new(Agent { seq: 1, label: "l".into(), phase: None, child_id: "c".into() });
        let phased = Arc::new(Agent { phase: Some("p".into()), ..(*agent).clone() });
        let end = RunEnd {
            stop_reason: StopReason::Cancelled,
            error: Some(crate::ErrorCode::Cancelled.error("stop")),
            agents_started: 2,
        };
        let cases = [
            (
                EventKind::Start { meta: Arc::new(Meta::new("m", "d")) },
                json!({"type": "workflow/start", "id": "r1", "n": 3, "at": 1000,
                       "meta": {"name": "m", "description": "d"}}),
            ),
            (
                EventKind::Phase { title: "t".into() },
                json!({"type": "workflow/phase", "id": "r1", "n": 3, "at": 1000, "title": "t"}),
            ),
            (
                EventKind::Log { message: "m".into() },
                json!({"type": "workflow/log", "id": "r1", "n": 3, "at": 1000, "message": "m"}),
            ),
            (
                EventKind::AgentStart { agent },
                json!({"type": "workflow/agent-start", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "label": "l", "childId": "c"}}),
            ),
            (
                EventKind::AgentEnd {
                    agent: EndedAgent { agent: phased.clone(), outcome: AgentOutcome::Failed, usage: None },
                },
                json!({"type": "workflow/agent-end", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "label": "l", "phase": "p", "childId": "c", "outcome": "failed"}}),
            ),
            (
                EventKind::AgentEnd {
                    agent: EndedAgent {
                        agent: phased,
                        outcome: AgentOutcome::Completed,
                        usage: Some(Usage::new(10, 2)),
                    },
                },
                json!({"type": "workflow/agent-end", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "label": "l", "phase": "p", "childId": "c", "outcome": "completed",
                                 "usage": {"inputTokens": 10, "outputTokens": 2}}}),
            ),
            (
                EventKind::End { result: end },
                json!({"type": "workflow/end", "id": "r1", "n": 3, "at": 1000,
                       "result": {"stopReason": "cancelled", "agentsStarted": 2,
                                  "error": {"code": "CANCELLED", "message": "stop"}}}),
            ),
        ];
        for (kind, wire) in cases {
            let event = event(kind);
            assert_eq!(serde_json::to_value(&event).unwrap(), wire);
            assert_eq!(serde_json::from_value::<Event>(wire).unwrap(), event);
        }
    }
}

//! What observers of a run see.

use alloc::string::String;
use alloc::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Meta, StopReason, Usage, WorkflowError};

/// One thing that happened in a run.
///
/// `workflow/start` comes first and `workflow/end` last, each exactly once. Every `workflow/agent-start` has
/// exactly one `workflow/agent-end`, before `workflow/end`. A call is queued before it starts or is refused; one that still
/// waits when the run ends has no event but its first. Numbers are consecutive from 1, so a reader that
/// comes late or again knows what it missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct Event {
    /// What happened.
    #[serde(flatten)]
    // Spelt out, it is a type that can be a union; otherwise an interface that is extended.
    #[cfg_attr(feature = "typescript", tsify(type = "EventKind"))]
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
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
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
    /// The script called `agent()`; the call waits for its turn.
    #[serde(rename = "workflow/agent-queued")]
    AgentQueued {
        /// The call.
        agent: QueuedAgent,
    },
    /// A call that was queued does not start. It has no other events.
    #[serde(rename = "workflow/agent-refused")]
    AgentRefused {
        /// The call and why it does not start.
        agent: RefusedAgent,
    },
    /// A child started.
    #[serde(rename = "workflow/agent-start")]
    AgentStart {
        /// The child.
        agent: Arc<Agent>,
    },
    /// An attempt of a child failed, and there will be another one.
    #[serde(rename = "workflow/agent-retry")]
    AgentRetry {
        /// The attempt that failed and what follows.
        agent: AgentRetry,
    },
    /// A child says what it does. Texts that come within a short time are put together, and cut.
    #[serde(rename = "workflow/agent-progress")]
    AgentProgress {
        /// What it says.
        agent: AgentProgress,
    },
    /// A child ended.
    #[serde(rename = "workflow/agent-end")]
    AgentEnd {
        /// The child and how it ended.
        agent: EndedAgent,
    },
    /// Something was put right or ignored that a person should know of: an option that the provider does not honour,
    /// a rejection that nothing handled. It is among the warnings of the run's result too.
    #[serde(rename = "workflow/warning")]
    Warning {
        /// What it was.
        message: Arc<str>,
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
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
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

/// A call of `agent()` that has not started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct QueuedAgent {
    /// The number of the call in the run, from 1.
    pub seq: u32,
    /// What people call it. Labels may repeat.
    pub label: Arc<str>,
    /// The phase it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Arc<str>>,
}

/// A call of `agent()` that does not start.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct RefusedAgent {
    /// The call.
    #[serde(flatten)]
    pub agent: QueuedAgent,
    /// Why it does not start.
    pub reason: String,
}

/// An attempt of a child that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase")]
pub struct AgentRetry {
    /// The number of the child's call.
    pub seq: u32,
    /// The number of the attempt that failed, from 1.
    pub attempt: u32,
    /// What kind of failure it was, in one word of the provider's: `rateLimit`, `timeout`, `schema`.
    pub kind: String,
    /// What was wrong.
    pub reason: String,
    /// Milliseconds until the next attempt.
    pub wait_ms: u64,
}

/// What a child says while it works.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct AgentProgress {
    /// The number of the child's call.
    pub seq: u32,
    /// What it is.
    pub kind: ProgressKind,
    /// The text. Empty where only the fact is told that the child is at work: it has said more than is passed on.
    pub text: String,
}

/// What a child says while it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ProgressKind {
    /// Part of what it says to whoever asked it.
    Text,
    /// Part of its thinking.
    Reasoning,
    /// It calls a tool; the text names it.
    Tool,
    /// Part of what its process writes to standard error.
    Stderr,
}

/// A child and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct EndedAgent {
    /// The child.
    #[serde(flatten)]
    pub agent: Arc<Agent>,
    /// How it ended.
    pub outcome: AgentOutcome,
    /// What it cost, where its provider said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What kind of failure it was, in one word of the provider's such as `rateLimit`, where it told any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kind: Option<String>,
    /// Why it has no answer, where it has none, after the kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

impl EndedAgent {
    /// A child that ended this way, without cost and reason; the fields are public.
    pub fn new(agent: Arc<Agent>, outcome: AgentOutcome) -> Self {
        Self { agent, outcome, usage: None, kind: None, reason: None }
    }
}

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
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
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
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
        let queued = QueuedAgent { seq: 2, label: "l".into(), phase: Some("p".into()) };
        let cases = [
            (
                EventKind::AgentQueued { agent: queued.clone() },
                json!({"type": "workflow/agent-queued", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 2, "label": "l", "phase": "p"}}),
            ),
            (
                EventKind::AgentRefused { agent: RefusedAgent { agent: queued, reason: "no".into() } },
                json!({"type": "workflow/agent-refused", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 2, "label": "l", "phase": "p", "reason": "no"}}),
            ),
            (
                EventKind::AgentRetry {
                    agent: AgentRetry {
                        seq: 1,
                        attempt: 1,
                        kind: "rateLimit".into(),
                        reason: "429".into(),
                        wait_ms: 500,
                    },
                },
                json!({"type": "workflow/agent-retry", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "attempt": 1, "kind": "rateLimit", "reason": "429", "waitMs": 500}}),
            ),
            (
                EventKind::AgentProgress {
                    agent: AgentProgress { seq: 1, kind: ProgressKind::Tool, text: "grep".into() },
                },
                json!({"type": "workflow/agent-progress", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "kind": "tool", "text": "grep"}}),
            ),
            (
                EventKind::Warning { message: "w".into() },
                json!({"type": "workflow/warning", "id": "r1", "n": 3, "at": 1000, "message": "w"}),
            ),
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
                    agent: EndedAgent {
                        kind: Some("stall".into()),
                        reason: Some("stall: why".into()),
                        ..EndedAgent::new(phased.clone(), AgentOutcome::Failed)
                    },
                },
                json!({"type": "workflow/agent-end", "id": "r1", "n": 3, "at": 1000,
                       "agent": {"seq": 1, "label": "l", "phase": "p", "childId": "c", "outcome": "failed",
                                 "kind": "stall", "reason": "stall: why"}}),
            ),
            (
                EventKind::AgentEnd {
                    agent: EndedAgent {
                        usage: Some(Usage::new(10, 2)),
                        ..EndedAgent::new(phased, AgentOutcome::Completed)
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

//! Runs for tests, told event by event, with a clock that only moves when told.

use std::ops::RangeInclusive;
use std::sync::Arc;

use fanfold::{
    Agent, AgentFailure, AgentOutcome, AgentProgress, AgentRetry, EndedAgent, Event, EventKind, Meta, Phase,
    ProgressKind, QueuedAgent, RefusedAgent, RunEnd, RunResult, RunView, StopReason,
};

/// A run, and everything it has told.
pub(crate) struct Run {
    pub(crate) events: Vec<Event>,
    now: u64,
    agents: Vec<Arc<Agent>>,
}

/// Metadata with planned phases.
pub(crate) fn planned(name: &str, phases: &[&str]) -> Meta {
    let phase = |title: &&str| Phase { title: title.to_string(), detail: None, provider: None, model: None };
    Meta {
        phases: Some(phases.iter().map(phase).collect()),
        ..Meta::new(name, "Reviews files through several lenses")
    }
}

fn queued(seq: u32, label: &str, phase: &str) -> QueuedAgent {
    QueuedAgent { seq, label: label.into(), phase: (!phase.is_empty()).then(|| phase.into()) }
}

impl Run {
    /// A run that has begun at time zero.
    pub(crate) fn of(meta: Meta) -> Self {
        let mut run = Self { events: Vec::new(), now: 0, agents: Vec::new() };
        run.tell(EventKind::Start { meta: meta.into() });
        run
    }

    pub(crate) fn view(&self) -> RunView {
        let mut view = RunView::default();
        self.events.iter().for_each(|event| _ = view.event(event));
        view
    }

    pub(crate) fn at(&mut self, now: u64) -> &mut Self {
        self.now = now;
        self
    }

    pub(crate) fn phase(&mut self, title: &str) -> &mut Self {
        self.tell(EventKind::Phase { title: title.into() })
    }

    pub(crate) fn log(&mut self, message: &str) -> &mut Self {
        self.tell(EventKind::Log { message: message.into() })
    }

    /// Calls an agent in a phase; an empty one is none.
    pub(crate) fn calls(&mut self, seq: u32, label: &str, phase: &str) -> &mut Self {
        self.tell(EventKind::AgentQueued { agent: queued(seq, label, phase) })
    }

    /// Does not start an agent.
    pub(crate) fn refuses(&mut self, seq: u32, reason: &str) -> &mut Self {
        let call = self.events.iter().find_map(|event| match &event.kind {
            EventKind::AgentQueued { agent } if agent.seq == seq => Some(agent.clone()),
            _ => None,
        });
        let agent = call.unwrap_or_else(|| queued(seq, "?", ""));
        let agent = RefusedAgent { agent, reason: reason.into() };
        self.tell(EventKind::AgentRefused { agent })
    }

    pub(crate) fn retries(&mut self, seq: u32, reason: &str, wait_ms: u64) -> &mut Self {
        let (kind, reason) = ("rateLimit".into(), reason.into());
        self.tell(EventKind::AgentRetry { agent: AgentRetry { seq, attempt: 1, kind, reason, wait_ms } })
    }

    pub(crate) fn says(&mut self, seq: u32, text: &str) -> &mut Self {
        let (kind, text) = (ProgressKind::Text, text.into());
        self.tell(EventKind::AgentProgress { agent: AgentProgress { seq, kind, text } })
    }

    /// Starts an agent in a phase; an empty one is none.
    pub(crate) fn agent(&mut self, seq: u32, label: &str, phase: &str) -> &mut Self {
        let phase = (!phase.is_empty()).then(|| phase.into());
        let agent = Arc::new(Agent { seq, label: label.into(), phase, child_id: format!("child-{seq}") });
        self.agents.push(agent.clone());
        self.tell(EventKind::AgentStart { agent })
    }

    pub(crate) fn agents(&mut self, seqs: RangeInclusive<u32>, phase: &str) -> &mut Self {
        for seq in seqs {
            self.agent(seq, &format!("check file {seq}"), phase);
        }
        self
    }

    pub(crate) fn warning(&mut self, message: &str) -> &mut Self {
        self.tell(EventKind::Warning { message: message.into() })
    }

    pub(crate) fn ends(&mut self, seq: u32, outcome: AgentOutcome) -> &mut Self {
        self.ends_for(seq, outcome, None)
    }

    pub(crate) fn fails(&mut self, seq: u32, reason: &str) -> &mut Self {
        self.ends_for(seq, AgentOutcome::Failed, Some(reason.into()))
    }

    fn ends_for(&mut self, seq: u32, outcome: AgentOutcome, reason: Option<String>) -> &mut Self {
        let stranger = || Arc::new(Agent { seq, label: "?".into(), phase: None, child_id: "?".into() });
        let agent = self.agents.iter().find(|agent| agent.seq == seq).cloned().unwrap_or_else(stranger);
        self.tell(EventKind::AgentEnd { agent: EndedAgent { reason, ..EndedAgent::new(agent, outcome) } })
    }

    pub(crate) fn completed(&mut self) -> RunResult {
        self.finish(RunResult::new(StopReason::Completed, None))
    }

    /// Ends the run with this result and a reason for every agent that failed.
    pub(crate) fn finish(&mut self, mut result: RunResult) -> RunResult {
        let ends = self.events.iter().filter_map(|event| match &event.kind {
            EventKind::AgentEnd { agent } if agent.outcome == AgentOutcome::Failed => Some(agent),
            _ => None,
        });
        let failure = |EndedAgent { agent, reason, .. }: &EndedAgent| {
            let unsaid = || format!("the model refused {}\nand would say no more", agent.label);
            let reason = reason.clone().unwrap_or_else(unsaid);
            AgentFailure::new(agent.seq, &agent.label, reason)
        };
        result.failures = ends.map(failure).collect();
        result.agents_started = self.agents.len().try_into().unwrap();
        let end = RunEnd {
            stop_reason: result.stop_reason,
            error: result.error.clone(),
            agents_started: result.agents_started,
        };
        self.tell(EventKind::End { result: end });
        result
    }

    fn tell(&mut self, kind: EventKind) -> &mut Self {
        let n = self.events.len() as u64 + 1;
        self.events.push(Event { kind, id: "run-1".into(), n, at: self.now });
        self
    }
}

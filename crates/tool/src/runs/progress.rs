//! What is known of a run while it runs: a fold of its events, bounded whatever the script says.

use std::collections::VecDeque;
use std::time::Duration;

use fanfold::{Agent, AgentOutcome, Event, EventKind};

use crate::answer::{AgentCounts, EventLine, PhaseStatus};
use crate::words::{line, short};

/// Most phases that are counted apart.
const MAX_PHASES: usize = 50;

/// Most events that are kept.
const MAX_EVENTS: usize = 10;

/// Longest text of an event, in characters.
const EVENT_CHARS: usize = 200;

/// Longest title of a phase, in characters: the same as in the engine's events.
const TITLE_CHARS: usize = 200;

/// What is known of a run so far.
#[derive(Debug)]
pub(super) struct Progress {
    pub(super) phase: Option<String>,
    pub(super) agents: AgentCounts,
    /// In the order they were first heard of.
    phases: Vec<PhaseStatus>,
    events: VecDeque<(Duration, u64, String)>,
    last_event: Duration,
}

impl Progress {
    /// Of a run that is about to start.
    pub(super) fn new(now: Duration) -> Self {
        Self {
            phase: None,
            agents: AgentCounts::default(),
            phases: Vec::new(),
            events: VecDeque::new(),
            last_event: now,
        }
    }

    /// Takes the next event.
    pub(super) fn take(&mut self, event: &Event, now: Duration) {
        let text = match &event.kind {
            EventKind::Start { meta } => {
                for phase in meta.phases.iter().flatten().take(MAX_PHASES) {
                    self.counts(&short(&phase.title, TITLE_CHARS));
                }
                "the run started".to_owned()
            }
            EventKind::Phase { title } => {
                self.counts(title);
                self.phase = Some(title.to_string());
                format!("phase {title:?}")
            }
            EventKind::Log { message } => format!("log: {message}"),
            EventKind::AgentStart { agent } => {
                self.count(agent, |counts| counts.running += 1);
                format!("agent {} {:?} started", agent.seq, agent.label)
            }
            EventKind::AgentEnd { agent: ended } => {
                let agent = &ended.agent;
                self.count(agent, |counts| {
                    counts.running = counts.running.saturating_sub(1);
                    match ended.outcome {
                        AgentOutcome::Completed => counts.completed += 1,
                        AgentOutcome::Failed => counts.failed += 1,
                        AgentOutcome::Cancelled => counts.cancelled += 1,
                    }
                });
                let outcome = match ended.outcome {
                    AgentOutcome::Completed => "completed",
                    AgentOutcome::Failed => "failed",
                    AgentOutcome::Cancelled => "was cancelled",
                };
                format!("agent {} {:?} {outcome}", agent.seq, agent.label)
            }
            EventKind::End { .. } => "the run ended".to_owned(),
            _ => return,
        };
        if self.events.len() == MAX_EVENTS {
            self.events.pop_front();
        }
        self.events.push_back((now, event.n, line(&text, EVENT_CHARS)));
        self.last_event = now;
    }

    fn count(&mut self, agent: &Agent, change: impl Fn(&mut AgentCounts)) {
        change(&mut self.agents);
        if let Some(phase) = agent.phase.as_deref().and_then(|phase| self.counts(phase)) {
            change(phase);
        }
    }

    /// A phase's counts; none for a phase too many.
    fn counts(&mut self, title: &str) -> Option<&mut AgentCounts> {
        let at = match self.phases.iter().position(|phase| phase.title == title) {
            Some(at) => at,
            None if self.phases.len() == MAX_PHASES => return None,
            None => {
                let agents = AgentCounts::default();
                self.phases.push(PhaseStatus { title: title.to_owned(), agents });
                self.phases.len() - 1
            }
        };
        self.phases.get_mut(at).map(|phase| &mut phase.agents)
    }

    pub(super) fn phases(&self) -> Vec<PhaseStatus> {
        self.phases.clone()
    }

    pub(super) fn last_event_age(&self, now: Duration) -> Duration {
        now.saturating_sub(self.last_event)
    }

    /// The last events, the latest last.
    pub(super) fn last_events(&self, now: Duration) -> Vec<EventLine> {
        let line = |(at, n, text): &(Duration, u64, String)| EventLine {
            n: *n,
            age_ms: super::shelf::ms(now.saturating_sub(*at)),
            text: text.clone(),
        };
        self.events.iter().map(line).collect()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use fanfold::{EndedAgent, Meta, Phase};

    use super::*;

    fn tell(progress: &mut Progress, n: u64, kind: EventKind) {
        progress.take(&Event { kind, id: "r".into(), n, at: 0 }, Duration::from_secs(n));
    }

    fn agent(seq: u32, phase: &str) -> Arc<Agent> {
        Arc::new(Agent { seq, label: "a\nb".into(), phase: Some(phase.into()), child_id: "c".into() })
    }

    #[test]
    fn what_is_kept_is_bounded_whatever_a_script_says() {
        let mut progress = Progress::new(Duration::ZERO);
        let mut meta = Meta::new("m", "d");
        let phase = Phase { title: "é".repeat(10_000), detail: None, provider: None, model: None };
        meta.phases = Some(vec![phase]);
        tell(&mut progress, 1, EventKind::Start { meta: Arc::new(meta) });
        for n in 2..200 {
            tell(&mut progress, n, EventKind::Phase { title: format!("phase {n}").into() });
            tell(&mut progress, n, EventKind::Log { message: "🎉".repeat(1000) + "\nmore" });
        }
        assert_eq!(progress.phases().len(), MAX_PHASES);
        assert_eq!(progress.phases()[0].title.chars().count(), TITLE_CHARS + 1);
        let events = progress.last_events(Duration::from_secs(200));
        assert_eq!((events.len(), events[MAX_EVENTS - 1].age_ms), (MAX_EVENTS, 1000));
        assert!(events.iter().all(|event| event.text.chars().count() <= EVENT_CHARS + 1));
        assert_eq!(progress.phase.as_deref(), Some("phase 199"), "the phase of now is always told");
    }

    #[test]
    fn agents_are_counted_in_all_and_by_phase_whether_or_not_there_is_room_for_it() {
        let mut progress = Progress::new(Duration::ZERO);
        for n in 0..60 {
            let agent = agent(n, &format!("phase {n}"));
            tell(&mut progress, 1, EventKind::AgentStart { agent: agent.clone() });
            let outcome =
                [AgentOutcome::Completed, AgentOutcome::Failed, AgentOutcome::Cancelled][n as usize % 3];
            if n < 30 {
                tell(&mut progress, 1, EventKind::AgentEnd { agent: EndedAgent::new(agent, outcome) });
            }
        }
        let AgentCounts { running, completed, failed, cancelled } = progress.agents;
        assert_eq!((running, completed, failed, cancelled), (30, 10, 10, 10));
        let phases = progress.phases();
        assert_eq!((phases.len(), phases[1].agents.failed, phases[49].agents.running), (MAX_PHASES, 1, 1));
        let last = &progress.last_events(Duration::from_secs(1))[MAX_EVENTS - 1].text;
        assert_eq!(last, "agent 59 \"a\\nb\" started");
    }
}

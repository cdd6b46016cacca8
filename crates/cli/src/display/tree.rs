//! A run as its events tell it so far: phases, and the agents in them. No clock, no terminal.

use std::collections::HashMap;
use std::sync::Arc;

use fanfold::{Agent, AgentOutcome, Event, EventKind, Meta};

use super::text;

/// The longest label or title that is kept, in columns. Terminals are rarely wider.
const MAX_NAME: usize = 300;

/// What is known of a run. Times are those of its events: milliseconds since 1970.
#[derive(Debug, Default)]
pub(crate) struct Tree {
    pub(crate) name: String,
    pub(crate) description: String,
    /// When the run began, once it has.
    pub(crate) began: Option<u64>,
    /// When the run ended, once it has.
    pub(crate) ended: Option<u64>,
    /// In the order they started.
    pub(crate) agents: Vec<Item>,
    /// Planned ones first, then others in the order they were entered.
    pub(crate) phases: Vec<Phase>,
    pub(crate) tally: Tally,
    current: Option<usize>,
    phase_by_title: HashMap<Arc<str>, usize>,
    agent_by_seq: HashMap<u32, usize>,
    /// The calls that wait for their turn, with their phases.
    waiting: HashMap<u32, Option<usize>>,
}

/// An agent.
#[derive(Debug)]
pub(crate) struct Item {
    pub(crate) seq: u32,
    /// Fit for a terminal, and never empty.
    pub(crate) label: String,
    /// Its index in [`Tree::phases`].
    pub(crate) phase: Option<usize>,
    pub(crate) began: u64,
    pub(crate) end: Option<(AgentOutcome, u64)>,
}

/// A phase.
#[derive(Debug)]
pub(crate) struct Phase {
    /// Fit for a terminal.
    pub(crate) title: String,
    /// When the script entered it or its first agent started, if that happened.
    pub(crate) began: Option<u64>,
    /// When it was last seen to be left or one of its agents to end.
    pub(crate) until: u64,
    /// Whether something of it still runs, or the script is in it.
    pub(crate) active: bool,
    /// Whether nobody watched how it went on.
    pub(crate) abandoned: bool,
    pub(crate) tally: Tally,
}

/// How many agents are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// Calls that wait for their turn.
    pub(crate) waiting: usize,
    pub(crate) running: usize,
    pub(crate) completed: usize,
    pub(crate) failed: usize,
    pub(crate) cancelled: usize,
}

impl Tally {
    pub(crate) fn ended(&self) -> usize {
        self.completed + self.failed + self.cancelled
    }

    pub(crate) fn started(&self) -> usize {
        self.running + self.ended()
    }

    /// What needs attention, in words: `1 failed`, `2 cancelled`.
    pub(crate) fn troubles(&self) -> impl Iterator<Item = (AgentOutcome, String)> {
        let all = [
            (AgentOutcome::Failed, self.failed, "failed"),
            (AgentOutcome::Cancelled, self.cancelled, "cancelled"),
        ];
        all.into_iter()
            .filter(|all| all.1 > 0)
            .map(|(outcome, count, what)| (outcome, format!("{count} {what}")))
    }

    fn end(&mut self, outcome: AgentOutcome) {
        self.running = self.running.saturating_sub(1);
        match outcome {
            AgentOutcome::Completed => self.completed += 1,
            AgentOutcome::Failed => self.failed += 1,
            AgentOutcome::Cancelled => self.cancelled += 1,
        }
    }
}

impl Tree {
    /// Takes the next event in.
    pub(crate) fn event(&mut self, event: &Event) {
        let at = event.at;
        match &event.kind {
            EventKind::Start { meta } => self.start(meta, at),
            EventKind::Phase { title } => self.enter(title, at),
            EventKind::AgentQueued { agent } => self.agent_queued(agent.seq, agent.phase.as_ref(), at),
            EventKind::AgentRefused { agent } => self.waits_no_more(agent.agent.seq, at),
            EventKind::AgentStart { agent } => self.agent_started(agent, at),
            EventKind::AgentEnd { agent } => self.agent_ended(agent.agent.seq, agent.outcome, at),
            EventKind::End { .. } => {
                self.ended = Some(at);
                for seq in self.waiting.keys().copied().collect::<Vec<_>>() {
                    self.waits_no_more(seq, at);
                }
                self.leave(at);
            }
            // Logs are printed, not kept.
            _ => {}
        }
    }

    fn agent_queued(&mut self, seq: u32, phase: Option<&Arc<str>>, at: u64) {
        let phase = phase.map(|title| self.phase(title));
        self.waiting.insert(seq, phase);
        self.tally.waiting += 1;
        if let Some(phase) = phase.map(|index| &mut self.phases[index]) {
            phase.began.get_or_insert(at);
            phase.active = true;
            phase.tally.waiting += 1;
        }
    }

    /// Nobody watches any more, although it may go on: nothing of it is shown as if it ran.
    pub(crate) fn abandon(&mut self, at: u64) {
        for phase in self.phases.iter_mut().filter(|phase| phase.active) {
            (phase.active, phase.abandoned, phase.until) = (false, true, at);
        }
    }

    fn waits_no_more(&mut self, seq: u32, at: u64) {
        let Some(phase) = self.waiting.remove(&seq) else { return };
        self.tally.waiting -= 1;
        if let Some(index) = phase {
            let phase = &mut self.phases[index];
            phase.tally.waiting -= 1;
            phase.settle(self.current == Some(index), at);
        }
    }

    /// Milliseconds from the start of the run to `now`, or to its end.
    pub(crate) fn elapsed(&self, now: u64) -> u64 {
        self.ended.unwrap_or(now).saturating_sub(self.began.unwrap_or(now))
    }

    /// The agent of this call.
    pub(crate) fn agent(&self, seq: u32) -> Option<&Item> {
        self.agent_by_seq.get(&seq).map(|&index| &self.agents[index])
    }

    fn start(&mut self, meta: &Meta, at: u64) {
        self.name = name(&meta.name);
        self.description = name(&meta.description);
        self.began = Some(at);
        for phase in meta.phases.iter().flatten() {
            self.phase(&phase.title.as_str().into());
        }
    }

    /// The phase with this title, new or not.
    fn phase(&mut self, title: &Arc<str>) -> usize {
        if let Some(&index) = self.phase_by_title.get(title) {
            return index;
        }
        let index = self.phases.len();
        self.phase_by_title.insert(title.clone(), index);
        self.phases.push(Phase {
            title: name(title),
            began: None,
            until: 0,
            active: false,
            abandoned: false,
            tally: Tally::default(),
        });
        index
    }

    fn enter(&mut self, title: &Arc<str>, at: u64) {
        let index = self.phase(title);
        self.leave(at);
        self.current = Some(index);
        let phase = &mut self.phases[index];
        phase.began.get_or_insert(at);
        phase.active = true;
    }

    fn leave(&mut self, at: u64) {
        if let Some(index) = self.current.take() {
            self.phases[index].settle(false, at);
        }
    }

    fn agent_started(&mut self, agent: &Agent, at: u64) {
        self.waits_no_more(agent.seq, at);
        let phase = agent.phase.as_ref().map(|title| self.phase(title));
        let label = name(&agent.label);
        let label = if label.trim().is_empty() { format!("#{}", agent.seq) } else { label };
        self.agent_by_seq.insert(agent.seq, self.agents.len());
        self.agents.push(Item { seq: agent.seq, label, phase, began: at, end: None });
        self.tally.running += 1;
        if let Some(index) = phase {
            let phase = &mut self.phases[index];
            phase.began.get_or_insert(at);
            phase.active = true;
            phase.tally.running += 1;
        }
    }

    fn agent_ended(&mut self, seq: u32, outcome: AgentOutcome, at: u64) {
        let Some(&index) = self.agent_by_seq.get(&seq) else { return };
        let agent = &mut self.agents[index];
        if agent.end.is_some() {
            return;
        }
        agent.end = Some((outcome, at));
        self.tally.end(outcome);
        if let Some(index) = agent.phase {
            let phase = &mut self.phases[index];
            phase.tally.end(outcome);
            phase.settle(self.current == Some(index), at);
        }
    }
}

impl Phase {
    fn settle(&mut self, current: bool, at: u64) {
        self.active = current || self.tally.running > 0 || self.tally.waiting > 0;
        self.until = at;
    }

    /// How long it has taken by `now`, in milliseconds; nothing for one that was not entered.
    pub(crate) fn elapsed(&self, now: u64) -> Option<u64> {
        let until = if self.active { now } else { self.until };
        Some(until.saturating_sub(self.began?))
    }
}

fn name(text: &str) -> String {
    text::cut(&text::line(text), MAX_NAME).into_owned()
}

#[cfg(test)]
mod tests {
    use fanfold::{QueuedAgent, RefusedAgent};

    use super::super::sample::{Run, planned};
    use super::*;

    #[test]
    fn a_phase_lasts_until_its_last_agent_ends() {
        let mut run = Run::of(planned("w", &["A", "B"]));
        run.phase("A").agents(1..=2, "A").at(1_000).phase("B").at(3_000).ends(1, AgentOutcome::Completed);
        let phase = |run: &Run, index: usize| {
            let phase = &run.tree().phases[index];
            (phase.active, phase.elapsed(9_000))
        };
        assert_eq!(phase(&run, 0), (true, Some(9_000)));
        run.at(4_000).ends(2, AgentOutcome::Failed);
        assert_eq!(phase(&run, 0), (false, Some(4_000)));
        assert_eq!(phase(&run, 1), (true, Some(8_000)));
        run.at(5_000).completed();
        assert_eq!(phase(&run, 1), (false, Some(4_000)));
    }

    #[test]
    fn a_phase_that_is_entered_again_goes_on() {
        let mut run = Run::of(planned("w", &["A"]));
        run.phase("A").at(1_000).phase("B").at(2_000).phase("A");
        let tree = run.tree();
        assert_eq!(tree.phases.len(), 2);
        assert!(tree.phases[0].active && !tree.phases[1].active);
        assert_eq!(tree.phases[0].elapsed(5_000), Some(5_000));
    }

    #[test]
    fn an_agent_may_name_a_phase_that_the_script_never_enters() {
        let mut run = Run::of(planned("w", &["A", "B"]));
        run.at(500).agents(1..=1, "C");
        let tree = run.tree();
        let titles: Vec<_> = tree.phases.iter().map(|phase| (&*phase.title, phase.began)).collect();
        assert_eq!(titles, [("A", None), ("B", None), ("C", Some(500))]);
    }

    #[test]
    fn counts_follow_the_agents() {
        let mut run = Run::of(planned("w", &[]));
        run.agents(1..=4, "A").agents(5..=6, "");
        run.ends(1, AgentOutcome::Completed).ends(2, AgentOutcome::Failed).ends(5, AgentOutcome::Cancelled);
        // Neither an end that is told twice nor one of a stranger counts.
        run.ends(1, AgentOutcome::Completed).ends(99, AgentOutcome::Failed);
        let tree = run.tree();
        assert_eq!(tree.tally, Tally { waiting: 0, running: 3, completed: 1, failed: 1, cancelled: 1 });
        let phase = Tally { waiting: 0, running: 2, completed: 1, failed: 1, cancelled: 0 };
        assert_eq!(tree.phases[0].tally, phase);
    }

    #[test]
    fn a_phase_is_not_over_while_calls_of_it_wait() {
        let mut run = Run::of(planned("w", &["A", "B"]));
        run.phase("A").phase("B").at(1_000);
        let mut tree = run.tree();
        let call = |seq: u32| QueuedAgent { seq, label: "x".into(), phase: Some("A".into()) };
        let event = |at, kind| Event { kind, id: "r".into(), n: 1, at };
        for seq in 1..=2 {
            tree.event(&event(1_000, EventKind::AgentQueued { agent: call(seq) }));
        }
        assert!(tree.phases[0].active);
        let seen = run.events.len();
        run.agents(1..=1, "A").at(2_000).ends(1, AgentOutcome::Completed);
        run.events[seen..].iter().for_each(|event| tree.event(event));
        assert!(tree.phases[0].active);
        assert_eq!(tree.phases[0].tally, Tally { waiting: 1, completed: 1, ..Tally::default() });
        // The other one cannot start.
        let refused = RefusedAgent { agent: call(2), reason: "no".into() };
        tree.event(&event(3_000, EventKind::AgentRefused { agent: refused }));
        assert!(!tree.phases[0].active);
        assert_eq!(tree.tally.waiting, 0);
    }

    #[test]
    fn what_nobody_watched_to_the_end_neither_runs_nor_succeeded() {
        let mut run = Run::of(planned("w", &["A", "B", "C"]));
        run.phase("A").at(1_000).phase("B");
        let mut tree = run.tree();
        tree.abandon(2_000);
        let states: Vec<_> = tree.phases.iter().map(|phase| (phase.active, phase.abandoned)).collect();
        assert_eq!(states, [(false, false), (false, true), (false, false)]);
    }
}

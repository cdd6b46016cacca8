//! The fold: one thing told of a run after the other becomes what people look at.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::shown::{AgentState, AgentView, LogView, PhaseView, RunHead, RunState, ViewChanges};
use crate::{AgentFailure, Event, EventKind, Line, ResultLine, SessionRecord, Usage};

/// How many logs are kept, and how many bytes of them: enough to read, and little enough for a page.
const MAX_LOGS: usize = 2_000;
const MAX_LOG_BYTES: usize = 1 << 20;
/// How much of one log is kept.
const MAX_LOG_LINE: usize = 16 << 10;
/// How many events wait for one that is late. After that it counts as lost.
const MAX_WAITING: usize = 20_000;

/// A run as people look at it: an incremental, pure reduction of its events, its session records, or both.
///
/// Events are taken in by their number: one that was told before changes nothing, and one that comes too early
/// waits for those before it. So the view depends on what was told, not on the order or on how often: a replay,
/// a prefix and the rest, and live appends give the same. Session records have no number: they are taken in as
/// they come, and those before the run's start wait for it.
///
/// A view is of one run, that of the first thing it is told.
///
/// ```
/// use fanfold_types::{Line, RunState, RunView};
/// let mut view = RunView::default();
/// let end = r#"{"type": "workflow/end", "id": "r", "n": 2, "at": 9, "result": {"stopReason": "completed", "agentsStarted": 0}}"#;
/// let start = r#"{"type": "workflow/start", "id": "r", "n": 1, "at": 5, "meta": {"name": "demo", "description": "d"}}"#;
/// view.line(&Line::parse(end)?);
/// assert_eq!(view.run().state, RunState::Waiting);
/// view.line(&Line::parse(start)?);
/// assert_eq!(view.run().state, RunState::Completed);
/// assert_eq!(view.run().ended, Some(9));
/// # Ok::<(), fanfold_types::LineError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunView {
    run: RunHead,
    phases: Vec<PhaseView>,
    agents: Vec<AgentView>,
    logs: VecDeque<LogView>,
    log_bytes: usize,
    /// How many things were taken in.
    revision: u64,
    /// The number of the last event taken in.
    last: u64,
    /// Events that came too early; nothing for one that says what this version does not know.
    waiting: BTreeMap<u64, Option<Event>>,
    /// Records that came before the run's start.
    early: Vec<SessionRecord>,
    phase_by_title: BTreeMap<Arc<str>, u32>,
    agent_by_seq: BTreeMap<u64, u32>,
    /// Reasons of agents by `seq`, from the result.
    reasons: BTreeMap<u64, String>,
    started: bool,
    /// The result has said what everything cost.
    counted: bool,
    closed: bool,
}

impl RunView {
    /// The run as a whole.
    pub fn run(&self) -> &RunHead {
        &self.run
    }

    /// The phases that have started, in that order.
    pub fn phases(&self) -> &[PhaseView] {
        &self.phases
    }

    /// The agents that have started, in that order.
    pub fn agents(&self) -> &[AgentView] {
        &self.agents
    }

    /// The logs that are kept: the last two thousand, of a mebibyte at most.
    pub fn logs(&self) -> impl ExactSizeIterator<Item = &LogView> {
        self.logs.iter()
    }

    /// What is new since the [revision](ViewChanges::revision) that was last seen; everything since 0.
    pub fn since(&self, revision: u64) -> ViewChanges {
        ViewChanges {
            revision: self.revision,
            run: self.run.clone(),
            phases: self.phases.iter().filter(|phase| phase.changed > revision).cloned().collect(),
            agents: self.agents.iter().filter(|agent| agent.changed > revision).cloned().collect(),
            logs: self.logs.iter().filter(|log| log.changed > revision).cloned().collect(),
        }
    }

    /// Takes in a line of a log. `false` if it was of no use: of another run, told before, or none of ours.
    pub fn line(&mut self, line: &Line) -> bool {
        match line {
            Line::Event(event) => self.event(event),
            Line::UnknownEvent { id, n } => self.mine(id) && self.numbered(*n, None),
            Line::Record(record) => self.record(record),
            Line::Result(result) => self.result(result),
            Line::Other => false,
        }
    }

    /// Takes in an event. `false` if it is of another run or was told before.
    pub fn event(&mut self, event: &Event) -> bool {
        self.mine(&event.id) && self.numbered(event.n, Some(event))
    }

    /// Takes in a session record. `false` if it is of another run, or does not fit what was told before.
    pub fn record(&mut self, record: &SessionRecord) -> bool {
        if !self.mine(record.run_id()) {
            return false;
        }
        if let SessionRecord::RunStart { name, .. } = record {
            if self.started {
                return false;
            }
            self.revision += 1;
            self.start(name);
            for record in mem::take(&mut self.early) {
                self.record(&record);
            }
            return true;
        }
        if !self.started {
            if self.early.len() < MAX_WAITING {
                self.early.push(record.clone());
            }
            return true;
        }
        self.revision += 1;
        match record {
            SessionRecord::RunStart { .. } => false,
            SessionRecord::AgentStart { seq, label, phase, child_id, .. } => {
                let phase = phase.as_deref().map(Arc::from);
                self.agent_started(*seq, label, phase.as_ref(), child_id, None)
            }
            SessionRecord::AgentEnd { seq, outcome, .. } => {
                self.agent_ended(*seq, AgentState::from(*outcome), None, None)
            }
            SessionRecord::RunEnd { stop_reason, .. } => self.end(RunState::from(*stop_reason), None),
        }
    }

    /// Takes in the result: why agents failed, and what to know besides. It may come at any time.
    pub fn result(&mut self, result: &ResultLine) -> bool {
        let mine = match &result.id {
            Some(id) => self.mine(id),
            // A run that could not start has no id.
            None => self.run.id.is_none() && !self.closed,
        };
        if !mine || self.run.has_result {
            return false;
        }
        self.revision += 1;
        let run = &mut self.run;
        run.has_result = true;
        run.state = result.stop_reason.into();
        run.error = result.error.clone();
        run.agents_started = Some(result.agents_started);
        self.counted = result.usage.is_some();
        run.usage = result.usage.or(run.usage);
        run.failures = result.failures.clone();
        run.warnings = result.warnings.clone();
        for AgentFailure { seq, reason, .. } in &result.failures {
            let seq = u64::from(*seq);
            self.reasons.insert(seq, reason.clone());
            if let Some(&index) = self.agent_by_seq.get(&seq) {
                let agent = &mut self.agents[index as usize];
                agent.reason = Some(reason.clone());
                agent.changed = self.revision;
            }
        }
        true
    }

    /// Says that nothing more will be told: the log is over. What has no end then was interrupted. Events that
    /// still wait for others are taken in; afterwards nothing is.
    pub fn close(&mut self) {
        while !self.waiting.is_empty() {
            self.give_up_waiting();
        }
        self.closed = true;
        self.revision += 1;
        if matches!(self.run.state, RunState::Waiting | RunState::Running) {
            self.run.state = RunState::Interrupted;
        }
        self.run.current_phase = None;
        for index in 0..self.agents.len() {
            if self.agents[index].state == AgentState::Running {
                self.agents[index].state = AgentState::Interrupted;
                self.agents[index].changed = self.revision;
                self.tally(self.agents[index].phase, |tally| tally.move_to(AgentState::Interrupted));
            }
        }
        for index in 0..self.phases.len() {
            self.settle(index as u32, self.run.last);
        }
    }

    /// Whether this run is the one the view is of.
    fn mine(&mut self, id: &str) -> bool {
        !self.closed && &**self.run.id.get_or_insert_with(|| id.into()) == id
    }

    fn numbered(&mut self, n: u64, event: Option<&Event>) -> bool {
        if n <= self.last || self.waiting.contains_key(&n) {
            return false;
        }
        if n > self.last + 1 {
            self.waiting.insert(n, event.cloned());
            if self.waiting.len() > MAX_WAITING {
                self.give_up_waiting();
            }
            return true;
        }
        self.apply(n, event);
        self.apply_waiting();
        true
    }

    fn apply_waiting(&mut self) {
        while let Some(event) = self.last.checked_add(1).and_then(|next| self.waiting.remove(&next)) {
            self.apply(self.last + 1, event.as_ref());
        }
    }

    /// Goes on with the first event that waits, as if those before it had said nothing.
    fn give_up_waiting(&mut self) {
        if let Some((n, event)) = self.waiting.pop_first() {
            self.run.missing_events += n - self.last - 1;
            self.apply(n, event.as_ref());
            self.apply_waiting();
        }
    }

    fn apply(&mut self, n: u64, event: Option<&Event>) {
        self.last = n;
        self.revision += 1;
        let Some(event) = event else { return };
        let at = event.at;
        self.run.last = Some(at);
        match &event.kind {
            EventKind::Start { meta } => {
                self.start(&meta.name);
                self.run.meta = Some(meta.clone());
                self.run.began = Some(at);
            }
            EventKind::Phase { title } => self.enter(title, at),
            EventKind::Log { message } => self.log(message, at),
            EventKind::AgentStart { agent } => {
                let seq = agent.seq.into();
                self.agent_started(seq, &agent.label, agent.phase.as_ref(), &agent.child_id, Some(at));
            }
            EventKind::AgentEnd { agent } => {
                self.agent_ended(agent.agent.seq.into(), agent.outcome.into(), agent.usage, Some(at));
            }
            EventKind::End { result } => {
                self.end(result.stop_reason.into(), Some(at));
                self.run.agents_started = Some(result.agents_started);
                if !self.run.has_result {
                    self.run.error = result.error.clone();
                }
            }
        }
    }

    fn start(&mut self, name: &str) {
        self.started = true;
        self.run.name = Some(name.to_string());
        if self.run.state == RunState::Waiting {
            self.run.state = RunState::Running;
        }
    }

    fn end(&mut self, state: RunState, at: Option<u64>) -> bool {
        self.run.state = state;
        self.run.ended = self.run.ended.or(at);
        self.leave(at);
        true
    }

    fn enter(&mut self, title: &Arc<str>, at: u64) {
        let index = self.phase(title, Some(at));
        self.leave(Some(at));
        self.run.current_phase = Some(index);
        self.phases[index as usize].active = true;
    }

    fn leave(&mut self, at: Option<u64>) {
        if let Some(index) = self.run.current_phase.take() {
            self.settle(index, at);
        }
    }

    /// The phase with this title, new or not; it changes.
    fn phase(&mut self, title: &Arc<str>, at: Option<u64>) -> u32 {
        let index = match self.phase_by_title.get(title) {
            Some(&index) => index,
            None => {
                let index = u32::try_from(self.phases.len()).unwrap_or(u32::MAX);
                self.phase_by_title.insert(title.clone(), index);
                self.phases.push(PhaseView {
                    index,
                    title: title.clone(),
                    began: at,
                    ended: None,
                    active: false,
                    agents: Default::default(),
                    changed: 0,
                });
                index
            }
        };
        self.phases[index as usize].changed = self.revision;
        index
    }

    /// Sees whether a phase still goes on, after something of it has ended.
    fn settle(&mut self, index: u32, at: Option<u64>) {
        let phase = &mut self.phases[index as usize];
        let active = self.run.current_phase == Some(index) || phase.agents.running > 0;
        if phase.active || active {
            phase.ended = phase.ended.max(at);
        }
        phase.active = active;
        phase.changed = self.revision;
    }

    fn log(&mut self, message: &str, at: u64) {
        self.run.logged += 1;
        let message: Arc<str> = match message.char_indices().find(|(i, c)| i + c.len_utf8() > MAX_LOG_LINE) {
            Some((end, _)) => [&message[..end], "…"].concat().into(),
            None => message.into(),
        };
        self.log_bytes += message.len();
        self.logs.push_back(LogView {
            number: self.run.logged,
            at,
            message,
            phase: self.run.current_phase,
            changed: self.revision,
        });
        while self.logs.len() > MAX_LOGS || self.log_bytes > MAX_LOG_BYTES {
            let Some(oldest) = self.logs.pop_front() else { break };
            self.log_bytes -= oldest.message.len();
            self.run.forgotten_logs += 1;
        }
    }

    fn agent_started(
        &mut self,
        seq: u64,
        label: &str,
        phase: Option<&Arc<str>>,
        child_id: &str,
        at: Option<u64>,
    ) -> bool {
        if self.agent_by_seq.contains_key(&seq) {
            return false;
        }
        let phase = phase.map(|title| self.phase(title, at));
        let index = u32::try_from(self.agents.len()).unwrap_or(u32::MAX);
        self.agent_by_seq.insert(seq, index);
        self.agents.push(AgentView {
            index,
            seq,
            label: label.to_string(),
            phase,
            child_id: child_id.to_string(),
            state: AgentState::Running,
            began: at,
            ended: None,
            usage: None,
            reason: self.reasons.get(&seq).cloned(),
            changed: self.revision,
        });
        self.tally(phase, |tally| tally.running += 1);
        self.run.peak = self.run.peak.max(self.run.agents.running);
        if let Some(index) = phase {
            self.phases[index as usize].active = true;
        }
        true
    }

    fn agent_ended(&mut self, seq: u64, state: AgentState, usage: Option<Usage>, at: Option<u64>) -> bool {
        let Some(&index) = self.agent_by_seq.get(&seq) else { return false };
        let agent = &mut self.agents[index as usize];
        if agent.state != AgentState::Running {
            return false;
        }
        agent.state = state;
        agent.ended = at;
        agent.usage = usage;
        agent.changed = self.revision;
        let phase = agent.phase;
        if let Some(usage) = usage.filter(|_| !self.counted) {
            self.run.usage = Some(self.run.usage.unwrap_or_default() + usage);
        }
        self.tally(phase, |tally| tally.move_to(state));
        if let Some(index) = phase {
            self.settle(index, at);
        }
        true
    }

    /// Counts something in the run and in a phase of it.
    fn tally(&mut self, phase: Option<u32>, count: impl Fn(&mut super::Tally)) {
        count(&mut self.run.agents);
        if let Some(index) = phase {
            count(&mut self.phases[index as usize].agents);
        }
    }
}

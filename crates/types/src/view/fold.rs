//! The fold: one thing told of a run after the other becomes what people look at.

use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec::Vec;
use core::mem;

use super::shown::{AgentState, AgentView, LogView, PhaseView, RetryView, RunHead, RunState, ViewChanges};
use crate::{
    AgentFailure, AgentProgress, AgentRetry, EndedAgent, Event, EventKind, Line, ProgressKind, ResultLine,
    SessionRecord, Usage, group_failures,
};

/// How many logs are kept, and how many bytes of them: enough to read, and little enough for a page.
const MAX_LOGS: usize = 2_000;
const MAX_LOG_BYTES: usize = 1 << 20;
/// How much of one log is kept.
const MAX_LOG_LINE: usize = 16 << 10;
/// How many characters of what an agent says are kept, and of the name of its tool.
const MAX_SAID: usize = 400;
const MAX_TOOL: usize = 200;
/// How many warnings are kept that events tell; the engine tells no more of a run.
const MAX_WARNINGS: usize = 200;
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
    failures: Vec<AgentFailure>,
    /// The revision of the last failure.
    failures_changed: u64,
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

    /// The agents, in the order in which they were called, or started where calls were not told.
    pub fn agents(&self) -> &[AgentView] {
        &self.agents
    }

    /// The logs that are kept: the last two thousand, of a mebibyte at most.
    pub fn logs(&self) -> impl ExactSizeIterator<Item = &LogView> {
        self.logs.iter()
    }

    /// The agents that could not start or ended without success, in the order in which they were told.
    pub fn failures(&self) -> &[AgentFailure] {
        &self.failures
    }

    /// The agent of this call.
    pub fn agent(&self, seq: u64) -> Option<&AgentView> {
        self.agents.get(*self.agent_by_seq.get(&seq)? as usize)
    }

    /// What is new since the [revision](ViewChanges::revision) that was last seen; everything since 0.
    pub fn since(&self, revision: u64) -> ViewChanges {
        ViewChanges {
            revision: self.revision,
            run: self.run.clone(),
            phases: self.phases.iter().filter(|phase| phase.changed > revision).cloned().collect(),
            agents: self.agents.iter().filter(|agent| agent.changed > revision).cloned().collect(),
            logs: self.logs.iter().filter(|log| log.changed > revision).cloned().collect(),
            failures: (self.failures_changed > revision).then(|| group_failures(&self.failures)),
        }
    }

    /// The same of a run that cannot be seen, such as one whose log has no end or whose server does not answer: what
    /// has not ended counts as interrupted. More can be taken in afterwards.
    pub fn last_known_since(&self, revision: u64) -> ViewChanges {
        let mut changes = self.since(revision);
        changes.run.interrupt();
        changes.phases.iter_mut().for_each(|phase| phase.interrupt(self.run.last));
        changes.agents.iter_mut().for_each(AgentView::interrupt);
        changes
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
                self.agent_ended(*seq, AgentState::from(*outcome), None, None, None)
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
        run.warnings = result.warnings.clone();
        for AgentFailure { seq, reason, .. } in &result.failures {
            let seq = u64::from(*seq);
            self.reasons.insert(seq, reason.clone());
            if let Some(agent) = self.change_agent(seq) {
                agent.reason = Some(reason.clone());
            }
        }
        self.failures = result.failures.clone();
        self.failures_changed = self.revision;
        true
    }

    /// Says that nothing more will be told: the log is over. What has no end then was interrupted. Events that
    /// still wait for others are taken in; afterwards nothing is.
    pub fn close(&mut self) {
        self.skip_missing();
        self.closed = true;
        self.revision += 1;
        self.run.interrupt();
        for agent in &mut self.agents {
            if matches!(agent.state, AgentState::Queued | AgentState::Running) {
                agent.changed = self.revision;
                agent.interrupt();
            }
        }
        for phase in &mut self.phases {
            phase.changed = self.revision;
            phase.interrupt(self.run.last);
        }
    }

    /// Takes in events that still wait for others, as if those had said nothing: they are not to be expected, since
    /// what was told so far is in order and whole, as a file is.
    pub fn skip_missing(&mut self) {
        while !self.waiting.is_empty() {
            self.give_up_waiting();
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
            EventKind::AgentQueued { agent } => {
                let seq = agent.seq.into();
                if !self.agent_by_seq.contains_key(&seq) {
                    self.add_agent(seq, &agent.label, agent.phase.as_ref(), AgentState::Queued, Some(at));
                }
            }
            EventKind::AgentRefused { agent: refused } => {
                let agent = &refused.agent;
                self.fail(agent.seq, &agent.label, None, &refused.reason);
                self.agent_ended(
                    agent.seq.into(),
                    AgentState::Refused,
                    None,
                    Some(&refused.reason),
                    Some(at),
                );
            }
            EventKind::AgentStart { agent } => {
                let seq = agent.seq.into();
                self.agent_started(seq, &agent.label, agent.phase.as_ref(), &agent.child_id, Some(at));
            }
            EventKind::AgentRetry { agent } => self.agent_retries(agent, at),
            EventKind::AgentProgress { agent } => self.agent_says(agent, at),
            EventKind::AgentEnd { agent: EndedAgent { agent, outcome, usage, kind, reason } } => {
                if let Some(reason) = reason {
                    self.fail(agent.seq, &agent.label, kind.as_deref(), reason);
                }
                self.agent_ended(agent.seq.into(), (*outcome).into(), *usage, reason.as_deref(), Some(at));
            }
            EventKind::Warning { message } => {
                let run = &mut self.run;
                if !run.has_result && run.warnings.len() < MAX_WARNINGS {
                    run.warnings.push(message.to_string());
                }
            }
            EventKind::End { result } => {
                self.give_up_queued(at);
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
        let waits = phase.agents.running > 0 || phase.agents.queued > 0;
        let active = self.run.current_phase == Some(index) || waits;
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

    /// An agent that is told of for the first time.
    fn add_agent(
        &mut self,
        seq: u64,
        label: &str,
        phase: Option<&Arc<str>>,
        state: AgentState,
        queued: Option<u64>,
    ) -> usize {
        let phase = phase.map(|title| self.phase(title, queued));
        let place = self.agents.len();
        let index = u32::try_from(place).unwrap_or(u32::MAX);
        self.agent_by_seq.insert(seq, index);
        self.agents.push(AgentView {
            index,
            seq,
            label: label.to_string(),
            phase,
            child_id: String::new(),
            state,
            queued,
            began: None,
            ended: None,
            usage: None,
            reason: self.reasons.get(&seq).cloned(),
            retries: 0,
            retry: None,
            heard: None,
            said: String::new(),
            tool: None,
            changed: self.revision,
        });
        self.tally(phase, |tally| *tally.count(state) += 1);
        if let Some(index) = phase {
            self.phases[index as usize].active = true;
        }
        place
    }

    fn agent_started(
        &mut self,
        seq: u64,
        label: &str,
        phase: Option<&Arc<str>>,
        child_id: &str,
        at: Option<u64>,
    ) -> bool {
        let place = match self.agent_by_seq.get(&seq) {
            Some(&index) if self.agents[index as usize].state == AgentState::Queued => {
                self.move_to(index as usize, AgentState::Running);
                index as usize
            }
            Some(_) => return false,
            None => {
                let place = self.add_agent(seq, label, phase, AgentState::Running, None);
                if let Some(phase) = self.agents[place].phase {
                    let phase = &mut self.phases[phase as usize];
                    phase.began = phase.began.or(at);
                }
                place
            }
        };
        let agent = &mut self.agents[place];
        agent.child_id = child_id.to_string();
        (agent.began, agent.heard) = (at, at);
        agent.changed = self.revision;
        self.run.peak = self.run.peak.max(self.run.agents.running);
        true
    }

    /// The agent of this call, which changes.
    fn change_agent(&mut self, seq: u64) -> Option<&mut AgentView> {
        let index = *self.agent_by_seq.get(&seq)?;
        let agent = self.agents.get_mut(index as usize)?;
        agent.changed = self.revision;
        Some(agent)
    }

    fn agent_retries(&mut self, retry: &AgentRetry, at: u64) {
        let Some(agent) = self.change_agent(retry.seq.into()) else { return };
        agent.retries = agent.retries.saturating_add(1);
        agent.heard = Some(at);
        agent.retry = Some(RetryView {
            kind: retry.kind.clone(),
            reason: retry.reason.clone(),
            until: at.saturating_add(retry.wait_ms),
        });
        agent.said.clear();
    }

    fn agent_says(&mut self, progress: &AgentProgress, at: u64) {
        let Some(agent) = self.change_agent(progress.seq.into()) else { return };
        agent.heard = Some(at);
        agent.retry = None;
        match progress.kind {
            ProgressKind::Text => {
                agent.said.push_str(&progress.text);
                if let Some((start, _)) = agent.said.char_indices().nth_back(MAX_SAID) {
                    agent.said.drain(..start);
                    let first = agent.said.chars().next().map_or(0, char::len_utf8);
                    agent.said.drain(..first);
                }
            }
            ProgressKind::Tool => agent.tool = Some(progress.text.chars().take(MAX_TOOL).collect()),
            ProgressKind::Reasoning | ProgressKind::Stderr => {}
        }
    }

    fn fail(&mut self, seq: u32, label: &str, kind: Option<&str>, reason: &str) {
        if !self.run.has_result {
            let (label, reason) = (label.to_string(), reason.to_string());
            let kind = kind.map(ToString::to_string);
            self.failures.push(AgentFailure { kind, ..AgentFailure::new(seq, label, reason) });
            self.failures_changed = self.revision;
        }
    }

    fn agent_ended(
        &mut self,
        seq: u64,
        state: AgentState,
        usage: Option<Usage>,
        reason: Option<&str>,
        at: Option<u64>,
    ) -> bool {
        let Some(&index) = self.agent_by_seq.get(&seq) else { return false };
        let place = index as usize;
        let agent = &mut self.agents[place];
        if !matches!(agent.state, AgentState::Queued | AgentState::Running) {
            return false;
        }
        agent.ended = at;
        agent.usage = usage;
        agent.retry = None;
        if let Some(reason) = reason {
            agent.reason = Some(reason.to_string());
        }
        agent.changed = self.revision;
        let phase = agent.phase;
        if let Some(usage) = usage.filter(|_| !self.counted) {
            self.run.usage = Some(self.run.usage.unwrap_or_default() + usage);
        }
        self.move_to(place, state);
        if let Some(index) = phase {
            self.settle(index, at);
        }
        true
    }

    /// The run is over: what has not started never will.
    fn give_up_queued(&mut self, at: u64) {
        for place in 0..self.agents.len() {
            if self.agents[place].state == AgentState::Queued {
                let seq = self.agents[place].seq;
                self.agent_ended(seq, AgentState::Refused, None, None, Some(at));
            }
        }
    }

    fn move_to(&mut self, place: usize, state: AgentState) {
        let agent = &mut self.agents[place];
        let from = mem::replace(&mut agent.state, state);
        let phase = agent.phase;
        self.tally(phase, |tally| tally.move_from(from, state));
    }

    /// Counts something in the run and in a phase of it.
    fn tally(&mut self, phase: Option<u32>, count: impl Fn(&mut super::Tally)) {
        count(&mut self.run.agents);
        if let Some(index) = phase {
            count(&mut self.phases[index as usize].agents);
        }
    }
}

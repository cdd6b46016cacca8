//! The books of a run: counts, caps, the queue, the pairing of events and the one terminal state.
//!
//! A state machine without clock and I/O. The driver tells it what happened, by a method each, and carries out
//! the [`Effect`]s that it leaves behind, in order. Whatever the script, the children and the caller do, in
//! whatever order, the events it emits are legal and the run ends once.
//!
//! `R` is whatever the driver needs to answer a call.
//!
//! - [`script`]: what a script asks; [`scopes`]: the workflows inside of it
//! - [`children`]: what its children report

mod children;
mod scopes;
mod script;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fanfold_types::{
    Agent, AgentFailure, AgentOutcome, EndedAgent, ErrorCode, EventKind, Meta, RunEnd, RunResult, StopReason,
    Usage, WorkflowError, Worktree,
};
use serde_json::value::RawValue;

use crate::activity::RunActivity;
use crate::limits::Limits;
use crate::subagents::{AgentRequest, FailureReason};

/// Longest default label, in characters.
const LABEL_CHARS: usize = 48;

/// Longest text that is told again and again, a label or a phase, and longest text that comes from a provider or a
/// script's error, in characters; the rest is cut.
const NAME_CHARS: usize = 200;
const TEXT_CHARS: usize = 4000;

/// How deep workflows run inside of each other; the run's own script is the first level.
pub(crate) const MAX_LEVELS: u32 = 3;

/// Most warnings that a run keeps.
pub(crate) const MAX_WARNINGS: usize = 100;

/// Most errors that a run tells which nobody saw, those of the workflows inside of it included.
const MAX_LOST_ERRORS: usize = 50;

/// What the driver has to do.
#[derive(Debug)]
pub(crate) enum Effect<R> {
    /// Tell the observers.
    Emit(EventKind),
    /// Answer a call of the script.
    Answer(R, Result<Reply, WorkflowError>),
    /// Tell the children of a script to stop; all of them for the run's own.
    StopChildren(ScopeId),
}

/// What a call of `agent()` gives the script.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Reply {
    /// `null`.
    None,
    /// A string.
    Text(String),
    /// A value, as JSON text.
    Json(String),
}

/// How a child ended.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ChildEnd {
    /// With an answer.
    Completed(Reply),
    /// Without success, and why.
    Failed(FailureReason),
    /// Because it was told to.
    Cancelled,
    /// The provider broke, and how.
    Broken(String),
    /// The provider broke for good: no other child can run.
    Fatal(FailureReason),
}

/// How the script ended.
#[derive(Debug)]
pub(crate) struct ScriptEnd {
    pub(crate) outcome: Result<Box<RawValue>, WorkflowError>,
    pub(crate) loose_ends: LooseEnds,
}

/// What a script has left that nobody looked at.
#[derive(Clone, Debug, Default)]
pub(crate) struct LooseEnds {
    /// Calls of `agent()` whose answer is lost.
    pub(crate) never_awaited: u32,
    /// What to say of them.
    pub(crate) lost_calls: Option<String>,
    /// Errors that are lost, one text each.
    pub(crate) errors: Vec<String>,
}

impl LooseEnds {
    /// The same, saying which workflow inside of the run has left them.
    pub(crate) fn of_workflow(mut self, shown: &str) -> Self {
        for text in self.lost_calls.iter_mut().chain(&mut self.errors) {
            text.insert_str(0, &format!("workflow {shown}: "));
        }
        self
    }
}

impl ScriptEnd {
    /// The script was stopped from outside.
    pub(crate) fn stopped(error: WorkflowError) -> Self {
        Self { outcome: Err(error), loose_ends: LooseEnds::default() }
    }
}

/// A script of the run: its own, or that of a workflow inside of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct ScopeId(u32);

impl ScopeId {
    /// The run's own script.
    pub(crate) const ROOT: Self = Self(0);

    pub(crate) fn number(self) -> u64 {
        self.0.into()
    }
}

/// What the books know of a script.
struct Scope {
    /// 1 for the run's own.
    level: u32,
    phase: Option<Arc<str>>,
}

pub(crate) struct Books<R> {
    run_id: Arc<str>,
    parent: Option<Arc<str>>,
    limits: Limits,
    /// Calls that have not ended, by number.
    calls: BTreeMap<u32, Call<R>>,
    /// The calls among them that wait for a slot.
    queue: VecDeque<u32>,
    /// The scripts that run.
    scopes: BTreeMap<ScopeId, Scope>,
    /// Workflows that were run inside of this one.
    nested: u32,
    accepted: u32,
    /// Why no more children start, once that is so.
    refusal: Option<WorkflowError>,
    /// What children have cost, once one has said so.
    usage: Option<Usage>,
    request_bytes: u64,
    narration_events: u64,
    narration_bytes: u64,
    /// Decided once, by whichever comes first: the script's end or the cancellation.
    terminal: Option<Terminal>,
    script_ended: bool,
    failures: Vec<AgentFailure>,
    worktrees: Vec<Worktree>,
    never_awaited: u32,
    /// Errors that nobody saw and that were told.
    lost_errors: usize,
    warnings: Vec<Arc<str>>,
    effects: VecDeque<Effect<R>>,
    /// What the children report to.
    activity: Arc<RunActivity>,
}

enum Terminal {
    Completed(Box<RawValue>),
    Failed(WorkflowError),
    Cancelled(WorkflowError),
}

struct Call<R> {
    scope: ScopeId,
    /// Who waits for the answer; none once it was given.
    reply: Option<R>,
    label: Arc<str>,
    phase: Option<Arc<str>>,
    stage: Stage,
    usage: Option<Usage>,
}

enum Stage {
    Queued(Box<AgentRequest>),
    Starting,
    /// Observers know of it.
    Running(Arc<Agent>),
    /// It started after the run was cancelled: it is not announced, and will be stopped.
    Unannounced,
}

impl<R> Books<R> {
    /// Opens the books of a run, with its first event.
    pub(crate) fn open(
        run_id: Arc<str>,
        parent: Option<Arc<str>>,
        meta: Arc<Meta>,
        limits: Limits,
        activity: Arc<RunActivity>,
    ) -> Self {
        Self {
            run_id,
            parent,
            limits,
            calls: BTreeMap::new(),
            queue: VecDeque::new(),
            scopes: BTreeMap::from([(ScopeId::ROOT, Scope { level: 1, phase: None })]),
            nested: 0,
            accepted: 0,
            refusal: None,
            usage: None,
            request_bytes: 0,
            narration_events: 0,
            narration_bytes: 0,
            terminal: None,
            script_ended: false,
            failures: Vec::new(),
            worktrees: Vec::new(),
            never_awaited: 0,
            lost_errors: 0,
            warnings: Vec::new(),
            effects: VecDeque::from([Effect::Emit(EventKind::Start { meta })]),
            activity,
        }
    }

    /// The next thing to do.
    pub(crate) fn next_effect(&mut self) -> Option<Effect<R>> {
        self.effects.pop_front()
    }

    /// Whether there is something to do: effects, or a call that waits for a slot if none is waited for.
    pub(crate) fn has_news(&self, may_wait: bool) -> bool {
        !self.effects.is_empty() || (may_wait && self.wants_slot())
    }

    // ── The end of the script ───────────────────────────────────────────────────────────────────────────

    /// The script ended. Children that still run are no longer wanted.
    pub(crate) fn script_ended(&mut self, end: ScriptEnd) {
        if self.script_ended {
            return;
        }
        self.script_ended = true;
        // Those that nobody awaited are told as such.
        let stopped = self.calls.len().saturating_sub(end.loose_ends.never_awaited as usize);
        self.tell_lost(end.loose_ends);
        if self.terminal.is_none() && end.outcome.is_ok() && stopped > 0 {
            let agents =
                if stopped == 1 { "1 agent was".to_owned() } else { format!("{stopped} agents were") };
            self.tell(&format!(
                "{agents} stopped since the script had ended; await whatever is to finish before"
            ));
        }
        if self.terminal.is_none() {
            self.terminal = Some(match end.outcome {
                Ok(value) => Terminal::Completed(value),
                Err(mut error) => {
                    error.message = cut(&error.message);
                    error.path = error.path.as_deref().map(cut);
                    Terminal::Failed(error)
                }
            });
        }
        self.stop_children();
    }

    /// Tells what a script has left that nobody looked at.
    fn tell_lost(&mut self, loose_ends: LooseEnds) {
        self.never_awaited = self.never_awaited.saturating_add(loose_ends.never_awaited);
        if let Some(lost) = loose_ends.lost_calls {
            self.tell(&lost);
        }
        for error in loose_ends.errors {
            if self.lost_errors < MAX_LOST_ERRORS {
                self.lost_errors += 1;
                self.warn(&cut(&error));
            }
        }
    }

    /// Says something once, for people.
    pub(crate) fn warn(&mut self, warning: &str) {
        if self.warnings.len() < MAX_WARNINGS {
            self.tell(warning);
        }
    }

    /// Says what must be said however much has been: once for each script at most.
    fn tell(&mut self, warning: &str) {
        if self.warnings.iter().any(|known| **known == *warning) {
            return;
        }
        let warning: Arc<str> = warning.into();
        self.warnings.push(warning.clone());
        // After a cancellation there are no events but ends.
        if !matches!(self.terminal, Some(Terminal::Cancelled(_))) {
            self.effects.push_back(Effect::Emit(EventKind::Warning { message: warning }));
        }
    }

    // ── The end ─────────────────────────────────────────────────────────────────────────────────────────

    /// The run is cancelled. The first reason counts, and only before the script has ended.
    pub(crate) fn cancel(&mut self, reason: &str) {
        if self.terminal.is_some() {
            return;
        }
        let error = ErrorCode::Cancelled.error(reason);
        self.terminal = Some(Terminal::Cancelled(error.clone()));
        let waiting = self.calls.values_mut().filter_map(|call| call.reply.take());
        self.effects.extend(waiting.map(|reply| Effect::Answer(reply, Err(error.clone()))));
        self.stop_children();
    }

    /// What runs is told to stop, what has not started never will.
    fn stop_children(&mut self) {
        for seq in self.queue.drain(..) {
            self.calls.remove(&seq);
        }
        self.effects.push_back(Effect::StopChildren(ScopeId::ROOT));
    }

    /// Whether nothing is left to wait for.
    pub(crate) fn is_done(&self) -> bool {
        self.script_ended && self.calls.is_empty()
    }

    /// Closes the books: what has not ended by now is cancelled. The last event is emitted.
    pub(crate) fn close(&mut self) -> RunResult {
        if self.terminal.is_none() {
            let error = ErrorCode::Internal.error("the run was closed before its script ended");
            self.terminal = Some(Terminal::Failed(error));
        }
        self.script_ended = true;
        self.queue.clear();
        for call in std::mem::take(&mut self.calls).into_values() {
            if let Stage::Running(agent) = call.stage {
                let agent =
                    EndedAgent { usage: call.usage, ..EndedAgent::new(agent, AgentOutcome::Cancelled) };
                self.effects.push_back(Effect::Emit(EventKind::AgentEnd { agent }));
            }
        }
        let (value, stop_reason, error) = match self.terminal.take() {
            Some(Terminal::Completed(value)) => (value, StopReason::Completed, None),
            Some(Terminal::Cancelled(error)) => {
                (RawValue::NULL.to_owned(), StopReason::Cancelled, Some(error))
            }
            Some(Terminal::Failed(error)) => (RawValue::NULL.to_owned(), StopReason::Error, Some(error)),
            None => (RawValue::NULL.to_owned(), StopReason::Error, None),
        };
        let end = RunEnd { stop_reason, error: error.clone(), agents_started: self.accepted };
        self.effects.push_back(Effect::Emit(EventKind::End { result: end }));
        let mut result = RunResult::new(stop_reason, error);
        result.value = value;
        result.agents_started = self.accepted;
        result.usage = self.usage;
        result.failures = std::mem::take(&mut self.failures);
        result.worktrees = std::mem::take(&mut self.worktrees);
        result.never_awaited = self.never_awaited;
        result.warnings = self.warnings.iter().map(|warning| warning.to_string()).collect();
        result
    }
}

/// The prompt's first line, at most 48 characters.
pub(crate) fn default_label(prompt: &str) -> String {
    let line = prompt.lines().next().unwrap_or_default();
    match line.char_indices().nth(LABEL_CHARS) {
        None => line.to_owned(),
        Some(_) => line.chars().take(LABEL_CHARS - 1).chain(['…']).collect(),
    }
}

fn cut(text: &str) -> String {
    cut_to(text, TEXT_CHARS)
}

fn cut_to(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

#[cfg(test)]
mod tests;

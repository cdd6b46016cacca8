//! The books of a run: counts, caps, the queue, the pairing of events and the one terminal state.
//!
//! A state machine without clock and I/O. The driver tells it what happened, by a method each, and carries out
//! the [`Effect`]s that it leaves behind, in order. Whatever the script, the children and the caller do, in
//! whatever order, the events it emits are legal and the run ends once.
//!
//! `R` is whatever the driver needs to answer a call.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fanfold_types::{
    Agent, AgentFailure, AgentOutcome, EndedAgent, ErrorCode, EventKind, Meta, RunEnd, RunResult, StopReason,
    Usage, WorkflowError, Worktree,
};
use serde_json::value::RawValue;

use crate::limits::Limits;
use crate::observe::Note;
use crate::subagents::{AgentOptions, AgentRequest};

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
    /// Tell the observers something that is for people.
    Warn(Arc<str>),
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
    Failed(String),
    /// Because it was told to.
    Cancelled,
    /// The provider broke, and how.
    Broken(String),
    /// The provider broke for good: no other child can run.
    Fatal(String),
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
    /// Errors that are lost, one text each.
    pub(crate) errors: Vec<String>,
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
    /// What observers are told besides.
    notes: Vec<Note>,
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
    pub(crate) fn open(run_id: Arc<str>, parent: Option<Arc<str>>, meta: Arc<Meta>, limits: Limits) -> Self {
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
            notes: Vec::new(),
        }
    }

    /// The next thing to do.
    pub(crate) fn next_effect(&mut self) -> Option<Effect<R>> {
        self.effects.pop_front()
    }

    /// Whether there is something to do: effects, notes, or a call that waits for a slot if none is waited for.
    pub(crate) fn has_news(&self, may_wait: bool) -> bool {
        !self.effects.is_empty() || !self.notes.is_empty() || (may_wait && self.wants_slot())
    }

    /// What observers are to be told before the effects that are left are carried out.
    pub(crate) fn take_notes(&mut self) -> Vec<Note> {
        std::mem::take(&mut self.notes)
    }

    // ── The script ──────────────────────────────────────────────────────────────────────────────────────

    /// The script calls `agent()`: whether it may, before anything is made of what it sent, `bytes` in size.
    ///
    /// # Errors
    /// What the call is refused with.
    pub(crate) fn admit(&mut self, bytes: u64) -> Result<(), WorkflowError> {
        self.check_running()?;
        if let Some(refusal) = &self.refusal {
            return Err(refusal.clone());
        }
        let cap = self.limits.max_total_agents;
        if self.accepted >= cap {
            return Err(ErrorCode::AgentCap.error(format!(
                "this run may make {cap} agent() calls (maxTotalAgents) and has made them; do more in each \
                 call, or raise maxTotalAgents"
            )));
        }
        self.count_bytes(bytes)
    }

    /// Counts what a call sends, even if the call is then refused for what it says: reading that is work too.
    fn count_bytes(&mut self, bytes: u64) -> Result<(), WorkflowError> {
        let most = self.limits.max_request_bytes;
        if self.request_bytes.saturating_add(bytes) > most {
            return Err(ErrorCode::OutputLimit.error(format!(
                "the prompts and options of one run may take {most} bytes together (maxRequestBytes); send less with \
                 each call"
            )));
        }
        self.request_bytes += bytes;
        Ok(())
    }

    /// The script called `agent()`, and was admitted.
    ///
    /// # Errors
    /// What the call is refused with; nothing will start.
    pub(crate) fn call(
        &mut self,
        scope: ScopeId,
        prompt: String,
        options: AgentOptions,
        reply: R,
    ) -> Result<(), WorkflowError> {
        if prompt.is_empty() {
            return Err(ErrorCode::InvalidArgument
                .error("agent() takes a prompt that is not empty")
                .on("prompt"));
        }
        self.accepted += 1;
        let seq = self.accepted;
        let label: Arc<str> = match &options.label {
            Some(label) => cut_to(label, NAME_CHARS).into(),
            None => default_label(&prompt).into(),
        };
        let phase = options
            .phase
            .as_deref()
            .map(|phase| cut_to(phase, NAME_CHARS).into())
            .or_else(|| self.scopes.get(&scope)?.phase.clone());
        self.notes.push(Note::Waiting { seq, phase: phase.clone() });
        let request = AgentRequest {
            run_id: self.run_id.clone(),
            parent: self.parent.clone(),
            seq,
            label: label.clone(),
            phase: phase.clone(),
            prompt,
            options,
        };
        self.calls.insert(
            seq,
            Call {
                scope,
                reply: Some(reply),
                label,
                phase,
                stage: Stage::Queued(Box::new(request)),
                usage: None,
            },
        );
        self.queue.push_back(seq);
        Ok(())
    }

    /// The script called `phase()`.
    ///
    /// # Errors
    /// What the call throws.
    pub(crate) fn phase(&mut self, scope: ScopeId, title: &str) -> Result<(), WorkflowError> {
        self.check_running()?;
        if title.is_empty() {
            return Err(ErrorCode::InvalidArgument.error("phase() takes a title that is not empty"));
        }
        self.narrate(title)?;
        let title: Arc<str> = cut_to(title, NAME_CHARS).into();
        if let Some(scope) = self.scopes.get_mut(&scope) {
            scope.phase = Some(title.clone());
        }
        self.effects.push_back(Effect::Emit(EventKind::Phase { title }));
        Ok(())
    }

    /// The script called `log()`.
    ///
    /// # Errors
    /// What the call throws.
    pub(crate) fn log(&mut self, message: String) -> Result<(), WorkflowError> {
        self.check_running()?;
        self.narrate(&message)?;
        self.effects.push_back(Effect::Emit(EventKind::Log { message }));
        Ok(())
    }

    /// Output tokens that the children have taken, as far as their provider has told.
    pub(crate) fn spent(&self) -> u64 {
        self.usage.unwrap_or_default().output_tokens
    }

    /// Whether hooks may be called.
    ///
    /// # Errors
    /// What each call throws.
    pub(crate) fn check_running(&self) -> Result<(), WorkflowError> {
        match self.terminal {
            None => Ok(()),
            Some(_) => Err(self.stop_error()),
        }
    }

    /// What is said to a script that is no longer wanted.
    pub(crate) fn stop_error(&self) -> WorkflowError {
        match &self.terminal {
            Some(Terminal::Cancelled(error)) => error.clone(),
            _ => ErrorCode::Cancelled.error("the run has ended"),
        }
    }

    fn narrate(&mut self, text: &str) -> Result<(), WorkflowError> {
        let Limits { max_narration_events, max_narration_bytes, .. } = self.limits;
        if self.narration_events >= max_narration_events {
            return Err(ErrorCode::OutputLimit.error(format!(
                "this run may call phase() and log() {max_narration_events} times (maxNarrationEvents); narrate steps, \
                 not items"
            )));
        }
        if self.narration_bytes + text.len() as u64 > max_narration_bytes {
            return Err(ErrorCode::OutputLimit.error(format!(
                "what a run says through phase() and log() may take {max_narration_bytes} bytes together \
                 (maxNarrationBytes); log summaries"
            )));
        }
        self.narration_events += 1;
        self.narration_bytes += text.len() as u64;
        Ok(())
    }

    // ── The workflows inside of it ──────────────────────────────────────────────────────────────────────

    /// A script calls `workflow()`, with so many bytes.
    ///
    /// # Errors
    /// What the call is refused with.
    pub(crate) fn open_scope(&mut self, parent: ScopeId, bytes: u64) -> Result<ScopeId, WorkflowError> {
        self.check_running()?;
        let (level, phase) = match self.scopes.get(&parent) {
            Some(scope) => (scope.level + 1, scope.phase.clone()),
            None => return Err(ErrorCode::Cancelled.error("the workflow has ended")),
        };
        if level > MAX_LEVELS {
            return Err(ErrorCode::InvalidArgument.error(format!(
                "workflow() cannot be called here: workflows run inside of each other up to {MAX_LEVELS} levels deep; \
                 call agent() instead"
            )));
        }
        let most = self.limits.max_nested_workflows;
        if self.nested >= most {
            return Err(ErrorCode::AgentCap.error(format!(
                "this run may make {most} workflow() calls (maxNestedWorkflows) and has made them; do more in each call"
            )));
        }
        self.count_bytes(bytes)?;
        self.nested += 1;
        let id = ScopeId(self.nested);
        self.scopes.insert(id, Scope { level, phase });
        Ok(id)
    }

    /// How deep a script is inside of others: 1 for the run's own.
    pub(crate) fn level(&self, scope: ScopeId) -> u32 {
        self.scopes.get(&scope).map_or(1, |scope| scope.level)
    }

    /// A workflow has ended, however. Its children that still run are no longer wanted.
    pub(crate) fn close_scope(&mut self, scope: ScopeId, loose_ends: LooseEnds) {
        if self.scopes.remove(&scope).is_none() {
            return;
        }
        self.never_awaited = self.never_awaited.saturating_add(loose_ends.never_awaited);
        self.tell_lost(loose_ends.errors);
        let calls = &mut self.calls;
        self.queue.retain(|seq| {
            let ended = calls.get(seq).is_some_and(|call| call.scope == scope);
            if ended {
                calls.remove(seq);
            }
            !ended
        });
        self.effects.push_back(Effect::StopChildren(scope));
    }

    /// Tells errors that nobody saw.
    fn tell_lost(&mut self, errors: Vec<String>) {
        for error in errors {
            if self.lost_errors < MAX_LOST_ERRORS {
                self.lost_errors += 1;
                self.warn(&cut(&error));
            }
        }
    }

    // ── The end of the script ───────────────────────────────────────────────────────────────────────────

    /// The script ended. Children that still run are no longer wanted.
    pub(crate) fn script_ended(&mut self, end: ScriptEnd) {
        if self.script_ended {
            return;
        }
        self.script_ended = true;
        self.never_awaited = self.never_awaited.saturating_add(end.loose_ends.never_awaited);
        match self.never_awaited {
            0 => {}
            1 => self.warn("1 agent() call was never awaited: its answer is lost"),
            n => self.warn(&format!("{n} agent() calls were never awaited: their answers are lost")),
        }
        self.tell_lost(end.loose_ends.errors);
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

    // ── The children ────────────────────────────────────────────────────────────────────────────────────

    /// Whether a call waits for a slot.
    pub(crate) fn wants_slot(&self) -> bool {
        !self.queue.is_empty()
    }

    /// A slot is free: the call to start in it, if any waits.
    pub(crate) fn start_next(&mut self) -> Option<(ScopeId, AgentRequest)> {
        let seq = self.queue.pop_front()?;
        let call = self.calls.get_mut(&seq)?;
        match std::mem::replace(&mut call.stage, Stage::Starting) {
            Stage::Queued(request) => Some((call.scope, *request)),
            other => {
                call.stage = other;
                None
            }
        }
    }

    /// A child has started.
    pub(crate) fn child_started(&mut self, seq: u32, child_id: String) {
        let Some(call) = self.calls.get_mut(&seq) else { return };
        if !matches!(call.stage, Stage::Starting) {
            return;
        }
        if matches!(self.terminal, Some(Terminal::Cancelled(_))) {
            call.stage = Stage::Unannounced;
            return;
        }
        let (label, phase) = (call.label.to_string(), call.phase.clone());
        let agent = Arc::new(Agent { seq, label, phase, child_id: cut_to(&child_id, NAME_CHARS) });
        call.stage = Stage::Running(agent.clone());
        self.effects.push_back(Effect::Emit(EventKind::AgentStart { agent }));
    }

    /// A child could not start, for this reason.
    pub(crate) fn start_failed(&mut self, seq: u32, reason: &str) {
        if !matches!(self.calls.get(&seq), Some(Call { stage: Stage::Starting, .. })) {
            return;
        }
        let Some(call) = self.calls.remove(&seq) else { return };
        let reason = cut(reason);
        let error =
            ErrorCode::AgentStart.error(format!("agent {seq} ({:?}) could not start: {reason}", call.label));
        if self.is_wanted(&call) {
            self.fail(seq, &call.label, reason);
        }
        if let Some(reply) = call.reply {
            self.effects.push_back(Effect::Answer(reply, Err(error)));
        }
    }

    /// Whether a call's answer still has somebody to go to.
    fn is_wanted(&self, call: &Call<R>) -> bool {
        self.terminal.is_none() && self.scopes.contains_key(&call.scope)
    }

    fn fail(&mut self, seq: u32, label: &str, reason: String) {
        let failure = AgentFailure { seq, label: label.to_owned(), reason };
        self.notes.push(Note::Failed(failure.clone()));
        self.failures.push(failure);
    }

    /// A child has used so many tokens; told before its end.
    pub(crate) fn child_used(&mut self, seq: u32, usage: Usage) {
        self.usage = Some(self.usage.unwrap_or_default() + usage);
        if let Some(call) = self.calls.get_mut(&seq) {
            call.usage = Some(call.usage.unwrap_or_default() + usage);
        }
        if let Some(total) = self.limits.max_output_tokens
            && self.spent() >= total
            && self.refusal.is_none()
        {
            let spent = self.spent();
            self.refuse_all(ErrorCode::AgentCap.error(format!(
                "the budget of this run is {total} output tokens (maxOutputTokens) and {spent} are spent: no more \
                 agents start; return what there is"
            )));
        }
    }

    /// No more children start, for this reason: calls that wait are refused, and so is every call to come.
    fn refuse_all(&mut self, refusal: WorkflowError) {
        for seq in std::mem::take(&mut self.queue) {
            let Some(call) = self.calls.remove(&seq) else { continue };
            self.fail(seq, &call.label, refusal.message.clone());
            if let Some(reply) = call.reply {
                self.effects.push_back(Effect::Answer(reply, Err(refusal.clone())));
            }
        }
        self.refusal = Some(refusal);
    }

    /// A child has ended.
    pub(crate) fn child_ended(&mut self, seq: u32, end: ChildEnd) {
        let Some(call) = self.calls.remove(&seq) else { return };
        // What a child does after it was told to stop is stopping, unless it made it.
        let stopped = !self.is_wanted(&call) && !matches!(end, ChildEnd::Completed(_));
        let mut refusal = None;
        let (outcome, answer) = match end {
            _ if stopped => (AgentOutcome::Cancelled, Ok(Reply::None)),
            ChildEnd::Completed(reply) => (AgentOutcome::Completed, Ok(reply)),
            ChildEnd::Failed(reason) => {
                self.fail(seq, &call.label, cut(&reason));
                (AgentOutcome::Failed, Ok(Reply::None))
            }
            ChildEnd::Cancelled => {
                self.fail(seq, &call.label, "it stopped without having been told to".to_owned());
                (AgentOutcome::Cancelled, Ok(Reply::None))
            }
            ChildEnd::Broken(ref reason) | ChildEnd::Fatal(ref reason) => {
                let reason = cut(reason);
                if matches!(end, ChildEnd::Fatal(_)) {
                    let reason = cut_to(&reason, NAME_CHARS);
                    let message = format!("no more agents start, since agent {seq} found: {reason}");
                    refusal = Some(ErrorCode::AgentStart.error(message));
                }
                let message =
                    format!("the provider broke while agent {seq} ({:?}) ran: {reason}", call.label);
                self.fail(seq, &call.label, reason);
                (AgentOutcome::Failed, Err(ErrorCode::AgentResult.error(message)))
            }
        };
        if let Stage::Running(agent) = call.stage {
            self.effects.push_back(Effect::Emit(EventKind::AgentEnd {
                agent: EndedAgent { agent, outcome, usage: call.usage },
            }));
        }
        if let Some(reply) = call.reply {
            self.effects.push_back(Effect::Answer(reply, answer));
        }
        if let Some(refusal) = refusal {
            self.refuse_all(refusal);
        }
    }

    /// A child left a worktree behind.
    pub(crate) fn left(&mut self, worktree: Worktree) {
        self.worktrees.push(worktree);
    }

    /// Says something once, for people.
    pub(crate) fn warn(&mut self, warning: &str) {
        if self.warnings.len() >= MAX_WARNINGS || self.warnings.iter().any(|known| **known == *warning) {
            return;
        }
        let warning: Arc<str> = warning.into();
        self.warnings.push(warning.clone());
        self.effects.push_back(Effect::Warn(warning));
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
                let agent = EndedAgent { agent, outcome: AgentOutcome::Cancelled, usage: call.usage };
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

//! What children report to the books.

use std::sync::Arc;

use fanfold_types::{
    Agent, AgentFailure, AgentOutcome, AgentProgress, AgentRetry, EndedAgent, ErrorCode, EventKind,
    QueuedAgent, RefusedAgent, Usage, WorkflowError, Worktree,
};

use super::{Books, Call, ChildEnd, Effect, NAME_CHARS, Reply, ScopeId, Stage, Terminal, cut, cut_to};
use crate::activity::Report;
use crate::subagents::AgentRequest;

impl<R> Books<R> {
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
            self.refuse(seq, &call, reason);
        }
        if let Some(reply) = call.reply {
            self.effects.push_back(Effect::Answer(reply, Err(error)));
        }
    }

    /// Tells what children say while they work.
    pub(crate) fn child_reported(&mut self, report: Report) {
        let (Report::Progress(AgentProgress { seq, .. }) | Report::Retry(AgentRetry { seq, .. })) = &report;
        // Of one that was never announced, or is over, nothing is told.
        if self.terminal.is_some()
            || !matches!(self.calls.get(seq), Some(Call { stage: Stage::Running(_), .. }))
        {
            return;
        }
        let event = match report {
            Report::Progress(agent) => EventKind::AgentProgress { agent },
            Report::Retry(mut agent) => {
                (agent.kind, agent.reason) = (cut_to(&agent.kind, NAME_CHARS), cut(&agent.reason));
                EventKind::AgentRetry { agent }
            }
        };
        self.effects.push_back(Effect::Emit(event));
    }

    /// Whether a call's answer still has somebody to go to.
    fn is_wanted(&self, call: &Call<R>) -> bool {
        self.terminal.is_none() && self.scopes.contains_key(&call.scope)
    }

    /// A call does not start although its answer is wanted.
    fn refuse(&mut self, seq: u32, call: &Call<R>, reason: String) {
        self.failures.push(AgentFailure::new(seq, &*call.label, reason.clone()));
        let agent = QueuedAgent { seq, label: call.label.clone(), phase: call.phase.clone() };
        self.effects
            .push_back(Effect::Emit(EventKind::AgentRefused { agent: RefusedAgent { agent, reason } }));
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
            self.refuse(seq, &call, refusal.message.clone());
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
        let (outcome, failure, answer) = match end {
            _ if stopped => (AgentOutcome::Cancelled, None, Ok(Reply::None)),
            ChildEnd::Completed(reply) => (AgentOutcome::Completed, None, Ok(reply)),
            ChildEnd::Failed(failure) => (AgentOutcome::Failed, Some(failure), Ok(Reply::None)),
            ChildEnd::Cancelled => {
                let failure = "it stopped without having been told to".into();
                (AgentOutcome::Cancelled, Some(failure), Ok(Reply::None))
            }
            ChildEnd::Broken(reason) => {
                let error = broken(seq, &call.label, &reason);
                (AgentOutcome::Failed, Some(reason.into()), Err(error))
            }
            ChildEnd::Fatal(failure) => {
                let reason = failure.to_string();
                let found = cut_to(&reason, NAME_CHARS);
                let message = format!("no more agents start, since agent {seq} found: {found}");
                refusal = Some(ErrorCode::AgentStart.error(message));
                (AgentOutcome::Failed, Some(failure), Err(broken(seq, &call.label, &reason)))
            }
        };
        let kind = failure.as_ref().and_then(|failure| Some(cut_to(failure.kind.as_ref()?, NAME_CHARS)));
        let reason = failure.map(|failure| cut(&failure.to_string()));
        if let Some(reason) = reason.clone() {
            let failure = AgentFailure::new(seq, &*call.label, reason);
            self.failures.push(AgentFailure { kind: kind.clone(), ..failure });
        }
        if let Stage::Running(agent) = call.stage {
            let agent = EndedAgent { usage: call.usage, kind, reason, ..EndedAgent::new(agent, outcome) };
            self.effects.push_back(Effect::Emit(EventKind::AgentEnd { agent }));
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
}

/// What the script gets of an agent whose provider broke.
fn broken(seq: u32, label: &str, reason: &str) -> WorkflowError {
    let reason = cut(reason);
    ErrorCode::AgentResult.error(format!("the provider broke while agent {seq} ({label:?}) ran: {reason}"))
}

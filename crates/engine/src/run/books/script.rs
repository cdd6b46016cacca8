//! What a script asks of the books: agents, phases, log lines, what it all has cost.

use std::sync::Arc;

use fanfold_types::{ErrorCode, EventKind, QueuedAgent, WorkflowError};

use super::{Books, Call, Effect, NAME_CHARS, ScopeId, Stage, Terminal, cut_to, default_label};
use crate::limits::Limits;
use crate::subagents::{AgentOptions, AgentRequest};

impl<R> Books<R> {
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
    pub(super) fn count_bytes(&mut self, bytes: u64) -> Result<(), WorkflowError> {
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
        let agent = QueuedAgent { seq, label: label.clone(), phase: phase.clone() };
        self.effects.push_back(Effect::Emit(EventKind::AgentQueued { agent }));
        let request = AgentRequest {
            run_id: self.run_id.clone(),
            parent: self.parent.clone(),
            seq,
            label: label.clone(),
            phase: phase.clone(),
            prompt,
            options,
            activity: self.activity.of(seq),
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
}

//! The workflows that run inside of a run, and share its books.

use fanfold_types::{ErrorCode, EventKind, QueuedAgent, RefusedAgent, WorkflowError};

use super::{Books, Effect, LooseEnds, MAX_LEVELS, Scope, ScopeId};

impl<R> Books<R> {
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
        self.tell_lost(loose_ends);
        let Self { calls, queue, effects, .. } = self;
        queue.retain(|seq| {
            let Some(call) = calls.remove(seq) else { return false };
            if call.scope != scope {
                calls.insert(*seq, call);
                return true;
            }
            let agent = QueuedAgent { seq: *seq, label: call.label, phase: call.phase };
            let reason = "the workflow that called it has ended".to_owned();
            effects
                .push_back(Effect::Emit(EventKind::AgentRefused { agent: RefusedAgent { agent, reason } }));
            false
        });
        self.effects.push_back(Effect::StopChildren(scope));
    }
}

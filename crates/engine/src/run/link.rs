//! Between the guests and the driver: what a script asks goes into the books at once. The driver looks at them after
//! each time it has polled the guests.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold_types::{ErrorCode, WorkflowError};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::books::{Books, Reply, ScopeId};
use super::canceller::Canceller;
use super::nested::{Inside, Nursery};
use super::timers::{ScriptTime, Timers};
use crate::agent_types::AgentTypes;
use crate::bindings::fanfold::workflow::types as wit;
use crate::limits::Limits;
use crate::options;
use crate::pool::Pool;
use crate::schema::{Ignored, Schemas};
use crate::script::{Dialect, Script};
use crate::subagents::{Subagents, Support, define, unsupported};

/// Who waits for the answer to a call.
pub(crate) type Answerer = oneshot::Sender<Result<Reply, WorkflowError>>;

/// What the driver and all the guests of one run share.
pub(crate) struct Shared {
    books: Mutex<Books<Answerer>>,
    provider: Arc<dyn Subagents>,
    /// What the provider claims.
    pub(super) support: Support,
    schemas: Schemas,
    agent_types: Option<Arc<dyn AgentTypes>>,
    /// Knows of a cancellation at once.
    pub(crate) canceller: Canceller,
    /// Tells the scripts that the run is over for them: the books know of the cancellation.
    pub(crate) stopped: CancellationToken,
    pub(crate) pool: Arc<Pool>,
    pub(super) limits: Limits,
    pub(super) time: ScriptTime,
    pub(super) seed: u64,
    /// Where the guests of workflows inside of this one come from.
    pub(super) nursery: Arc<dyn Nursery>,
    /// Hands them to the driver.
    pub(super) inside: mpsc::UnboundedSender<Inside>,
}

impl Shared {
    pub(super) fn new(
        books: Books<Answerer>,
        (provider, agent_types): (Arc<dyn Subagents>, Option<Arc<dyn AgentTypes>>),
        limits: Limits,
        (start_time_ms, seed): (u64, u64),
        nursery: Arc<dyn Nursery>,
        inside: mpsc::UnboundedSender<Inside>,
        canceller: Canceller,
    ) -> Self {
        Self {
            books: Mutex::new(books),
            support: provider.supports(),
            schemas: Schemas::default(),
            provider,
            agent_types,
            canceller,
            stopped: CancellationToken::new(),
            pool: Arc::new(Pool::new(&limits)),
            limits,
            time: ScriptTime::new(start_time_ms),
            seed,
            nursery,
            inside,
        }
    }

    /// The books. Nothing is held across an await, and nobody panics while holding them; if somebody did, the
    /// books are still the best there are.
    pub(crate) fn books(&self) -> MutexGuard<'_, Books<Answerer>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What the guest of a script in this scope is given. Every script of a run has chances of its own.
    pub(super) fn settings(&self, script: &Script, args: Option<String>, scope: ScopeId) -> wit::Settings {
        wit::Settings {
            args,
            dialect: match script.dialect {
                Dialect::Header => wit::Dialect::Header,
                Dialect::Body => wit::Dialect::Body,
            },
            start_time_ms: self.time.now_ms(),
            seed: self.seed.wrapping_add(scope.number()),
            max_items_per_call: self.limits.max_items_per_call,
            budget_total: self.limits.max_output_tokens,
        }
    }
}

/// One guest's door to its run.
pub(crate) struct Link {
    pub(crate) run: Arc<Shared>,
    pub(super) scope: ScopeId,
    /// None for scripts that have no timers.
    timers: Option<Timers>,
}

impl Link {
    pub(super) fn new(run: Arc<Shared>, scope: ScopeId, dialect: Dialect) -> Self {
        let timers = (dialect == Dialect::Header).then(|| Timers::new(run.limits.max_timers));
        Self { run, scope, timers }
    }

    /// How deep this guest's script is inside of others: 1 for the run's own.
    pub(crate) fn level(&self) -> usize {
        self.run.books().level(self.scope) as usize
    }

    /// Whether this is the guest of the run's own script.
    pub(crate) fn is_root(&self) -> bool {
        self.scope == ScopeId::ROOT
    }

    /// The script called `agent()`.
    pub(crate) async fn agent(&self, prompt: String, options: &str) -> Result<Reply, WorkflowError> {
        // Nothing of the call is kept beside its answer while it waits.
        let answer = self.call(prompt, options)?;
        answer.await.unwrap_or_else(|_| Err(ErrorCode::Cancelled.error("the run has ended")))
    }

    fn call(
        &self,
        prompt: String,
        options: &str,
    ) -> Result<oneshot::Receiver<Result<Reply, WorkflowError>>, WorkflowError> {
        self.run.books().admit((prompt.len() + options.len()) as u64)?;
        let (mut options, private) = options::parse(options, &self.run.schemas)?;
        define(&mut options, self.run.support, self.run.agent_types.as_deref())?;
        let ignored = unsupported(&options, self.run.support, &*self.run.provider)?;
        let without_effect = options.validator.clone();
        let (sender, answer) = oneshot::channel();
        {
            let mut books = self.run.books();
            books.call(self.scope, prompt, options, sender)?;
            for hint in ignored {
                books.warn(&format!(
                    "agent() option {hint:?} is ignored: this run's provider does not honour it"
                ));
            }
            for Ignored { path, message } in without_effect.iter().flat_map(|schema| schema.ignored()) {
                books.warn(&format!("agent() option {path} {message}"));
            }
            for option in private {
                books.warn(&format!(
                    "agent() option {option:?} is ignored: names that begin with `_` are the script's own"
                ));
            }
        }
        Ok(answer)
    }

    /// The script called `phase()`.
    pub(crate) fn phase(&self, title: &str) -> Result<(), WorkflowError> {
        self.run.books().phase(self.scope, title)
    }

    /// The script called `log()`.
    pub(crate) fn log(&self, message: String) -> Result<(), WorkflowError> {
        self.run.books().log(message)
    }

    /// The script called `budget.spent()`.
    pub(crate) fn spent(&self) -> u64 {
        self.run.books().spent()
    }

    /// The script called `setTimeout()`. None where it cannot have: it has no timers.
    pub(crate) fn set_timer(&self, delay_ms: u32) -> Option<Result<u32, WorkflowError>> {
        let timers = self.timers.as_ref()?;
        Some(self.run.books().check_running().and_then(|()| timers.set(delay_ms, &self.run.time)))
    }

    /// The script called `clearTimeout()`.
    pub(crate) fn clear_timer(&self, timer: u32) {
        if let Some(timers) = &self.timers {
            timers.clear(timer);
        }
    }

    /// The next timer that fires, and the script's time then.
    ///
    /// # Errors
    /// `CANCELLED` when the run is, and none fires any more.
    pub(crate) async fn next_timer(&self) -> Result<(u32, u64), WorkflowError> {
        let next = async {
            match &self.timers {
                Some(timers) => timers.next(&self.run.time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.run.stopped.cancelled() => Err(self.run.books().stop_error()),
            fired = next => Ok(fired),
        }
    }
}

//! Between the guest and the driver: what the script asks goes into the books at once, and wakes the driver.

use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold_types::{ErrorCode, WorkflowError};
use tokio::sync::{Notify, oneshot};
use tokio_util::sync::CancellationToken;

use super::books::{Books, Reply};
use crate::agent_types::AgentTypes;
use crate::options;
use crate::schema::Schemas;
use crate::subagents::{Subagents, Support, define, unsupported};

/// Who waits for the answer to a call.
pub(crate) type Answerer = oneshot::Sender<Result<Reply, WorkflowError>>;

/// Shared by the guest's imports and the driver of one run.
pub(crate) struct Link {
    books: Mutex<Books<Answerer>>,
    provider: Arc<dyn Subagents>,
    /// What the provider claims.
    support: Support,
    schemas: Schemas,
    agent_types: Option<Arc<dyn AgentTypes>>,
    /// Tells the driver that the books have changed.
    pub(super) changed: Notify,
    /// Tells the script's computation that the run is over for it.
    pub(crate) stopped: CancellationToken,
    /// Fuel that the script has used, kept up to date while it runs.
    pub(crate) fuel_used: AtomicU64,
}

impl Link {
    pub(super) fn new(
        books: Books<Answerer>,
        provider: Arc<dyn Subagents>,
        agent_types: Option<Arc<dyn AgentTypes>>,
    ) -> Self {
        Self {
            books: Mutex::new(books),
            support: provider.supports(),
            schemas: Schemas::default(),
            provider,
            agent_types,
            changed: Notify::new(),
            stopped: CancellationToken::new(),
            fuel_used: AtomicU64::new(0),
        }
    }

    /// The books. Nothing is held across an await, and nobody panics while holding them; if somebody did, the
    /// books are still the best there are.
    pub(super) fn books(&self) -> MutexGuard<'_, Books<Answerer>> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The script called `agent()`.
    pub(crate) async fn agent(&self, prompt: String, options: &str) -> Result<Reply, WorkflowError> {
        self.books().admit((prompt.len() + options.len()) as u64)?;
        let mut options = options::parse(options, &self.schemas)?;
        define(&mut options, self.support, self.agent_types.as_deref())?;
        let ignored = unsupported(&options, self.support, &*self.provider)?;
        let (sender, answer) = oneshot::channel();
        {
            let mut books = self.books();
            books.call(prompt, options, sender)?;
            for hint in ignored {
                books.warn(&format!(
                    "agent() option {hint:?} is ignored: this run's provider does not honour it"
                ));
            }
        }
        self.changed.notify_one();
        answer.await.unwrap_or_else(|_| Err(ErrorCode::Cancelled.error("the run has ended")))
    }

    /// The script called `phase()`.
    pub(crate) fn phase(&self, title: &str) -> Result<(), WorkflowError> {
        self.books().phase(title)?;
        self.changed.notify_one();
        Ok(())
    }

    /// The script called `log()`.
    pub(crate) fn log(&self, message: String) -> Result<(), WorkflowError> {
        self.books().log(message)?;
        self.changed.notify_one();
        Ok(())
    }
}

//! What the host holds of a run.

use std::sync::Arc;
use std::time::Duration;

use fanfold_types::{ErrorCode, Meta, RunResult, StopReason};
use tokio::sync::watch;

use super::canceller::Canceller;

/// A run that has started. Dropping it cancels the run.
///
/// ```
/// # async fn example(engine: fanfold::Engine) -> Result<(), fanfold::WorkflowError> {
/// let run = engine.start(fanfold::StartRequest::new("return await agent('hello')")).await?;
/// let result = run.result().await;
/// println!("{:?}: {}", result.stop_reason, result.value);
/// run.dispose().await;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
#[must_use = "dropping a run cancels it"]
pub struct Run {
    id: Arc<str>,
    meta: Arc<Meta>,
    canceller: Canceller,
    result: watch::Receiver<Option<Arc<RunResult>>>,
    grace: Duration,
}

impl Run {
    pub(super) fn new(
        id: Arc<str>,
        meta: Arc<Meta>,
        canceller: Canceller,
        result: watch::Receiver<Option<Arc<RunResult>>>,
        grace: Duration,
    ) -> Self {
        Self { id, meta, canceller, result, grace }
    }

    /// The run's id, unique among all runs.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// What the script says it is.
    pub fn meta(&self) -> &Meta {
        &self.meta
    }

    /// Asks the run to stop. The first reason given is the one reported; after the end nothing changes.
    ///
    /// Every pending and later hook call of the script rejects with `CANCELLED`, and the children are told to
    /// stop. What has not stopped within the grace period is stopped by force. Returns at once; await
    /// [`Run::result`] to see the end.
    pub fn cancel(&self, reason: &str) {
        self.canceller.cancel(reason);
    }

    /// Waits for the end of the run: the script and all its children have stopped. Never fails, and may be
    /// awaited as often as wanted.
    pub async fn result(&self) -> Arc<RunResult> {
        let mut result = self.result.clone();
        // Bound to a name, since the guard must go before `result` does.
        let ended = result.wait_for(Option::is_some).await.ok().and_then(|result| result.clone());
        ended.unwrap_or_else(|| {
            // Its task is gone: the Tokio runtime was shut down.
            let error = ErrorCode::Internal.error("the runtime that drove the run was shut down");
            Arc::new(RunResult::new(StopReason::Error, Some(error)))
        })
    }

    /// Ends the run if it has not ended, and waits until nothing of it is left: no script, no child, and no
    /// event that its observers have not seen. Returns within a few grace periods whatever happens, and may be
    /// called again.
    pub async fn dispose(&self) {
        self.cancel("the run was disposed of");
        let mut result = self.result.clone();
        let gone = async { while result.changed().await.is_ok() {} };
        // Children and observers have a grace period each.
        let _ = tokio::time::timeout(3 * self.grace + Duration::from_secs(1), gone).await;
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.cancel("the run was dropped");
    }
}

//! How long a child goes on: until it is told to stop, or its time is over.

use fanfold::{AgentRequest, CancellationToken};
use tokio::time::Instant;

/// The patience of one child, over all its tries.
#[derive(Clone)]
pub(crate) struct Patience {
    cancel: CancellationToken,
    timeout_ms: u64,
    deadline: Option<Instant>,
}

/// Why a child must not go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// It was told to stop.
    Cancelled,
    /// So many milliseconds are over.
    TimedOut(u64),
}

impl Patience {
    /// The patience with a child that starts now.
    pub(crate) fn new(request: &AgentRequest, cancel: CancellationToken) -> Self {
        let deadline = request.options.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
        Self { cancel, timeout_ms: request.options.timeout_ms.unwrap_or_default(), deadline }
    }

    /// When its time is over, if that is bounded.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Returns once patience is over.
    pub(crate) async fn over(&self) -> Stop {
        let out_of_time = async {
            match self.deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            biased;
            () = self.cancel.cancelled() => Stop::Cancelled,
            () = out_of_time => Stop::TimedOut(self.timeout_ms),
        }
    }

    /// Whether patience is over.
    pub(crate) fn is_over(&self) -> Option<Stop> {
        if self.cancel.is_cancelled() {
            return Some(Stop::Cancelled);
        }
        self.deadline.filter(|deadline| *deadline <= Instant::now()).map(|_| Stop::TimedOut(self.timeout_ms))
    }

    /// Whether patience ends before this moment, if nobody cancels.
    pub(crate) fn ends_before(&self, moment: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline < moment)
    }

    /// The result of the work, unless patience ends first; the work is dropped then.
    pub(crate) async fn with<T, E: From<Stop>>(
        &self,
        work: impl Future<Output = Result<T, E>>,
    ) -> Result<T, E> {
        tokio::select! {
            biased;
            stop = self.over() => Err(stop.into()),
            done = work => done,
        }
    }
}

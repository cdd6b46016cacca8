//! Runs that outlive the call that started them, and results that outlive their answer.
//!
//! - `mod`: [`Runs`], the registry that a host keeps
//! - [`retention`]: how many and how long
//! - [`shelf`]: what is kept, without clock and locks
//! - [`progress`]: what is known of a run while it runs
//! - [`ticket`]: a run's place in the registry

mod progress;
mod retention;
mod shelf;
mod ticket;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use fanfold::{CancellationToken, Run, RunResult};
use tokio_util::task::TaskTracker;

use crate::answer::{RunList, RunState, RunStatus, Stopped};
use crate::error::ToolError;
pub use retention::Retention;
use shelf::Shelf;
pub(crate) use ticket::Ticket;

/// The runs of a host: those that run, and the results that are kept until they are read or their time is over.
///
/// A host makes one, hands it to the tool ([`WorkflowTool::with_runs`](crate::WorkflowTool::with_runs)), and shuts it
/// down at its end. Clones are the same registry; when the last one is dropped, its runs are cancelled.
///
/// What is kept, and for how long, is said by [`Retention`]. Knowing a run's id is the right to read it: ids are
/// random and cannot be guessed.
#[derive(Clone)]
pub struct Runs(Arc<Owner>);

/// Held by the clones alone, not by the runs' tasks.
struct Owner(Arc<Shared>);

impl Drop for Owner {
    fn drop(&mut self) {
        self.0.close("the registry of runs was dropped");
    }
}

struct Shared {
    retention: Retention,
    clock: Clock,
    shelf: Mutex<Shelf>,
    tasks: TaskTracker,
}

/// The time since some fixed moment.
type Clock = Arc<dyn Fn() -> Duration + Send + Sync>;

impl Runs {
    /// A registry that keeps so much for so long.
    pub fn new(retention: Retention) -> Self {
        let start = Instant::now();
        Self::with_clock(retention, move || start.elapsed())
    }

    /// The same with a clock of the host's own: the time since any fixed moment. It must not panic.
    pub fn with_clock(retention: Retention, now: impl Fn() -> Duration + Send + Sync + 'static) -> Self {
        let shelf = Mutex::new(Shelf::default());
        let shared = Shared { retention, clock: Arc::new(now), shelf, tasks: TaskTracker::new() };
        Self(Arc::new(Owner(Arc::new(shared))))
    }

    /// What is kept, and for how long.
    pub fn retention(&self) -> &Retention {
        &self.shared().retention
    }

    /// How many runs are in the registry, running or kept.
    pub fn len(&self) -> usize {
        self.shared().shelf().len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether a run is in the registry, running or kept.
    pub fn contains(&self, run_id: &str) -> bool {
        let shared = self.shared();
        shared.live_shelf(shared.now()).contains(run_id)
    }

    /// Starts no further runs, cancels those that run, and waits until nothing of them is left: no script, no child,
    /// no record that is not written. Returns within the runs' grace periods, and may be called again. Results that
    /// are kept can still be read.
    pub async fn shutdown(&self) {
        let shared = self.shared();
        shared.close("the host is shutting down");
        shared.tasks.close();
        shared.tasks.wait().await;
    }

    fn shared(&self) -> &Arc<Shared> {
        &self.0.0
    }

    /// A place for a run that is about to start.
    ///
    /// # Errors
    /// When there is no room.
    pub(crate) fn admit(&self) -> Result<Ticket, ToolError> {
        let shared = self.shared();
        shared.shelf().admit(shared.now(), &shared.retention)?;
        Ok(Ticket::new(shared.clone()))
    }

    /// Drives a run that no call waits for. Shutting down waits for it.
    pub(crate) fn spawn(&self, run: impl Future<Output = ()> + Send + 'static) {
        self.shared().tasks.spawn(run);
    }

    /// How a run is doing. `agent` is who asks.
    pub(crate) fn status(&self, agent: &str, run_id: &str) -> Result<RunStatus, ToolError> {
        let shared = self.shared();
        let now = shared.now();
        shared.live_shelf(now).get(agent, run_id).map(|entry| entry.status(run_id, now))
    }

    /// Waits until a run has ended, at most this long.
    pub(crate) async fn wait(
        &self,
        agent: &str,
        run_id: &str,
        at_most: Duration,
        cancel: Option<CancellationToken>,
    ) -> Result<(), ToolError> {
        let ended = {
            let shared = self.shared();
            shared.live_shelf(shared.now()).get(agent, run_id)?.ended.clone()
        };
        let cancel = cancel.unwrap_or_default();
        tokio::select! {
            biased;
            () = ended.cancelled() => Ok(()),
            () = cancel.cancelled() => Err(ToolError::CallCancelled { run_id: run_id.to_owned() }),
            () = tokio::time::sleep(at_most) => Ok(()),
        }
    }

    /// The result of a run and the run's name; no result while it runs.
    pub(crate) fn result(
        &self,
        agent: &str,
        run_id: &str,
    ) -> Result<(String, Option<Arc<RunResult>>), ToolError> {
        let shared = self.shared();
        let now = shared.now();
        let mut shelf = shared.live_shelf(now);
        let entry = shelf.get(agent, run_id)?;
        Ok((entry.name().to_owned(), entry.touch(now)))
    }

    /// The latest runs of an agent.
    pub(crate) fn list(&self, agent: &str) -> RunList {
        let shared = self.shared();
        let now = shared.now();
        shared.live_shelf(now).list(agent, now)
    }

    /// Lists a run among those of another agent too.
    pub fn share(&self, run_id: &str, agent: &str) {
        self.shared().shelf().share(run_id, agent);
    }

    /// Notes that a result was read to its end: it may be dropped when its room is needed.
    pub fn mark_read(&self, run_id: &str) {
        self.shared().shelf().mark_read(run_id);
    }

    /// The run itself, to cancel it.
    pub(crate) fn run(&self, agent: &str, run_id: &str) -> Result<Arc<Run>, ToolError> {
        let shared = self.shared();
        shared.live_shelf(shared.now()).get(agent, run_id).map(|entry| entry.run.clone())
    }

    /// What became of a run that was cancelled.
    pub(crate) fn stopped(&self, agent: &str, run_id: &str) -> Result<Stopped, ToolError> {
        let shared = self.shared();
        let mut shelf = shared.live_shelf(shared.now());
        let entry = shelf.get(agent, run_id)?;
        let (name, state) = (entry.name().to_owned(), entry.state());
        if state == RunState::Cancelled {
            // That was all there is to know of it.
            shelf.mark_read(run_id);
        }
        Ok(Stopped { run_id: run_id.to_owned(), name, state })
    }
}

impl Default for Runs {
    fn default() -> Self {
        Self::new(Retention::default())
    }
}

impl fmt::Debug for Runs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { retention, .. } = &**self.shared();
        f.debug_struct("Runs").field("retention", retention).field("len", &self.len()).finish_non_exhaustive()
    }
}

impl Shared {
    fn now(&self) -> Duration {
        (self.clock)()
    }

    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        // Nothing that holds the lock can leave the shelf half-written.
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The shelf without what has expired.
    fn live_shelf(&self, now: Duration) -> MutexGuard<'_, Shelf> {
        let mut shelf = self.shelf();
        shelf.expire(now, &self.retention);
        shelf
    }

    fn close(&self, reason: &str) {
        for run in self.shelf().close() {
            run.cancel(reason);
        }
    }
}

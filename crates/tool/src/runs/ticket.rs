//! A run's place in the registry, from before its start to its end.

use std::sync::{Arc, Mutex, PoisonError};

use fanfold::{Event, Meta, Observer, Run, RunResult};
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::Shared;
use super::progress::Progress;
use super::shelf::Entry;

/// A place in the registry. Dropping it gives the place back, and cancels the run if it runs.
pub(crate) struct Ticket {
    shared: Arc<Shared>,
    progress: Arc<Mutex<Progress>>,
    run: Option<Arc<Run>>,
    kept: bool,
    /// Shutting down waits for it.
    _waited_for: TaskTrackerToken,
}

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        let progress = Arc::new(Mutex::new(Progress::new(shared.now())));
        let token = shared.tasks.token();
        Self { shared, progress, run: None, kept: false, _waited_for: token }
    }

    /// Who must watch the run.
    pub(crate) fn observer(&self) -> impl Observer + use<> {
        Watch { shared: self.shared.clone(), progress: self.progress.clone() }
    }

    /// The run has started, on behalf of this agent.
    pub(crate) fn open(&mut self, agent: &str, run: &Arc<Run>) {
        let entry = Entry::new(agent, run.clone(), self.progress.clone(), self.shared.now());
        self.run = Some(run.clone());
        if !self.shared.shelf().put(entry) {
            run.cancel("the host is shutting down");
        }
    }

    /// The run has ended, and its result is kept.
    pub(crate) fn keep(mut self, result: Arc<RunResult>) {
        if let Some(run) = &self.run {
            self.shared.shelf().end(run.id(), result, self.shared.now());
            self.kept = true;
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        match &self.run {
            None => self.shared.shelf().give_back(),
            Some(run) if !self.kept => {
                run.cancel("the call was dropped");
                self.shared.shelf().take(run.id());
            }
            Some(_) => {}
        }
    }
}

/// Keeps what is known of a run up to date.
struct Watch {
    shared: Arc<Shared>,
    progress: Arc<Mutex<Progress>>,
}

impl Observer for Watch {
    fn event(&self, _meta: &Meta, event: &Event) {
        let now = self.shared.now();
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).take(event, now);
    }
}

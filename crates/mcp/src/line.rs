//! The runs that clients started: what of them is not in the tool's registry.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold_tool::{CallingAgent, Runs};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::outbox::Outbox;

/// A run's line to its client.
pub(crate) struct Line {
    pub(crate) run_id: String,
    pub(crate) outbox: Arc<Outbox>,
    /// What models are to know of its agents.
    pub(crate) notice: Option<String>,
    /// Its agents ask the client's model in the answers of requests that wait for the run.
    pub(crate) asks_in_answers: bool,
    /// When it started, in milliseconds since 1970.
    pub(crate) started_at: i64,
    /// Speaks for the run, where the protocol has sessions.
    clerk: Mutex<Option<JoinHandle<()>>>,
}

impl Line {
    pub(crate) fn new(
        run_id: String,
        outbox: Arc<Outbox>,
        notice: Option<String>,
        asks_in_answers: bool,
        clerk: Option<JoinHandle<()>>,
    ) -> Self {
        let started_at = chrono::Utc::now().timestamp_millis();
        Self { run_id, outbox, notice, asks_in_answers, started_at, clerk: Mutex::new(clerk) }
    }

    /// Waits until the clerk of a run that is over has said all there was to say.
    pub(crate) async fn said(&self) {
        let clerk = self.clerk.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(clerk) = clerk {
            // One that panicked says no more either.
            let _ = clerk.await;
        }
    }
}

/// The lines of the runs in the tool's registry, by run id.
#[derive(Default)]
pub(crate) struct Lines(Mutex<HashMap<String, Arc<Line>>>);

impl Lines {
    /// Keeps a line, and drops those of runs that the registry has dropped: how much is kept, and how long, is said
    /// there alone.
    pub(crate) fn add(&self, line: Line, runs: Option<&Runs>) -> Arc<Line> {
        let line = Arc::new(line);
        let mut lines = self.lock();
        lines.retain(|run_id, _| runs.is_some_and(|runs| runs.contains(run_id)));
        lines.insert(line.run_id.clone(), line.clone());
        line
    }

    pub(crate) fn get(&self, run_id: &str) -> Option<Arc<Line>> {
        self.lock().get(run_id).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Arc<Line>>> {
        // Nothing that holds the lock can leave the map half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whoever makes one call. Its id is how the sampling provider knows the run's client.
pub(crate) struct Caller(String);

impl Caller {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self(format!("mcp-{}", Uuid::new_v4())))
    }
}

impl CallingAgent for Caller {
    fn id(&self) -> &str {
        &self.0
    }
}

//! The runs that clients started: what of them is not in the tool's registry.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};

use fanfold_tool::CallingAgent;
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::outbox::Outbox;

/// How many runs are remembered; more than the tool's registry keeps.
const MAX_LINES: usize = 1024;

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

/// The lines of all runs, by run id.
#[derive(Default)]
pub(crate) struct Lines(Mutex<Register>);

#[derive(Default)]
struct Register {
    lines: HashMap<String, Arc<Line>>,
    order: VecDeque<String>,
}

impl Lines {
    pub(crate) fn add(&self, line: Line) -> Arc<Line> {
        let line = Arc::new(line);
        let mut register = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        register.order.push_back(line.run_id.clone());
        register.lines.insert(line.run_id.clone(), line.clone());
        if register.order.len() > MAX_LINES {
            let oldest = register.order.pop_front();
            oldest.and_then(|oldest| register.lines.remove(&oldest));
        }
        line
    }

    pub(crate) fn get(&self, run_id: &str) -> Option<Arc<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).lines.get(run_id).cloned()
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

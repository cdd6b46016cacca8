//! Writes a run's records into the calling agent's session.
//!
//! It observes: whatever the session does, the run goes on, and what was written is nothing or a legal prefix.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::Duration;

use fanfold::{CancellationToken, EventKind, EventStream, SessionRecord, StopReason};
use futures::{FutureExt as _, StreamExt as _};
use tokio::time::timeout;

use crate::agent::CallingAgent;

/// How long a session may take for one record.
const PATIENCE: Duration = Duration::from_secs(5);

pub(crate) struct Recorder {
    agent: Arc<dyn CallingAgent>,
    events: EventStream,
    /// Set by the first append that failed, which was the last one.
    stopped: bool,
}

impl Recorder {
    /// Will record the run that these are the events of.
    pub(crate) fn new(agent: Arc<dyn CallingAgent>, events: EventStream) -> Self {
        Self { agent, events, stopped: false }
    }

    /// Records all but the end of the run. `disposed` tells that the run will bring no further events.
    pub(crate) async fn follow(&mut self, disposed: &CancellationToken) {
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.next() => event,
                () = disposed.cancelled() => None,
            };
            let Some(event) = event else {
                return self.stop("another observer of the run held its events up");
            };
            if let EventKind::End { .. } = event.kind {
                return;
            }
            if let Some(record) = SessionRecord::of_event(&event) {
                self.append(record).await;
            }
        }
    }

    /// Records the end of the run, of which nothing is left.
    pub(crate) async fn end(mut self, run_id: &str, stop_reason: StopReason) {
        self.append(SessionRecord::RunEnd { run_id: run_id.to_owned(), stop_reason }).await;
    }

    async fn append(&mut self, record: SessionRecord) {
        if self.stopped {
            return;
        }
        let agent = self.agent.clone();
        let append = async move {
            match agent.session() {
                Some(session) => session.append(record).await.map_err(|error| error.to_string()),
                None => Ok(()),
            }
        };
        let why = match AssertUnwindSafe(timeout(PATIENCE, append)).catch_unwind().await {
            Ok(Ok(Ok(()))) => return,
            Ok(Ok(Err(error))) => error,
            Ok(Err(_)) => format!("the session took longer than {} s", PATIENCE.as_secs()),
            Err(_) => "the session panicked".to_owned(),
        };
        self.stop(&why);
    }

    fn stop(&mut self, why: &str) {
        self.stopped = true;
        let warning = format!("the session keeps no further records of this workflow run: {why}");
        // A panic is the agent's own affair; the panic hook has told of it.
        let _ = catch_unwind(AssertUnwindSafe(|| self.agent.warning(&warning)));
    }
}

//! `--json`: a run as one JSON object a line.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result};
use fanfold::{CancellationToken, Event, EventKind, Meta, Observer, ResultLine, RunResult, WorkflowError};
use serde::Serialize;
use serde_json::Value;

use crate::provider::Requests;

/// Prints each event as it comes.
pub(crate) struct EventLines {
    /// What each agent was asked, where the lines are to say it.
    pub(crate) requests: Option<Arc<Requests>>,
    /// Fires when the last event has been printed.
    pub(crate) printed: CancellationToken,
    /// Why one could not be printed.
    pub(crate) failure: Arc<OnceLock<io::Error>>,
    /// Fires when one could not be printed, be it that nobody reads them any more.
    pub(crate) failed: CancellationToken,
}

impl Observer for EventLines {
    fn event(&self, _meta: &Meta, event: &Event) {
        let request = match (&self.requests, &event.kind) {
            (Some(requests), EventKind::AgentStart { agent }) => requests.take(agent.seq),
            _ => None,
        };
        if let Err(error) = write(&EventLine { event, request }) {
            // A reader that has gone is no failure, but nobody is there to spend anything for.
            if error.kind() != io::ErrorKind::BrokenPipe {
                let _ = self.failure.set(error);
            }
            self.failed.cancel();
        }
        if matches!(event.kind, EventKind::End { .. }) {
            self.printed.cancel();
        }
    }
}

#[derive(Serialize)]
struct EventLine<'a> {
    #[serde(flatten)]
    event: &'a Event,
    #[serde(skip_serializing_if = "Option::is_none")]
    request: Option<Value>,
}

/// Prints the end of a run: the last line, always.
pub(crate) fn finished(id: &str, name: &str, result: &RunResult, max_result_chars: usize) -> Result<()> {
    print(&ResultLine::new(id, name, result, max_result_chars))
}

/// Prints why a run could not start.
pub(crate) fn refused(error: &WorkflowError) -> Result<()> {
    print(&ResultLine::refused(error))
}

/// Prints an object on a line of its own.
pub(crate) fn print(line: &impl Serialize) -> Result<()> {
    match write(line) {
        // Whoever read the lines has gone.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => written.context("failed to print the result"),
    }
}

fn write(line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    io::stdout().write_all(&text)
}

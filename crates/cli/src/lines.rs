//! `--json`: a run as one JSON object a line.

use std::io::{self, Write as _};
use std::sync::{Arc, OnceLock};

use anyhow::{Context as _, Result};
use fanfold::{
    AgentFailure, CancellationToken, Event, EventKind, Meta, Observer, RunResult, StopReason, Usage,
    WorkflowError, Worktree, text,
};
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;

use crate::provider::Requests;

/// Prints each event as it comes.
pub(crate) struct EventLines {
    /// What each agent was asked, where the lines are to say it.
    pub(crate) requests: Option<Arc<Requests>>,
    /// Fires when the last event has been printed.
    pub(crate) printed: CancellationToken,
    /// Why one could not be printed.
    pub(crate) failure: Arc<OnceLock<io::Error>>,
}

impl Observer for EventLines {
    fn event(&self, _meta: &Meta, event: &Event) {
        let request = match (&self.requests, &event.kind) {
            (Some(requests), EventKind::AgentStart { agent }) => requests.take(agent.seq),
            _ => None,
        };
        if let Err(error) = write(&EventLine { event, request }) {
            let _ = self.failure.set(error);
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

/// The last line, always.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ResultLine<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    stop_reason: StopReason,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'a WorkflowError>,
    agents_started: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    usage: Option<Usage>,
    failures: &'a [AgentFailure],
    #[serde(skip_serializing_if = "<[Worktree]>::is_empty")]
    worktrees: &'a [Worktree],
    #[serde(skip_serializing_if = "Option::is_none")]
    never_awaited: Option<u32>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    warnings: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    fuel_used: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    start_time_ms: Option<u64>,
    text: String,
}

/// Prints the end of a run.
pub(crate) fn finished(id: &str, name: &str, result: &RunResult, max_result_chars: usize) -> Result<()> {
    print(&ResultLine {
        kind: "result",
        id: Some(id),
        stop_reason: result.stop_reason,
        value: (result.stop_reason == StopReason::Completed).then_some(&*result.value),
        error: result.error.as_ref(),
        agents_started: result.agents_started,
        usage: result.usage,
        failures: &result.failures,
        worktrees: &result.worktrees,
        never_awaited: (result.never_awaited > 0).then_some(result.never_awaited),
        warnings: &result.warnings,
        fuel_used: Some(result.fuel_used),
        seed: Some(result.seed),
        start_time_ms: Some(result.start_time_ms),
        text: text::render(name, result, max_result_chars),
    })
}

/// Prints why a run could not start.
pub(crate) fn refused(error: &WorkflowError) -> Result<()> {
    print(&ResultLine {
        kind: "result",
        id: None,
        stop_reason: StopReason::Error,
        value: None,
        error: Some(error),
        agents_started: 0,
        usage: None,
        failures: &[],
        worktrees: &[],
        never_awaited: None,
        warnings: &[],
        fuel_used: None,
        seed: None,
        start_time_ms: None,
        text: format!("Error: {error}"),
    })
}

/// Prints an object on a line of its own.
pub(crate) fn print(line: &impl Serialize) -> Result<()> {
    write(line).context("failed to print the result")
}

fn write(line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    match io::stdout().write_all(&text) {
        // Whoever read the lines may have gone; the run does not depend on it.
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
        _ => Ok(()),
    }
}

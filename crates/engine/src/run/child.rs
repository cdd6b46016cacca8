//! The task of one child: starts it, waits for it, checks what it answers, and reports each step.

use std::any::Any;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use fanfold_types::{ErrorCode, WorkflowError};
use futures::FutureExt as _;
use tokio::sync::{OwnedSemaphorePermit, mpsc};
use tokio_util::sync::CancellationToken;

use super::books::{ChildEnd, Reply};
use crate::schema::Validator;
use crate::subagents::{AgentRequest, Answer, ChildError, Subagents};

/// What a child's task tells the driver.
#[derive(Debug)]
pub(super) enum Report {
    Started { seq: u32, child_id: String },
    StartFailed { seq: u32, error: WorkflowError },
    Ended { seq: u32, end: ChildEnd },
}

/// Runs one child. The slot is free again when this is done or dropped. Every path reports an end.
pub(super) async fn run(
    provider: Arc<dyn Subagents>,
    request: AgentRequest,
    cancel: CancellationToken,
    slot: OwnedSemaphorePermit,
    reports: mpsc::UnboundedSender<Report>,
) {
    let seq = request.seq;
    let schema = request.options.schema.clone();
    // Nobody hears what a child of a finished run reports.
    let report = |report| drop(reports.send(report));

    let start = AssertUnwindSafe(async { provider.start(request, cancel).await });
    let child = match start.catch_unwind().await {
        Ok(Ok(child)) if !child.id.is_empty() => child,
        Ok(Ok(_)) => {
            let error = ErrorCode::AgentStart.error(format!("the provider gave agent {seq} an empty id"));
            return report(Report::StartFailed { seq, error });
        }
        Ok(Err(error)) => {
            let error = ErrorCode::AgentStart.error(format!("agent {seq} could not start: {error}"));
            return report(Report::StartFailed { seq, error });
        }
        Err(panic) => {
            let error = format!("agent {seq} could not start: the provider panicked: {}", said(&*panic));
            return report(Report::StartFailed { seq, error: ErrorCode::AgentStart.error(error) });
        }
    };
    report(Report::Started { seq, child_id: child.id });
    let end = match AssertUnwindSafe(child.result).catch_unwind().await {
        Ok(Ok(answer)) => check(answer, schema.as_ref()),
        Ok(Err(ChildError::Failed(reason))) => ChildEnd::Failed(reason),
        Ok(Err(ChildError::Cancelled)) => ChildEnd::Cancelled,
        Ok(Err(ChildError::Broken(reason))) => ChildEnd::Broken(reason),
        Err(panic) => ChildEnd::Broken(format!("the provider panicked: {}", said(&*panic))),
    };
    drop(slot);
    report(Report::Ended { seq, end });
}

/// A child that was asked for a value must give one that satisfies the schema, whatever the provider claims.
fn check(answer: Answer, schema: Option<&serde_json::Value>) -> ChildEnd {
    let Some(schema) = schema else { return ChildEnd::Completed(text_or_value(answer)) };
    let Some(value) = answer.structured else {
        return ChildEnd::Failed("the child gave no structured value, and the call has a schema".into());
    };
    let violations = match Validator::new(schema) {
        Ok(validator) => validator.violations(&value),
        Err(error) => return ChildEnd::Broken(error.to_string()),
    };
    if violations.is_empty() {
        ChildEnd::Completed(Reply::Json(value.to_string()))
    } else {
        ChildEnd::Failed(format!("the child's value does not satisfy the schema: {}", violations.join("; ")))
    }
}

/// Without a schema a child's text counts; one that gave only a value is shown as that value's JSON.
fn text_or_value(answer: Answer) -> Reply {
    match answer.structured {
        Some(value) if answer.text.is_empty() => Reply::Text(value.to_string()),
        _ => Reply::Text(answer.text),
    }
}

/// What a panic said.
fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("no message")
}

//! The steps of one child: it starts, it ends. What a provider does on the way, panics included, becomes one of
//! the ends that the books know.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use fanfold_types::{Usage, Worktree};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::sync::OwnedSemaphorePermit;
use tokio_util::sync::CancellationToken;

use super::books::{ChildEnd, Reply};
use crate::schema::Schema;
use crate::subagents::{AgentRequest, Answer, Child, ChildError, StartError, Subagents};

/// What a child has done.
pub(super) enum Step {
    /// It runs. [`Started::end`] gives its other step.
    Started(Started),
    StartFailed {
        seq: u32,
        reason: String,
    },
    Ended {
        seq: u32,
        end: ChildEnd,
        usage: Option<Usage>,
        /// The worktree that it leaves behind.
        left: Option<Worktree>,
    },
}

/// A child that runs.
pub(super) struct Started {
    pub(super) seq: u32,
    child: Child,
    schema: Option<Arc<Schema>>,
    slot: OwnedSemaphorePermit,
}

/// Starts a child: the provider is called now, the future is its first step. The slot is free again when the
/// child has ended or is dropped.
pub(super) fn start(
    provider: &dyn Subagents,
    request: AgentRequest,
    cancel: CancellationToken,
    slot: OwnedSemaphorePermit,
) -> BoxFuture<'static, Step> {
    let seq = request.seq;
    let schema = request.options.validator.clone();
    let starting = catch_unwind(AssertUnwindSafe(|| provider.start(request, cancel)));
    Box::pin(async move {
        let started = match starting {
            Ok(starting) => AssertUnwindSafe(starting).catch_unwind().await,
            Err(panic) => Err(panic),
        };
        let reason = match started {
            Ok(Ok(child)) if !child.id.is_empty() => {
                return Step::Started(Started { seq, child, schema, slot });
            }
            Ok(Ok(_)) => "the provider gave it an empty id".to_owned(),
            Ok(Err(StartError(reason))) => reason,
            Err(panic) => format!("the provider panicked: {}", said(&*panic)),
        };
        Step::StartFailed { seq, reason }
    })
}

impl Started {
    pub(super) fn id(&self) -> &str {
        &self.child.id
    }

    /// The child's last step.
    pub(super) fn end(self) -> BoxFuture<'static, Step> {
        let Self { seq, child, schema, slot } = self;
        let left = child.left.clone();
        Box::pin(async move {
            let meter = child.meter;
            let end = match AssertUnwindSafe(child.result).catch_unwind().await {
                Ok(Ok(answer)) => check(answer, schema).await,
                Ok(Err(ChildError::Failed(reason))) => ChildEnd::Failed(reason),
                Ok(Err(ChildError::Cancelled)) => ChildEnd::Cancelled,
                Ok(Err(ChildError::Broken(reason))) => ChildEnd::Broken(reason),
                Ok(Err(ChildError::Fatal(reason))) => ChildEnd::Fatal(reason),
                Err(panic) => ChildEnd::Broken(format!("the provider panicked: {}", said(&*panic))),
            };
            drop(slot);
            Step::Ended { seq, end, usage: meter.total(), left: left.get().cloned() }
        })
    }
}

/// A child that was asked for a value must give one that satisfies the schema, whatever the provider claims.
async fn check(answer: Answer, schema: Option<Arc<Schema>>) -> ChildEnd {
    let Some(schema) = schema else { return ChildEnd::Completed(text_or_value(answer)) };
    let Some(value) = answer.structured else {
        return ChildEnd::Failed("the child gave no structured value, and the call has a schema".into());
    };
    let quick = schema.is_quick(&value);
    let check = move || {
        let violations = schema.violations(&value);
        if violations.is_empty() {
            ChildEnd::Completed(Reply::Json(value.to_string()))
        } else {
            let violations = violations.join("; ");
            ChildEnd::Failed(format!("the child's value does not satisfy the schema: {violations}").into())
        }
    };
    if quick {
        return check();
    }
    tokio::task::spawn_blocking(check).await.unwrap_or_else(|error| {
        ChildEnd::Broken(format!("the child's value could not be checked against the schema: {error}"))
    })
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

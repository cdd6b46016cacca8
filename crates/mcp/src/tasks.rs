//! Runs as the protocol's tasks, for clients that know those: a task's id is its run's id.
//!
//! The tool's registry is the one place where runs are kept, so that the background tools see tasks, and the other way
//! round.

use fanfold_tool::{RunState, RunStatus, ToolError, ToolKind};
use rmcp::ErrorData;
use rmcp::model::{
    CallToolResult, CreateTaskResult, DetailedTask, GetTaskResult, JsonObject, Task, TaskPayload, TaskStatus,
    UpdateTaskParams,
};
use serde_json::{Value, json};

use crate::answer;
use crate::line::Line;
use crate::session::{Session, questions, take_answers};

/// How often a client should ask.
const POLL_MS: u64 = 1000;

/// A run becomes a task.
pub(crate) async fn create(session: &Session, line: &Line) -> Result<CreateTaskResult, ToolError> {
    let status = status(session, &line.run_id).await?;
    Ok(CreateTaskResult::new(task(session, line, &status)))
}

/// How a task is doing, with its result once there is one.
pub(crate) async fn get(session: &Session, task_id: &str) -> Result<GetTaskResult, ErrorData> {
    let line = session.shared().lines.get(task_id).ok_or_else(|| unknown(task_id))?;
    let status = status(session, task_id).await.map_err(|_| unknown(task_id))?;
    let payload = match status.state {
        RunState::Running => match questions(&line) {
            none if none.is_empty() => TaskPayload::Working,
            input_requests => TaskPayload::InputRequired { input_requests },
        },
        RunState::Cancelled => TaskPayload::Cancelled,
        // A tool that says what went wrong has done its work.
        RunState::Completed | RunState::Error => {
            TaskPayload::Completed { result: result(session, &line).await }
        }
    };
    Ok(GetTaskResult::new(DetailedTask::new(task(session, &line, &status), payload)))
}

/// Hands a client's answers in.
pub(crate) fn update(session: &Session, request: UpdateTaskParams) -> Result<(), ErrorData> {
    let UpdateTaskParams { task_id, input_responses, .. } = request;
    let line = session.shared().lines.get(&task_id).ok_or_else(|| unknown(&task_id))?;
    take_answers(&line, input_responses);
    Ok(())
}

/// Cancels a task; when this returns it has stopped.
pub(crate) async fn cancel(session: &Session, task_id: String) -> Result<(), ErrorData> {
    session.stop(&task_id).await.map(drop).map_err(|_| unknown(&task_id))
}

async fn status(session: &Session, run_id: &str) -> Result<RunStatus, ToolError> {
    let status = session.shared().tool.status(&json!({"runId": run_id}), session.call()).await?;
    Ok(status.value)
}

fn task(session: &Session, line: &Line, status: &RunStatus) -> Task {
    let elapsed =
        i64::try_from(status.elapsed_ms.saturating_sub(status.last_event_age_ms)).unwrap_or(i64::MAX);
    let created_at = line.started_at;
    let task = Task::new(
        &line.run_id,
        // Corrected by whoever knows better.
        TaskStatus::Working,
        timestamp(created_at),
        timestamp(created_at.saturating_add(elapsed)),
    )
    .with_poll_interval_ms(POLL_MS)
    .with_status_message(line.outbox.progress().text());
    match (status.state, session.shared().tool.runs()) {
        // A result's time begins at the end of its run, which is not known yet.
        (RunState::Running, _) | (_, None) => task,
        (_, Some(runs)) => task.with_ttl_ms(status.elapsed_ms.saturating_add(runs.retention().keep_ms)),
    }
}

/// What the call would have been answered.
async fn result(session: &Session, line: &Line) -> JsonObject {
    let shared = session.shared();
    let page = shared.tool.result(&json!({"runId": line.run_id}), session.call()).await;
    let result: CallToolResult = match page {
        Ok(page) => answer::completed(page, line, shared.tools.name(ToolKind::Result), false),
        Err(error) => answer::error(&error),
    };
    line.read();
    match serde_json::to_value(result) {
        Ok(Value::Object(result)) => result,
        _ => JsonObject::new(),
    }
}

fn timestamp(ms: i64) -> String {
    chrono::DateTime::from_timestamp_millis(ms).unwrap_or_default().to_rfc3339()
}

fn unknown(task_id: &str) -> ErrorData {
    ErrorData::invalid_params(format!("there is no task {task_id:?}, or no longer"), None)
}

//! What comes of a call, as MCP clients are told it.

use std::fmt::Write as _;

use fanfold::text;
use fanfold_tool::{Answer, ResultPage, RunState, Started, ToolError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::line::Line;
use crate::tools::WorkflowValue;

/// An answer of the background tools.
pub(crate) fn plain(answer: Answer) -> CallToolResult {
    result(answer.text, answer.value)
}

/// A failure that a model can read.
pub(crate) fn error(error: &ToolError) -> CallToolResult {
    CallToolResult::error(vec![ContentBlock::text(error.text())])
}

/// A run that has started in the background. `reader` is the tool that waits for it.
pub(crate) fn started(answer: Answer<Started>, line: &Line, reader: &str) -> CallToolResult {
    let mut result = result(answer.text, json(&answer.value));
    if line.asks_in_answers {
        let hint = format!("Its agents are answered by this client's model, while you wait with {reader}.");
        result.content.push(ContentBlock::text(hint));
    }
    noticed(result, line, true)
}

/// The answer of a call that waited for its run to complete: the first page of the value, which is all of it unless it
/// is too long. `reader` is the tool that reads the rest.
pub(crate) fn completed(answer: Answer<ResultPage>, line: &Line, reader: &str) -> CallToolResult {
    let Answer { value: page, mut text, .. } = answer;
    let ResultPage { run_id, name, agents_started, failures, page: json, total, next_offset, .. } = page;
    let json = json.unwrap_or_default();
    if let (Some(next), Some(total)) = (next_offset, total) {
        text = text::completed(&name, agents_started.unwrap_or_default());
        let omitted = total.saturating_sub(next);
        // Writing to a string cannot fail.
        let _ = write!(
            text,
            "\nReturn value:\n{json}\n… [truncated: {omitted} more characters]\n\
             Run {run_id}. Read the rest: {reader} {{\"runId\": \"{run_id}\", \"offset\": {next}}}"
        );
    }
    let value = WorkflowValue {
        run_id,
        state: RunState::Completed,
        agents_started,
        // A page that is the whole is JSON.
        result: if next_offset.is_none() { serde_json::from_str(&json).ok() } else { None },
        next_offset,
        failures,
        notice: None,
    };
    noticed(result(text, self::json(&value)), line, agents_started.unwrap_or_default() > 0)
}

/// A page that was asked for.
pub(crate) fn page(answer: Answer<ResultPage>, line: &Line) -> CallToolResult {
    let agents = answer.value.agents_started.unwrap_or_default() > 0;
    noticed(result(answer.text, json(&answer.value)), line, agents)
}

/// The answer of a call that could not wait any longer.
pub(crate) fn running(line: &Line, tool: &str) -> CallToolResult {
    let run_id = &line.run_id;
    let text = format!(
        "The workflow is still running: run {run_id}. It goes on by itself. Wait for its value with {tool}_result \
         {{\"runId\": \"{run_id}\", \"waitMs\": 30000}}, again until it has completed; {tool}_status tells how it is \
         doing, {tool}_cancel stops it."
    );
    let value = WorkflowValue {
        run_id: run_id.clone(),
        state: RunState::Running,
        agents_started: None,
        result: None,
        next_offset: None,
        failures: Vec::new(),
        notice: None,
    };
    noticed(result(text, json(&value)), line, true)
}

fn result(text: String, value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}

/// Adds what must be known of the agents, if any had a part in it.
fn noticed(mut result: CallToolResult, line: &Line, agents: bool) -> CallToolResult {
    if let (Some(notice), true) = (&line.notice, agents) {
        result.content.push(ContentBlock::text(format!("Note: {notice}.")));
        if let Some(Value::Object(value)) = &mut result.structured_content {
            value.insert("notice".into(), json!(notice));
        }
    }
    result
}

fn json(value: &impl Serialize) -> Value {
    // Types with string keys and finite numbers alone: they have a JSON form.
    serde_json::to_value(value).unwrap_or_default()
}

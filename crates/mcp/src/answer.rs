//! What comes of a call, as MCP clients are told it.
//!
//! Some clients show their model the text alone, others `structuredContent` alone. So each of the two says all that a
//! model needs: the value or the way to the rest of it, the run's id, what failed and why.

use fanfold::{WorkflowError, text};
use fanfold_tool::{Answer, FailedAgents, ResultPage, RunState, ToolError};
use rmcp::model::{CallToolResult, ContentBlock};
use serde::Serialize;
use serde_json::{Value, json};

use crate::line::Line;
use crate::tools::{Failure, WorkflowValue};

/// What is told of a run that another call had started.
const JOINED: &str = "an equal call had started this run and its result had not been read, so no other run was \
                      started; change the args to run it once more at the same time";

/// An answer of the background tools.
pub(crate) fn plain(answer: Answer) -> CallToolResult {
    result(answer.text, answer.value)
}

/// A failure that a model can read.
pub(crate) fn error(error: &ToolError) -> CallToolResult {
    let mut blocks = vec![ContentBlock::text(error.text())];
    let mut failed = FailedAgents::default();
    let mut agents_started = None;
    let mut state = RunState::Error;
    if let ToolError::Run { result, .. } = error {
        (failed, agents_started) = (FailedAgents::of(result), Some(result.agents_started));
        state = result.stop_reason.into();
        // A result that contradicts itself is an error.
        if state == RunState::Completed {
            state = RunState::Error;
        }
    }
    blocks.extend(failures(&failed));
    if let Some(run_id) = error.run_id() {
        blocks.push(ContentBlock::text(format!("Run {run_id}.")));
    }
    let failure = Failure {
        run_id: error.run_id().map(str::to_owned),
        state,
        error: match error.error() {
            Some(error) => error.clone(),
            None => WorkflowError::thrown(error.to_string()),
        },
        agents_started,
        failures: failed.failures,
        more_failures: failed.more,
    };
    let mut result = CallToolResult::error(blocks);
    result.structured_content = Some(self::json(&failure));
    result
}

/// The failure of a run that a call waited for.
pub(crate) fn failed(failure: &ToolError, line: &Line, joined: bool) -> CallToolResult {
    Notices::of(line, false, joined).added_to(error(failure))
}

/// A run that has started in the background. `reader` is the tool that waits for it.
pub(crate) fn started(line: &Line, reader: &str, joined: bool) -> CallToolResult {
    let Answer { value, text, .. } = line.started.clone();
    let mut notices = Notices::of(line, true, joined);
    if line.asks_in_answers() {
        notices.add(format!("its agents are answered by this client's model, while you wait with {reader}"));
    }
    notices.added_to(result(text, json(&value)))
}

/// The answer of a call that waited for its run to complete: the first page of the value, which is all of it unless it
/// is too long. `reader` is the tool that reads the rest.
pub(crate) fn completed(
    answer: Answer<ResultPage>,
    line: &Line,
    reader: &str,
    joined: bool,
) -> CallToolResult {
    let Answer { value: page, mut text, .. } = answer;
    let failed = page.failed_agents();
    let ResultPage {
        run_id,
        name,
        agents_started,
        failures,
        more_failures,
        page: json,
        total,
        next_offset,
        ..
    } = page;
    let json = json.unwrap_or_default();
    if let (Some(next), Some(total)) = (next_offset, total) {
        let completed = text::completed(&name, agents_started.unwrap_or_default());
        let omitted = total.saturating_sub(next);
        text = format!(
            "{completed}\nReturn value:\n{json}\n… [truncated: {omitted} more characters]\n\
             Run {run_id}. Read the rest: {reader} {{\"runId\": \"{run_id}\", \"offset\": {next}}}"
        );
    }
    // A page that is the whole is JSON.
    let whole = if next_offset.is_none() { serde_json::from_str(&json).ok() } else { None };
    let value = WorkflowValue {
        agents_started,
        page: if whole.is_none() { Some(json) } else { None },
        total: total.filter(|_| whole.is_none()),
        result: whole,
        next_offset,
        failures,
        more_failures,
        ..WorkflowValue::new(run_id, RunState::Completed)
    };
    let notices = Notices::of(line, agents_started.unwrap_or_default() > 0, joined);
    let mut result = result(text, self::json(&value));
    result.content.extend(self::failures(&failed));
    notices.added_to(result)
}

/// A page that was asked for.
pub(crate) fn page(answer: Answer<ResultPage>, line: &Line) -> CallToolResult {
    let agents = answer.value.agents_started.unwrap_or_default() > 0;
    let mut result = result(answer.text, json(&answer.value));
    result.content.extend(failures(&answer.value.failed_agents()));
    Notices::of(line, agents, false).added_to(result)
}

/// The answer of a call that could not wait any longer.
pub(crate) fn running(line: &Line, tool: &str, joined: bool) -> CallToolResult {
    let run_id = &line.run_id;
    let text = format!(
        "The workflow is still running: run {run_id}. It goes on by itself. Wait for its value with {tool}_result \
         {{\"runId\": \"{run_id}\", \"waitMs\": 30000}}, again until it has completed; {tool}_status tells how it is \
         doing, {tool}_cancel stops it."
    );
    let value = WorkflowValue::new(run_id.clone(), RunState::Running);
    Notices::of(line, true, joined).added_to(result(text, json(&value)))
}

/// The failed agents as text, if there are any.
fn failures(failed: &FailedAgents) -> Option<ContentBlock> {
    let agents = match failed.count() {
        0 => return None,
        1 => "1 agent".to_owned(),
        count => format!("{count} agents"),
    };
    Some(ContentBlock::text(format!("{agents} failed:{}", failed.lines())))
}

fn result(text: String, value: Value) -> CallToolResult {
    let mut result = CallToolResult::success(vec![ContentBlock::text(text)]);
    result.structured_content = Some(value);
    result
}

/// What must be known besides, in both halves of an answer.
struct Notices(Vec<String>);

impl Notices {
    /// Those of a run; `agents` have had a part in it.
    fn of(line: &Line, agents: bool, joined: bool) -> Self {
        let notice = line.notice.clone().filter(|_| agents);
        Self(notice.into_iter().chain(joined.then(|| JOINED.to_owned())).collect())
    }

    fn add(&mut self, notice: String) {
        self.0.push(notice);
    }

    fn added_to(self, mut result: CallToolResult) -> CallToolResult {
        for notice in &self.0 {
            result.content.push(ContentBlock::text(format!("Note: {notice}.")));
        }
        if let (Some(Value::Object(value)), false) = (&mut result.structured_content, self.0.is_empty()) {
            value.insert("notice".into(), json!(self.0.join(". ")));
        }
        result
    }
}

fn json(value: &impl Serialize) -> Value {
    // Types with string keys and finite numbers alone: they have a JSON form.
    serde_json::to_value(value).unwrap_or_default()
}

//! An agent loop that has the workflow tools: what a host does with them, from the system prompt to the last answer.
//!
//! The model is a script of its own, so that this runs offline: `cargo run -p fanfold-tool --example agent_loop`. A
//! real loop sends the same definitions and messages to a model API and gets the same calls back.

use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

use fanfold::{CancellationToken, Engine, SessionRecord};
use fanfold_agents::Scripted;
use fanfold_tool::{
    AppendError, Call, CallingAgent, Definition, Notice, Runs, Session, ToolConfig, WorkflowTool,
};
use futures::future::BoxFuture;
use serde_json::{Value, json};
use tokio::sync::mpsc;

/// What is said in a conversation.
#[derive(Clone, Debug)]
enum Message {
    System(String),
    User(String),
    /// The model's last word.
    Assistant(String),
    ToolCall {
        name: String,
        arguments: Value,
    },
    ToolResult {
        text: String,
        is_error: bool,
    },
}

/// A model: it is told the tools and the conversation so far, and says what comes next.
trait Model {
    fn next(&mut self, tools: &[Definition], conversation: &[Message]) -> Message;
}

/// The agent as the tools see it: it has an id, a session, and can be told when a run has ended.
struct Assistant {
    session: Mutex<Vec<SessionRecord>>,
    notices: mpsc::UnboundedSender<Notice>,
}

impl CallingAgent for Assistant {
    fn id(&self) -> &str {
        "assistant"
    }

    fn session(&self) -> Option<&dyn Session> {
        Some(self)
    }

    fn run_ended(&self, notice: &Notice) {
        // A loop that has ended is not interested.
        let _ = self.notices.send(notice.clone());
    }
}

impl Session for Assistant {
    fn append(&self, record: SessionRecord) -> BoxFuture<'_, Result<(), AppendError>> {
        Box::pin(async move {
            // A real session is a file or a database: this is where it is written.
            self.session.lock().unwrap_or_else(PoisonError::into_inner).push(record);
            Ok(())
        })
    }
}

/// Lets the model talk and call tools until it has said its last word.
async fn converse(
    model: &mut impl Model,
    tool: &WorkflowTool,
    task: &str,
    cancel: CancellationToken,
) -> Result<Vec<Message>, Box<dyn Error>> {
    let (notices, mut ended) = mpsc::unbounded_channel();
    let assistant = Arc::new(Assistant { session: Mutex::default(), notices });
    let tools = tool.definitions();
    let system = format!("You are a helpful assistant.\n\n{}", tool.guidance().text);
    let mut conversation = vec![Message::System(system), Message::User(task.to_owned())];
    loop {
        // What has ended in the background meanwhile is told before the model goes on.
        while let Ok(notice) = ended.try_recv() {
            conversation.push(Message::User(format!("[{}]", notice.text)));
        }
        let said = model.next(&tools, &conversation);
        conversation.push(said.clone());
        let Message::ToolCall { name, arguments } = said else { return Ok(conversation) };
        let call = Call::by(assistant.clone()).cancel_with(cancel.clone());
        conversation.push(match tool.call(&name, &arguments, call).await {
            Ok(answer) => Message::ToolResult { text: answer.text, is_error: false },
            Err(error) => Message::ToolResult { text: error.text(), is_error: true },
        });
    }
}

/// A model that makes a mistake, mends it, and lets a second workflow run in the background.
struct Rehearsed {
    step: usize,
}

impl Model for Rehearsed {
    fn next(&mut self, _tools: &[Definition], conversation: &[Message]) -> Message {
        self.step += 1;
        let call = |name: &str, arguments| Message::ToolCall { name: name.to_owned(), arguments };
        let meta = json!({"name": "opinions", "description": "Asks many what they think"});
        let script = "return await parallel(args.topics.map((topic) => () => agent(`What of ${topic}?`)))";
        let topics = json!({"topics": ["tabs", "spaces"]});
        match self.step {
            // `meta` lacks its description, and the tool says so.
            1 => call("workflow", json!({"meta": {"name": "opinions"}, "script": script, "args": topics})),
            2 => call("workflow", json!({"meta": meta, "script": script, "args": topics})),
            3 => call("workflow_start", json!({"meta": meta, "script": "return await agent('sleep:20')"})),
            4 => call("workflow_result", json!({"runId": last_run(conversation), "waitMs": 30_000})),
            _ => Message::Assistant("Two like it, and one slept.".to_owned()),
        }
    }
}

/// The id behind the last `run ` in the conversation, as a model would find it.
fn last_run(conversation: &[Message]) -> String {
    let Some(Message::ToolResult { text, .. }) = conversation.last() else { return String::new() };
    let id = text.split("run ").nth(1).unwrap_or_default();
    id.split('.').next().unwrap_or_default().to_owned()
}

async fn example() -> Result<Vec<Message>, Box<dyn Error>> {
    // Making an engine compiles the sandbox, which takes a while: off the async threads.
    let engine = tokio::task::spawn_blocking(|| Engine::builder().provider("spawn", Scripted::new()).build());
    let runs = Runs::default();
    let tool = WorkflowTool::new(engine.await??, ToolConfig::default())?.with_runs(runs.clone());
    let cancel = CancellationToken::new();
    let conversation =
        converse(&mut Rehearsed { step: 0 }, &tool, "Use a workflow to ask what people think.", cancel).await;
    runs.shutdown().await;
    conversation
}

#[expect(clippy::print_stdout, reason = "an example shows what it does")]
#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    for message in example().await? {
        match message {
            Message::System(text) => println!("── system\n{text}\n"),
            Message::User(text) => println!("── user\n{text}\n"),
            Message::Assistant(text) => println!("── assistant\n{text}\n"),
            Message::ToolCall { name, arguments } => println!("── {name}\n{arguments:#}\n"),
            Message::ToolResult { text, is_error: false } => println!("── answer\n{text}\n"),
            Message::ToolResult { text, is_error: true } => println!("── error\n{text}\n"),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_conversation_takes_its_course() {
        let conversation = example().await.unwrap();
        let results: Vec<(&str, bool)> = conversation
            .iter()
            .filter_map(|message| match message {
                Message::ToolResult { text, is_error } => Some((text.as_str(), *is_error)),
                _ => None,
            })
            .collect();
        let [mistake, mended, started, result] = results[..] else { panic!("{results:?}") };
        assert!(mistake.1 && mistake.0.ends_with("meta.description is missing"), "{mistake:?}");
        assert!(!mended.1 && mended.0.contains("\"echo:What of tabs?\""), "{mended:?}");
        assert!(!started.1 && started.0.contains("has started: run "), "{started:?}");
        assert!(!result.1 && result.0.ends_with("\"slept\""), "{result:?}");
        let told = |message: &Message| matches!(message, Message::User(text) if text.contains("completed (1 agent)"));
        assert!(conversation.iter().any(told), "the end of the background run is told: {conversation:?}");
    }
}

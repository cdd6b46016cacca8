//! The workflow tool that a model calls, for any agent loop.
//!
//! A host makes a [`WorkflowTool`], tells its model of the [`Definition`]s and the [`Guidance`], and passes on what the
//! model calls. Who calls is a [`CallingAgent`] of the host's; what the model is told is an [`Answer`] or the text of a
//! [`ToolError`].
//!
//! ```
//! use std::sync::Arc;
//!
//! use fanfold::Engine;
//! use fanfold_agents::Scripted;
//! use fanfold_tool::{Call, CallingAgent, Runs, ToolConfig, WorkflowTool};
//! use serde_json::json;
//!
//! struct Assistant;
//!
//! impl CallingAgent for Assistant {
//!     fn id(&self) -> &str {
//!         "assistant"
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().provider("spawn", Scripted::new()).build()?;
//! let runs = Runs::default();
//! let tool = WorkflowTool::new(engine, ToolConfig::default())?.with_runs(runs.clone());
//!
//! // What the model is told.
//! let names: Vec<String> = tool.definitions().into_iter().map(|tool| tool.name).collect();
//! assert_eq!(names[..2], ["workflow", "workflow_start"]);
//!
//! // What the model calls.
//! let arguments = json!({
//!     "meta": {"name": "greet", "description": "greets people"},
//!     "script": "return await parallel(args.names.map((name) => () => agent(`Greet ${name}`)))",
//!     "args": {"names": ["Fan", "Fold"]},
//! });
//! let agent = Arc::new(Assistant);
//! let answer = tool.call("workflow", &arguments, Call::by(agent.clone())).await?;
//! assert_eq!(answer.value["result"], json!(["echo:Greet Fan", "echo:Greet Fold"]));
//! assert!(answer.text.starts_with("workflow \"greet\" completed (2 agents)."));
//!
//! // What the model gets wrong, it is told in one go.
//! let error = tool.call("workflow", &json!({"script": 1}), Call::by(agent)).await.unwrap_err();
//! assert_eq!(
//!     error.text(),
//!     "Error: the arguments of workflow are not valid: INVALID_ARGUMENT: script must be a string"
//! );
//! runs.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`WorkflowTool`], [`ToolConfig`]: the tools, by name or by method
//! - [`Definition`], [`Guidance`], [`CallCard`]: what models and people are told before a call
//! - [`Call`], [`CallingAgent`], [`Session`]: what the host brings to a call
//! - [`Answer`] and the values in it, [`ToolError`]: what comes of it
//! - [`Runs`], [`Retention`]: background runs, and results too long for one answer
//!
//! Inside, data flows one way: `arguments` are read, `launch` starts the run, waits for it and disposes of it while
//! `recorder` writes the session's records, and `tool` makes the answer, for which `words` has the texts.
#![forbid(unsafe_code)]

mod agent;
mod answer;
mod arguments;
mod card;
mod config;
mod definition;
mod error;
mod launch;
mod recorder;
mod runs;
mod tool;
mod words;

pub use agent::{AppendError, Call, CallingAgent, Session};
pub use answer::{
    AgentCounts, Answer, Completed, EventLine, FailedAgents, ListedRun, Notice, PhaseStatus, ResultPage,
    RunList, RunState, RunStatus, Started, Stopped,
};
pub use card::{CallCard, ResultCard};
pub use config::ToolConfig;
pub use definition::{Definition, Guidance, ToolKind};
pub use error::ToolError;
pub use runs::{Retention, Runs};
pub use tool::WorkflowTool;

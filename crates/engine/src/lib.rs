//! Runs JavaScript workflows that fan work out to subagents, in a WebAssembly sandbox.
//!
//! A script can compute, within limits, and ask for subagents; nothing else. Its host decides what a subagent
//! is by implementing [`Subagents`].
//!
//! ```
//! use fanfold::{
//!     AgentRequest, Answer, CancellationToken, Child, Engine, Meta, StartError, StartRequest, Subagents,
//! };
//! use futures::future::BoxFuture;
//!
//! /// Answers every prompt in capitals.
//! struct Shout;
//!
//! impl Subagents for Shout {
//!     fn start(
//!         &self,
//!         request: AgentRequest,
//!         _cancel: CancellationToken,
//!     ) -> BoxFuture<'static, Result<Child, StartError>> {
//!         Box::pin(async move {
//!             let answer = request.prompt.to_uppercase();
//!             Ok(Child::new(format!("shout-{}", request.seq), async move { Ok(Answer::text(answer)) }))
//!         })
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), fanfold::WorkflowError> {
//! let engine = Engine::builder().provider("spawn", Shout).build()?;
//! let script = "return await parallel(args.map((word) => () => agent(word)))";
//! let request = StartRequest::new(script)
//!     .meta(Meta::new("shout", "shouts words"))
//!     .args(serde_json::json!(["fan", "fold"]));
//! let run = engine.start(request).await?;
//! assert_eq!(run.result().await.value.get(), r#"["FAN","FOLD"]"#);
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`Engine`], [`EngineBuilder`]: made once per process; [`Limits`]: what scripts may use
//! - [`StartRequest`] → [`Run`] → [`RunResult`]: one run
//! - [`Subagents`] and what it speaks of: [`AgentRequest`], [`Child`], [`Answer`], [`ChildError`], [`UsageMeter`],
//!   [`Activity`]
//! - [`AgentTypes`], [`AgentType`]: what the option `agentType` names
//! - [`Workflows`]: where the scripts come from that a script runs by name
//! - [`Observer`], [`event_stream`]: watching a run
//! - [`Script`], [`Schema`]: reading scripts and schemas without running anything
//! - [`COMPONENT`]: the sandbox itself, for other Wasmtime hosts
//! - everything of [`fanfold_types`]: events, errors, records
//!
//! Inside, data flows one way: `request` and `script` are checked, `run` drives a `sandbox` and writes down what
//! happens in its books, `observe` tells it.
#![deny(unsafe_code)]

mod activity;
mod agent_types;
mod bindings;
mod closest;
mod engine;
#[cfg(fuzzing)]
#[doc(hidden)]
pub mod fuzzing;
mod guests;
mod json;
mod kept;
mod limits;
mod observe;
mod options;
mod pool;
mod pooling;
mod programs;
mod request;
mod run;
mod sandbox;
mod schema;
mod script;
mod subagents;
mod ticker;
mod turns;
mod workflows;

pub use activity::Activity;
pub use agent_types::{AgentType, AgentTypes};
pub use engine::{Engine, EngineBuilder, configure};
pub use fanfold_types::*;
pub use limits::Limits;
pub use observe::{EventStream, Observer, event_stream};
pub use request::StartRequest;
pub use run::Run;
pub use schema::{Ignored, Schema};
pub use script::{Dialect, Script};
pub use subagents::{
    AgentOptions, AgentRequest, Answer, Child, ChildError, FailureReason, StartError, Subagents, Support,
    UsageMeter,
};
pub use tokio_util::sync::CancellationToken;
pub use workflows::{LoadError, WorkflowTarget, Workflows};

/// The sandbox: a WebAssembly component of the world `fanfold:workflow/workflow` (see `wit/`), for hosts that
/// run it themselves.
pub const COMPONENT: &[u8] = include_bytes!("../component/workflow.wasm");

/// The README's examples are tests.
#[cfg(doctest)]
#[doc = include_str!("../../../README.md")]
struct Readme;

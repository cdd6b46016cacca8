//! Fanfold as a server of the Model Context Protocol: the workflow tool for the models of MCP clients.
//!
//! It speaks protocol 2026-07-28 and the versions before it, over standard input and output and over streamable HTTP.
//!
//! ```no_run
//! use fanfold::{CancellationToken, Engine};
//! use fanfold_agents::Command;
//! use fanfold_mcp::{Server, ServerOptions};
//! use fanfold_tool::ToolConfig;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let engine = Engine::builder().provider("spawn", Command::parse("claude -p")?).build()?;
//! let server = Server::new(engine, ToolConfig::default(), ServerOptions::default())?;
//! server.serve_stdio(CancellationToken::new()).await?;
//! server.shutdown().await;
//! # Ok(())
//! # }
//! ```
//!
//! # Layout
//! - [`Server`], [`ServerOptions`], [`HttpOptions`]: what a host makes
//! - [`Sampling`], [`Agents`]: the client's own model as the subagents
//! - [`SavedWorkflow`]: workflows that are tools of their own
//!
//! Inside, what a client sends is first looked at as bytes (`incoming`). A `session` is what one client, or one request
//! of a client without sessions, talks to. Its calls start runs, or find the run of an equal call by its `line`, and
//! `attend` them; `delivery` tells whether an answer arrived. What a run has to say is in its `outbox`: attending requests tell it, or a `clerk` where the
//! protocol has sessions. `tasks` are runs by another name.
#![forbid(unsafe_code)]

mod answer;
mod attend;
mod clerk;
mod delivery;
mod http;
mod incoming;
mod line;
mod log;
mod outbox;
mod sampling;
mod server;
mod session;
mod stdio;
mod tasks;
mod tools;

pub use http::{HTTP_PATH, HttpOptions, http_url};
pub use sampling::Sampling;
pub use server::{Agents, Server, ServerOptions};
pub use stdio::ServeError;
pub use tools::SavedWorkflow;

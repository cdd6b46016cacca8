//! Subagent providers for Fanfold: who answers when a workflow calls `agent()`.
//!
//! # Layout
//! - [`Scripted`]: answers by what the prompt says, deterministic; for tests, demos and offline use
//! - [`Command`]: runs a program per child, prompt on its standard input, answer on its standard output
//!
//! The trait that they implement is [`fanfold::Subagents`].
//!
//! ```no_run
//! use fanfold_agents::Command;
//!
//! # fn main() -> Result<(), fanfold_agents::CommandError> {
//! let agents = Command::parse("claude -p")?.inherit("ANTHROPIC_API_KEY");
//! # Ok(())
//! # }
//! ```
#![forbid(unsafe_code)]

mod ask;
mod command;
mod json;
mod scripted;
mod text;

pub use command::{Command, CommandError};
pub use scripted::Scripted;

//! Subagent providers for Fanfold: who answers when a workflow calls `agent()`.
//!
//! # Layout
//! - [`Scripted`]: answers by what the prompt says, deterministic; for tests, demos and offline use
//! - [`DryRun`]: answers what satisfies the call, and spends nothing; for looking at a script before it runs
//! - [`Worktrees`]: git worktrees for its children; [`clean_worktrees`]: tidies up after a crash
//! - [`Command`]: runs a program per child, prompt on its standard input, answer on its standard output
//! - [`OpenAi`], [`Anthropic`]: ask a model API over HTTP ([`HttpAgents`])
//! - [`Acp`]: runs a coding agent per child, by the Agent Client Protocol
//! - [`policy`]: what holds for all of them: deadlines, retries, silences, asking again; [`FailureKind`]: what kind of
//!   failure ended an agent
//! - [`reasoning`]: what a model thought, told apart from its answer
//! - [`ask`]: the prompts of agents that know text alone
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

mod acp;
mod answer;
mod anthropic;
pub mod ask;
mod command;
mod deadline;
mod dry_run;
mod escapes;
mod failure;
mod fences;
mod halves;
mod http;
mod json;
mod openai;
pub mod policy;
mod process;
pub mod reasoning;
mod record;
mod retry;
mod sample;
mod scripted;
mod text;
mod transcript;
mod worktree;

pub use acp::{Acp, Permissions};
pub use anthropic::{Anthropic, Messages};
pub use command::{Command, CommandError};
pub use dry_run::DryRun;
pub use failure::FailureKind;
pub use http::{ApiKey, HttpAgents, HttpError, KeyError};
pub use openai::{ChatCompletions, OpenAi};
pub use scripted::Scripted;
pub use worktree::{Cleaned, GitError, Outcome, WorktreeError, Worktrees, clean as clean_worktrees};

/// The door for the fuzz targets: finds the value in an answer, as all providers do. Not part of the library.
///
/// # Errors
/// What is wrong with the likeliest value in the answer.
#[cfg(fuzzing)]
#[doc(hidden)]
pub fn find_value(answer: &str, schema: &fanfold::Schema) -> Result<serde_json::Value, Vec<String>> {
    match answer::read(answer, Some(schema)) {
        Ok(answer) => Ok(answer.structured.unwrap_or_default()),
        Err(answer::Unusable::NoValue { wrong, .. }) => Err(wrong),
        Err(answer::Unusable::ReasoningAlone(_)) => Err(Vec::new()),
    }
}

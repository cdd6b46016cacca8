//! Tests of the `fanfold` command.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should not")]

mod cache;
mod check;
mod command_agents;
mod conformance;
mod errors;
mod examples;
mod fanfold;
mod mcp;
mod named;
mod output;
mod plan;
mod providers;
mod run;
mod schemas;
#[cfg(unix)]
mod stopped;
mod view;
mod worktrees;

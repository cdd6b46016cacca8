//! Tests of the `fanfold` command.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should not")]

mod check;
mod command_agents;
mod conformance;
mod errors;
mod fanfold;
mod mcp;
mod named;
mod plan;
mod providers;
mod run;
mod schemas;
mod view;
mod worktrees;

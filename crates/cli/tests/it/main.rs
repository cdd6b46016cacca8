//! Tests of the `fanfold` command.

mod check;
mod command_agents;
mod conformance;
mod fanfold;
mod run;

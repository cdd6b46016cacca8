//! The `fanfold` command.
//!
//! # Layout
//! - `args`: what the command line takes; `settings`: that, and `fanfold.toml`; `input`: files and options as text
//! - `run`, `plan`, `check`, `list`, `clean`, `mcp`: the commands; `survey`: what `plan` found
//! - `view`: the page that shows runs
//! - `agents`: who runs `agent()`; `provider`: the same with the user's defaults
//! - `agent_types`, `front_matter`: the kinds of agents that files define
//! - `workflows`: saved workflows; `places`: where they and the kinds of agents are looked for
//! - `display`: what a person sees of a run; `lines`: what a program sees (`--json`)
//! - `engine`: the engine, and what a person sees while it is made
//! - `signals`: Ctrl-C

mod agent_types;
mod agents;
mod args;
mod check;
mod clean;
mod display;
mod engine;
mod front_matter;
mod input;
mod lines;
mod list;
mod mcp;
mod places;
mod plan;
mod provider;
mod run;
mod settings;
mod signals;
mod survey;
mod view;
mod workflows;

use std::process::ExitCode;

use args::{Cli, Command};
use clap::Parser as _;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&error.into()),
    };
    let status = runtime.block_on(async {
        match cli.command {
            Command::Run(args) => run::run(&args).await,
            Command::Plan(args) => plan::plan(&args).await,
            Command::Check(args) => check::check(&args).await,
            Command::Mcp(args) => mcp::mcp(&args).await,
            Command::View(args) => view::view(&args).await,
            Command::List(args) => list::list(&args),
            Command::Clean => clean::clean().await,
        }
    });
    // This ends whatever is left of a run, children included, and waits for no reader of the output.
    runtime.shutdown_background();
    status.unwrap_or_else(|error| failed(&error))
}

/// Exit statuses; documented in `--help`.
mod status {
    pub(crate) const FAILED: u8 = 1;
    pub(crate) const COULD_NOT_START: u8 = 2;
    pub(crate) const CANCELLED: u8 = 130;
}

/// Tells why nothing was started.
fn failed(error: &anyhow::Error) -> ExitCode {
    display::error(&format!("{error:#}"));
    ExitCode::from(status::COULD_NOT_START)
}

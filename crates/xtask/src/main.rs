//! Builds and checks what is committed in built form: `cargo xtask help`.

mod guest;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds and checks what is committed in built form")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Builds the guest component from source.
    Guest {
        /// Write nothing; fail if the committed component is not what the sources give.
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Guest { check } => guest::run(check),
    }
}

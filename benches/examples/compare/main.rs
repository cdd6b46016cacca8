//! The same work on Fanfold and on its peers, in turns: `cargo xtask bench --peers`, which builds them first.
//!
//! The machine may be busy with other things. So every engine does a little of a work, then the next one does, and
//! round again; what is reported are medians over all rounds, and the median of the ratios within a round.
//!
//! - [`work`]: what is measured
//! - [`peer`]: the engines, each a process that speaks `peer-protocol`
//! - [`report`]: the table in `docs/performance.md`

mod peer;
mod report;
mod work;

use std::path::Path;

use anyhow::{Context as _, Result};
use clap::Parser;

use peer::{Kind, Peer};
use report::Row;
use work::{Measure, Setup, WORKS, Work};

#[derive(Parser)]
#[command(about = "Measures Fanfold, and its peers beside it")]
struct Args {
    /// Measure the peers too, and write the table to docs/performance.md.
    #[arg(long)]
    peers: bool,
    /// How often each engine gets its turn.
    #[arg(long, default_value_t = 11)]
    rounds: usize,
    /// Only works whose name contains this; the table is then printed and not written.
    #[arg(long, default_value = "")]
    only: String,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().context("the crate is in the workspace")?;
    let kinds: &'static [Kind] = if args.peers { &Kind::ALL } else { &[Kind::Fanfold] };
    let mut rows = Vec::new();
    for work in WORKS.iter().filter(|work| work.name.contains(&args.only)) {
        say(&format!("{} …", work.name));
        rows.push(measure(root, kinds, work, args.rounds)?);
    }
    let versions = kinds
        .iter()
        .map(|kind| Ok(Peer::start(*kind, root, Setup::SERVICE)?.hello.clone()))
        .collect::<Result<Vec<_>>>()?;
    let table = report::table(&versions, &rows);
    if args.peers && args.only.is_empty() {
        report::write(root, &table)
    } else {
        say(&table);
        Ok(())
    }
}

/// A work on every engine, in turns.
fn measure(root: &Path, kinds: &'static [Kind], work: &Work, rounds: usize) -> Result<Row> {
    // Samples by engine and round; none for an engine that cannot do it.
    let mut samples: Vec<Vec<Vec<f64>>> = vec![Vec::new(); kinds.len()];
    // Started once, but for works that need a new process each time.
    let mut peers: Vec<Option<Peer>> = Vec::new();
    peers.resize_with(kinds.len(), || None);
    // The first round warms everything up.
    for round in 0..=work.rounds(rounds) {
        for turn in 0..kinds.len() {
            let at = (turn + round) % kinds.len();
            let kind = kinds[at];
            if !work.suits(kind) {
                continue;
            }
            let mut peer = match peers[at].take() {
                Some(peer) => peer,
                None => Peer::start(kind, root, work.setup())?,
            };
            let taken = peer.take(work).with_context(|| format!("{} on {}", work.name, peer.hello.name))?;
            if round > 0 {
                samples[at].push(taken);
            }
            if !matches!(work.measure, Measure::Memory { .. } | Measure::FirstAgent) {
                peers[at] = Some(peer);
            }
        }
    }
    Ok(Row::new(work, kinds, samples))
}

#[expect(clippy::print_stdout, reason = "a program that reports")]
fn say(line: &str) {
    println!("{line}");
}

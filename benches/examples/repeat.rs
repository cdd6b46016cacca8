//! Runs a script again and again, one run after the other, for tools that count or sample what a process does.
//!
//!     cargo run --release --example repeat -- "return await agent('x')" 10000
//!
//! All of it is on one thread but the clock, so that the same work takes the same instructions. Agents answer at once;
//! sandboxes come from no pool, which such tools have no room for.

use std::path::PathBuf;

use anyhow::{Result, ensure};
use clap::Parser;
use fanfold::{Engine, StopReason};
use fanfold_benches::{Agents, limits, request};

#[derive(Parser)]
#[command(about = "Runs a script again and again")]
struct Args {
    script: String,
    times: u32,
    /// Make every text a new one.
    #[arg(long)]
    fresh: bool,
    /// Keep the compiled sandbox here.
    #[arg(long)]
    cache: Option<PathBuf>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<()> {
    let args = Args::parse();
    let mut builder = Engine::builder().provider("spawn", Agents::default()).limits(limits(16));
    if let Some(cache) = args.cache {
        builder = builder.cache_directory(cache);
    }
    let engine = builder.build()?;
    for n in 0..args.times {
        let script = if args.fresh { format!("{}\n// {n:08}", args.script) } else { args.script.clone() };
        let result = engine.start(request(script)).await?.result().await;
        ensure!(result.stop_reason == StopReason::Completed, "{:?}", result.error);
    }
    Ok(())
}

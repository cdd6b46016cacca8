//! Drives Fanfold for `cargo xtask bench --peers`.
//!
//!     contender CACHE-DIRECTORY AGENTS-AT-ONCE SANDBOXES
//!
//! Sandboxes come from a pool of that many, or from none for 0.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use fanfold::{Engine, Run, StopReason};
use fanfold_benches::{Agents, limits, request};
use peer_protocol::{Contender, Hello, serve};
use tokio::sync::Semaphore;

struct Fanfold {
    engine: Engine,
    asked: Arc<Semaphore>,
}

impl Contender for Fanfold {
    type Parked = Run;

    async fn run(&self, script: String) -> Result<String> {
        let result = self.engine.start(request(script)).await?.result().await;
        ensure!(result.stop_reason == StopReason::Completed, "{:?}", result.error);
        Ok(result.value.get().to_owned())
    }

    async fn park(&self, script: String) -> Result<Run> {
        let run = self.engine.start(request(script)).await?;
        // Each run makes one such call, so there are as many permits as runs.
        self.asked.acquire().await?.forget();
        Ok(run)
    }

    async fn cancel(&self, run: Run) -> Result<()> {
        run.cancel("enough");
        let result = run.result().await;
        ensure!(result.stop_reason == StopReason::Cancelled, "{:?}", result.error);
        Ok(())
    }
}

#[tokio::main]
async fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let mut next = || args.next().context("usage: contender CACHE-DIRECTORY AGENTS-AT-ONCE SANDBOXES");
    let (cache, at_once, sandboxes) = (next()?, next()?.parse::<u32>()?, next()?.parse()?);
    let agents = Agents::default();
    let asked = agents.asked.clone();
    let mut builder =
        Engine::builder().provider("spawn", agents).limits(limits(at_once)).cache_directory(cache);
    if sandboxes > 0 {
        builder = builder.pool(sandboxes);
    }
    let engine = builder.build()?;
    let hello = Hello { name: "Fanfold".into(), version: env!("CARGO_PKG_VERSION").into() };
    tokio::spawn(serve(hello, Fanfold { engine, asked })).await?
}

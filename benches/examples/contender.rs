//! Drives Fanfold for `cargo xtask bench --peers`.
//!
//!     contender CACHE-DIRECTORY AGENTS-AT-ONCE SANDBOXES
//!
//! Sandboxes come from a pool of that many, or from none for 0.

use std::sync::Arc;

use anyhow::{Context as _, Result, ensure};
use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, ChildError, Engine, Limits, Meta, Run, StartError,
    StartRequest, StopReason, Subagents,
};
use futures::future::BoxFuture;
use peer_protocol::{Contender, Hello, serve};
use tokio::sync::Semaphore;

/// Agents that answer at once, but for `hang`.
#[derive(Clone)]
struct Agents {
    /// A permit for each agent that hangs.
    asked: Arc<Semaphore>,
}

impl Subagents for Agents {
    fn start(
        &self,
        request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let asked = self.asked.clone();
        Box::pin(async move {
            Ok(Child::new("child", async move {
                if request.prompt == "hang" {
                    asked.add_permits(1);
                    cancel.cancelled().await;
                    return Err(ChildError::Cancelled);
                }
                Ok(Answer::text(request.prompt))
            }))
        })
    }
}

struct Fanfold {
    engine: Engine,
    asked: Arc<Semaphore>,
}

fn request(script: String) -> StartRequest {
    StartRequest::new(script).meta(Meta::new("bench", "a script that is measured"))
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
    let asked = Arc::new(Semaphore::new(0));
    let agents = Agents { asked: asked.clone() };
    let limits: Limits = serde_json::from_value(serde_json::json!({"maxConcurrentAgents": at_once}))?;
    let mut builder = Engine::builder().provider("spawn", agents).limits(limits).cache_directory(cache);
    if sandboxes > 0 {
        builder = builder.pool(sandboxes);
    }
    let engine = builder.build()?;
    let hello = Hello { name: "Fanfold".into(), version: env!("CARGO_PKG_VERSION").into() };
    tokio::spawn(serve(hello, Fanfold { engine, asked })).await?
}

//! The engine of the command line.

use std::time::Duration;

use anyhow::{Result, anyhow};
use fanfold::{Engine, EngineBuilder, Limits};

use crate::agent_types::AgentFiles;
use crate::display;
use crate::workflows::Workflows;

/// Silence of this length wants an explanation.
const PATIENCE: Duration = Duration::from_secs(1);

/// What every engine of the command line has, whoever runs its agents: the project's kinds of agents and saved
/// workflows, and the limits.
pub(crate) fn builder(agents: AgentFiles, workflows: Workflows, limits: Limits) -> EngineBuilder {
    Engine::builder().agent_types(agents).workflows(workflows).limits(limits)
}

/// Makes the engine. The compiled sandbox is kept in the user's cache folder, so that only the first time is
/// slow.
pub(crate) async fn make(builder: EngineBuilder) -> Result<Engine> {
    let builder = match dirs::cache_dir() {
        Some(cache) => builder.cache_directory(cache.join("fanfold")),
        None => builder,
    };
    let mut making = tokio::task::spawn_blocking(|| builder.build());
    let made = match tokio::time::timeout(PATIENCE, &mut making).await {
        Ok(made) => made,
        Err(_) => {
            display::notice("preparing the sandbox; this is fast from the second time on");
            making.await
        }
    };
    let engine = made.map_err(|error| anyhow!("failed to make the engine: {error}"))??;
    if let Some(warning) = engine.cache_warning() {
        display::notice(warning);
    }
    Ok(engine)
}

//! What the programs here share: agents that answer at once, and how a script is asked for.
#![forbid(unsafe_code)]

use std::sync::Arc;

use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, ChildError, Limits, Meta, StartError, StartRequest,
    Subagents,
};
use futures::future::BoxFuture;
use tokio::sync::Semaphore;

/// Agents that answer their prompt at once, but for `hang`, which answers when it is cancelled.
#[derive(Clone, Debug)]
pub struct Agents {
    /// A permit for each agent that hangs.
    pub asked: Arc<Semaphore>,
}

impl Default for Agents {
    fn default() -> Self {
        Self { asked: Arc::new(Semaphore::new(0)) }
    }
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

/// The usual limits, with so many agents at once.
pub fn limits(agents_at_once: u32) -> Limits {
    let mut limits = Limits::default();
    limits.max_concurrent_agents = agents_at_once;
    limits
}

/// A request for a script without a header.
pub fn request(script: impl Into<String>) -> StartRequest {
    StartRequest::new(script).meta(Meta::new("bench", "a script that is measured"))
}

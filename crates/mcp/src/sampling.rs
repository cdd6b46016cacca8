//! A provider whose children are answered by the MCP client's own model.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fanfold::{AgentRequest, CancellationToken, Child, StartError, Subagents, Support};
use fanfold_agents::policy::{AgentPolicy, Attempt, Failure, PlainProvider};
use fanfold_agents::{FailureKind, ask};
use futures::future::BoxFuture;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
};
use serde_json::json;

use crate::outbox::Outbox;

/// The longest answer that is asked for, in tokens. The protocol wants a number; a client may give less.
const MAX_TOKENS: u32 = 32_000;

/// How long a client may take for an answer. People who approve each request need their time; but a client that went
/// away must not hold a run for ever.
const STALL: Duration = Duration::from_secs(15 * 60);

/// Puts the prompts of `agent()` to the model of the MCP client that started the run (`sampling/createMessage`).
///
/// Register it with the engine as [`Sampling::NAME`], and give it to the [`Server`](crate::Server) too, which tells it who the
/// client of a run is. A run that was not started by a client that offers sampling cannot start children.
///
/// It honours `schema` (asked for in the prompt, checked, and asked for again up to 3 times), `timeoutMs`, `retries`, and
/// `agentType` where the host defines it.
/// Which model answers is the client's choice, so a script that asks for one is refused.
#[derive(Clone, Default)]
pub struct Sampling {
    /// By what the run's request calls its parent.
    clients: Arc<Mutex<HashMap<String, Weak<Outbox>>>>,
}

impl Sampling {
    /// The name that the engine must know the provider by.
    pub const NAME: &str = "sampling";

    /// A provider without clients.
    pub fn new() -> Self {
        Self::default()
    }

    /// Lets the runs of this parent ask through this outbox, for as long as that lives.
    pub(crate) fn connect(&self, parent: &str, outbox: &Arc<Outbox>) {
        let mut clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.retain(|_, outbox| outbox.strong_count() > 0);
        clients.insert(parent.to_owned(), Arc::downgrade(outbox));
    }

    fn outbox(&self, parent: Option<&str>) -> Option<Arc<Outbox>> {
        let clients = self.clients.lock().unwrap_or_else(PoisonError::into_inner);
        clients.get(parent?)?.upgrade()
    }
}

impl std::fmt::Debug for Sampling {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Sampling").finish_non_exhaustive()
    }
}

impl Subagents for Sampling {
    fn start(
        &self,
        mut request: AgentRequest,
        cancel: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        let outbox = self.outbox(request.parent.as_deref());
        Box::pin(async move {
            let outbox = outbox.ok_or_else(|| {
                StartError::new(
                    "the MCP client offers no sampling, so its model cannot be a subagent; choose other agents with \
                     `fanfold mcp --agents`, for example --agent-command \"claude -p\"",
                )
            })?;
            // Not as the system prompt: clients may leave that out.
            request.prompt = ask::with_instructions(&request);
            let policy = AgentPolicy::default().stall(Some(STALL));
            policy.start(Asking { outbox, request: request.clone() }, &request, cancel).await
        })
    }

    fn supports(&self) -> Support {
        let mut support = Support::default();
        (support.schema, support.timeout, support.retries, support.instructions) = (true, true, true, true);
        support
    }
}

/// Asks for one agent.
struct Asking {
    outbox: Arc<Outbox>,
    request: AgentRequest,
}

impl PlainProvider for Asking {
    fn id(&self) -> String {
        format!("sampling-{}", self.request.seq)
    }

    async fn answer(&mut self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let label = &*self.request.label;
        let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], MAX_TOKENS)
            .with_metadata(json!({"runId": &*self.request.run_id, "seq": self.request.seq, "label": label}));
        let answer = match attempt.unless_stopped(self.outbox.ask(params)).await? {
            Ok(Ok(result)) => text(result),
            Ok(Err(reason)) => return Err(Failure::new(FailureKind::Refusal, reason)),
            Err(_) => return Err(Failure::new(FailureKind::Connection, "the MCP client has gone")),
        };
        attempt.transcript.text(&answer);
        Ok(answer)
    }
}

/// The text of an answer; pictures and sound are nothing that a script could use.
fn text(result: CreateMessageResult) -> String {
    let blocks = result.message.content.into_vec();
    let texts = blocks.into_iter().filter_map(|block| match block {
        SamplingMessageContentBlock::Text(text) => Some(text.text),
        _ => None,
    });
    texts.collect::<Vec<_>>().join("\n")
}

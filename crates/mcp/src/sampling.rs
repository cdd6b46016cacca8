//! A provider whose children are answered by the MCP client's own model.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, Child, ChildError, StartError, Subagents, Support};
use fanfold_agents::ask::{self, Answerer, Question};
use futures::future::BoxFuture;
use rmcp::model::{
    CreateMessageRequestParams, CreateMessageResult, SamplingMessage, SamplingMessageContentBlock,
};
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::outbox::Outbox;

/// The longest answer that is asked for, in tokens. The protocol wants a number; a client may give less.
const MAX_TOKENS: u32 = 32_000;

/// How often a child is asked, in all, for a value that satisfies its schema.
const SCHEMA_ATTEMPTS: u32 = 3;

/// How long a client may take for an answer. People who approve each request need their time; but a client that went
/// away must not hold a run for ever.
const PATIENCE: Duration = Duration::from_secs(15 * 60);

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
            let question = Question::new(&request, SCHEMA_ATTEMPTS)?;
            let id = format!("sampling-{}", request.seq);
            let timeout_ms = request.options.timeout_ms;
            let deadline = request.options.timeout().and_then(|timeout| Instant::now().checked_add(timeout));
            let mut asking = Asking { outbox, request };
            Ok(Child::new(id, async move {
                tokio::select! {
                    biased;
                    () = cancel.cancelled() => Err(ChildError::Cancelled),
                    ms = expired(deadline, timeout_ms) => {
                        Err(ChildError::failed(format!("timed out after {ms} ms")))
                    }
                    answer = asking.answered(&question) => answer,
                }
            }))
        })
    }

    fn supports(&self) -> Support {
        let mut support = Support::default();
        (support.schema, support.timeout, support.retries, support.instructions) = (true, true, true, true);
        support
    }
}

/// Returns at the deadline, if there is one.
async fn expired(deadline: Option<Instant>, ms: Option<u64>) -> u64 {
    match deadline {
        Some(deadline) => sleep_until(deadline).await,
        None => std::future::pending().await,
    }
    ms.unwrap_or_default()
}

/// One child that asks.
struct Asking {
    outbox: Arc<Outbox>,
    request: AgentRequest,
}

impl Asking {
    /// Asks until there is an answer or there are no retries left.
    async fn answered(&mut self, question: &Question) -> Result<Answer, ChildError> {
        let mut retries = self.request.options.retries.unwrap_or_default();
        loop {
            match question.ask(self).await {
                Err(ChildError::Failed(_)) if retries > 0 => retries -= 1,
                ended => return ended,
            }
        }
    }
}

impl Answerer for Asking {
    type Error = ChildError;

    async fn answer(&mut self, prompt: &str) -> Result<String, ChildError> {
        let label = &*self.request.label;
        let params = CreateMessageRequestParams::new(vec![SamplingMessage::user_text(prompt)], MAX_TOKENS)
            .with_metadata(json!({"runId": &*self.request.run_id, "seq": self.request.seq, "label": label}));
        let reply = self.outbox.ask(params);
        match tokio::time::timeout(PATIENCE, reply).await {
            Ok(Ok(Ok(result))) => Ok(text(result)),
            Ok(Ok(Err(reason))) => Err(ChildError::failed(reason)),
            Ok(Err(_)) => Err(ChildError::failed("the MCP client has gone")),
            Err(_) => {
                let minutes = PATIENCE.as_secs() / 60;
                Err(ChildError::failed(format!("the MCP client did not answer within {minutes} minutes")))
            }
        }
    }

    /// Never: whoever no longer wants the answer drops the whole child.
    async fn unwanted(&self) -> ChildError {
        std::future::pending().await
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

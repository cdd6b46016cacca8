//! One session with an agent: the handshake, and a prompt at a time.

use std::path::Path;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, Implementation, InitializeRequest, NewSessionRequest, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId, StopReason,
};
use agent_client_protocol::{Agent, Client, Error, ErrorCode, Lines, is_incoming_transport_closed};
use fanfold::{Usage, UsageMeter};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::oneshot;

use super::Permissions;
use super::wire::Wire;
use crate::failure::{Failure, FailureKind, Unfinished};
use crate::policy::Attempt;
use crate::text;

/// The longest message of the protocol around an answer, in bytes.
const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;
const MAX_SAID_BYTES: usize = 1500;

/// What is said of an agent that ends without a word.
const CLOSED: &str = "the agent closed its output";

/// What holds for a session.
#[derive(Clone, Copy)]
pub(super) struct Terms {
    pub(super) permissions: Permissions,
    pub(super) answer_bytes: usize,
    /// How long an agent has to end its turn once it was told to.
    pub(super) grace: Duration,
}

/// A session. Dropping it closes the agent's streams.
pub(super) struct Session {
    connection: ConnectionTo<Agent>,
    /// Serves the connection for as long as it is polled; returns why it broke.
    served: BoxFuture<'static, Failure>,
    wire: Wire,
    id: Option<SessionId>,
    grace: Duration,
}

impl Session {
    /// Speaks with an agent.
    pub(super) async fn connect(
        stdin: impl AsyncWrite + Unpin + Send + 'static,
        stdout: impl AsyncRead + Unpin + Send + 'static,
        terms: Terms,
        attempt: &Attempt,
    ) -> Result<Self, Failure> {
        // JSON escapes make up to six bytes of one.
        let most = terms.answer_bytes.saturating_mul(6).saturating_add(MAX_ENVELOPE_BYTES);
        let wire = Wire::new(attempt.transcript.clone(), terms.answer_bytes, most);
        let transport = Lines::new(Box::pin(wire.outgoing(stdin)), wire.incoming(stdout));
        let (requests, permissions) = (wire.clone(), terms.permissions);
        let (sender, connected) = oneshot::channel();
        let mut served = async move {
            let served = Client
                .v1()
                .name("fanfold")
                .on_receive_request(
                    async move |request: RequestPermissionRequest, responder, _connection| {
                        let outcome = if requests.is_stopped() {
                            RequestPermissionOutcome::Cancelled
                        } else {
                            permissions.decide(requests.kind(&request.tool_call), &request.options)
                        };
                        responder.respond(RequestPermissionResponse::new(outcome))
                    },
                    agent_client_protocol::on_receive_request!(),
                )
                .connect_with(transport, async |connection: ConnectionTo<Agent>| {
                    let _ = sender.send(connection);
                    std::future::pending::<Result<(), Error>>().await
                })
                .await;
            match served {
                Err(error) => lost(&error),
                Ok(()) => Failure::new(FailureKind::Exit, CLOSED),
            }
        }
        .boxed();
        let connection = tokio::select! {
            biased;
            Ok(connection) = connected => connection,
            failure = &mut served => return Err(wire.failure().unwrap_or(failure)),
        };
        Ok(Self { connection, served, wire, id: None, grace: terms.grace })
    }

    /// Agrees on the protocol, and begins a session in a folder.
    pub(super) async fn begin(&mut self, directory: &Path, attempt: &Attempt) -> Result<(), Failure> {
        let (connection, wire) = (self.connection.clone(), self.wire.clone());
        let handshake = async {
            let client = Implementation::new("fanfold", env!("CARGO_PKG_VERSION"));
            let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(client);
            let hello = connection.send_request(hello).block_task().await;
            let hello = hello.map_err(|error| refused(&error, &wire))?;
            if hello.protocol_version != ProtocolVersion::V1 {
                let message = "the agent speaks another version of the Agent Client Protocol than 1";
                return Err(Failure::new(FailureKind::Protocol, message));
            }
            let session = connection.send_request(NewSessionRequest::new(directory)).block_task().await;
            session.map_err(|error| refused(&error, &wire))
        };
        let session = self.serve(attempt.unless_stopped(handshake)).await?;
        self.id = Some(session.map_err(begun)??.session_id);
        Ok(())
    }

    /// Lets the agent answer a prompt.
    pub(super) async fn prompt(&mut self, prompt: &str, attempt: &Attempt) -> Result<String, Failure> {
        let Some(id) = self.id.clone() else {
            return Err(Failure::Broken("the agent was asked before its session began".into()));
        };
        let request = PromptRequest::new(id.clone(), vec![prompt.into()]);
        let mut turn = Box::pin(self.connection.send_request(request).block_task());
        let response = self.serve(attempt.unless_stopped(&mut turn)).await?;
        if let Ok(response) = response {
            return self.ended(response, &attempt.meter);
        }
        self.wire.stop();
        let text = self.wire.take_answer();
        // The agent ends its turn with a response of its own; what it says then no longer matters.
        if self.connection.send_notification(CancelNotification::new(id)).is_ok() {
            let response = tokio::time::timeout(self.grace, turn);
            if let Ok(Ok(Ok(response))) = self.serve(response).await {
                count(&response, &attempt.meter);
            }
        }
        Err(Failure::Stopped(Unfinished { text, missing: "the turn was not ended" }))
    }

    /// What the work gives, while the connection is served.
    async fn serve<T>(&mut self, work: impl Future<Output = T>) -> Result<T, Failure> {
        tokio::select! {
            biased;
            failure = self.wire.failed() => Err(failure),
            done = work => Ok(done),
            failure = &mut self.served => Err(self.wire.failure().unwrap_or(failure)),
        }
    }

    /// What a turn that ended by itself gave.
    fn ended(&self, response: Result<PromptResponse, Error>, meter: &UsageMeter) -> Result<String, Failure> {
        let response = response.map_err(|error| refused(&error, &self.wire))?;
        count(&response, meter);
        let said = self.wire.take_answer();
        match response.stop_reason {
            StopReason::EndTurn => Ok(said),
            StopReason::MaxTokens => {
                Err(Failure::new(FailureKind::Length, "the agent reached its most tokens before the end"))
            }
            StopReason::MaxTurnRequests => Err(Failure::new(
                FailureKind::Length,
                "the agent reached its most requests to the model before the end",
            )),
            StopReason::Refusal => {
                let said = text::ends(said.trim(), MAX_SAID_BYTES);
                let separator = if said.is_empty() { "" } else { ": " };
                Err(Failure::new(FailureKind::Refusal, format!("the agent declined{separator}{said}")))
            }
            other => Err(Failure::new(
                FailureKind::Protocol,
                format!("the agent stopped, unasked, for the reason {other:?}"),
            )),
        }
    }
}

/// A handshake that was stopped.
fn begun(failure: Failure) -> Failure {
    match failure {
        Failure::Stopped(_) => {
            let missing = "the agent did not begin a session";
            Failure::Stopped(Unfinished { text: String::new(), missing })
        }
        other => other,
    }
}

fn count(response: &PromptResponse, meter: &UsageMeter) {
    let Some(usage) = &response.usage else { return };
    let [read, created] =
        [usage.cached_read_tokens, usage.cached_write_tokens].map(Option::unwrap_or_default);
    let all = usage.input_tokens.saturating_add(read).saturating_add(created);
    let written = usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or_default());
    meter.add(Usage::new(all, written).cached(read, created));
}

/// The agent answered a request with an error, with what is no answer, or not at all.
fn refused(error: &Error, wire: &Wire) -> Failure {
    if is_incoming_transport_closed(error) {
        return Failure::new(FailureKind::Exit, CLOSED);
    }
    if let Some(result) = wire.result() {
        let message = format!("the agent's answer to a request cannot be read: {result}");
        return Failure::new(FailureKind::Protocol, message);
    }
    let kind = match error.code {
        ErrorCode::AUTH_REQUIRED => FailureKind::Authentication,
        ErrorCode::INVALID_PARAMS | ErrorCode::METHOD_NOT_FOUND => FailureKind::InvalidRequest,
        _ => FailureKind::Server,
    };
    Failure::new(kind, format!("the agent answered with an error: {}", described(error)))
}

fn lost(error: &Error) -> Failure {
    Failure::new(FailureKind::Exit, format!("the connection to the agent broke: {}", described(error)))
}

fn described(error: &Error) -> String {
    let details = match &error.data {
        Some(serde_json::Value::String(details)) => format!(": {details}"),
        Some(data) => format!(": {data}"),
        None => String::new(),
    };
    text::ends(&format!("{}{details}", error.message), MAX_SAID_BYTES)
}

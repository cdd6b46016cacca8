//! One session with an agent: the handshake, and a prompt at a time.

use std::path::Path;
use std::time::Duration;

use agent_client_protocol::schema::ProtocolVersion;
use agent_client_protocol::v1::ConnectionTo;
use agent_client_protocol::v1::schema::{
    CancelNotification, Implementation, InitializeRequest, NewSessionRequest, PromptRequest, PromptResponse,
    RequestPermissionOutcome, RequestPermissionRequest, RequestPermissionResponse, SessionId,
    SessionNotification, StopReason,
};
use agent_client_protocol::{Agent, ByteStreams, Client, Error, ErrorCode, is_incoming_transport_closed};
use fanfold::{Answer, Usage, UsageMeter};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_util::compat::{TokioAsyncReadCompatExt as _, TokioAsyncWriteCompatExt as _};

use super::Permissions;
use super::heard::{Ear, Heard};
use crate::ask::{Answerer, Question};
use crate::failure::{Failure, FailureKind};
use crate::patience::Patience;
use crate::text;

/// The longest message of the protocol around an answer, in bytes.
const MAX_ENVELOPE_BYTES: usize = 1024 * 1024;
const MAX_SAID_BYTES: usize = 2000;

/// What is said of an agent that ends without a word.
const CLOSED: &str = "the agent closed its output";

/// What holds for a session.
pub(super) struct Terms<'a> {
    pub(super) directory: &'a Path,
    pub(super) permissions: Permissions,
    pub(super) answer_bytes: usize,
    pub(super) stall: Option<Duration>,
    /// How long an agent has to end its turn once it was told to.
    pub(super) grace: Duration,
    pub(super) patience: &'a Patience,
    pub(super) meter: &'a UsageMeter,
}

/// Asks a question in a new session.
pub(super) async fn ask(
    stdin: impl AsyncWrite + Send + 'static,
    stdout: impl AsyncRead + Unpin + Send + 'static,
    terms: Terms<'_>,
    question: &Question,
) -> Result<Answer, Failure> {
    let heard = Heard::new(terms.answer_bytes);
    // JSON escapes make up to six bytes of one.
    let most = terms.answer_bytes.saturating_mul(6).saturating_add(MAX_ENVELOPE_BYTES);
    let incoming = Ear::new(stdout, heard.clone(), most);
    let transport = ByteStreams::new(stdin.compat_write(), incoming.compat());
    let (updates, permissions, requests) = (heard.clone(), terms.permissions, heard.clone());
    let mut outcome = None;
    let connected = Client
        .v1()
        .name("fanfold")
        .on_receive_notification(
            async move |notification: SessionNotification, _connection| {
                updates.update(notification.update);
                Ok(())
            },
            agent_client_protocol::on_receive_notification!(),
        )
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
            outcome = Some(converse(connection, &heard, &terms, question).await);
            Ok(())
        })
        .await;
    match (outcome, connected) {
        (Some(outcome), _) => outcome,
        (None, Err(error)) => Err(lost(&error)),
        (None, Ok(())) => Err(Failure::new(FailureKind::Exit, CLOSED)),
    }
}

async fn converse(
    connection: ConnectionTo<Agent>,
    heard: &Heard,
    terms: &Terms<'_>,
    question: &Question,
) -> Result<Answer, Failure> {
    let silence = || async {
        heard.silence(terms.stall).await;
        stalled(terms)
    };
    let handshake = async {
        let client = Implementation::new("fanfold", env!("CARGO_PKG_VERSION"));
        let hello = InitializeRequest::new(ProtocolVersion::V1).client_info(client);
        let hello = connection.send_request(hello).block_task().await.map_err(|error| refused(&error))?;
        if hello.protocol_version != ProtocolVersion::V1 {
            let message = "the agent speaks another version of the Agent Client Protocol than 1";
            return Err(Failure::new(FailureKind::Protocol, message));
        }
        let session = NewSessionRequest::new(terms.directory);
        connection.send_request(session).block_task().await.map_err(|error| refused(&error))
    };
    let session = tokio::select! {
        biased;
        stop = terms.patience.over() => return Err(stop.into()),
        session = handshake => session?,
        failure = silence() => return Err(failure),
    };
    let mut conversation = Conversation { connection, session: session.session_id, heard, terms };
    question.ask(&mut conversation).await
}

struct Conversation<'a> {
    connection: ConnectionTo<Agent>,
    session: SessionId,
    heard: &'a Heard,
    terms: &'a Terms<'a>,
}

impl Answerer for Conversation<'_> {
    type Error = Failure;

    async fn answer(&mut self, prompt: &str) -> Result<String, Failure> {
        let request = PromptRequest::new(self.session.clone(), vec![prompt.into()]);
        let mut turn = Box::pin(self.connection.send_request(request).block_task());
        let failure = tokio::select! {
            biased;
            stop = self.terms.patience.over() => stop.into(),
            () = self.heard.too_long() => {
                let most = self.terms.answer_bytes;
                Failure::new(FailureKind::AnswerSize, format!("the answer is longer than {most} bytes"))
            }
            response = &mut turn => return self.ended(response),
            () = self.heard.silence(self.terms.stall) => stalled(self.terms),
        };
        self.heard.stop();
        // The agent ends its turn with a response of its own; what it says then no longer matters.
        if self.connection.send_notification(CancelNotification::new(self.session.clone())).is_ok()
            && let Ok(Ok(response)) = tokio::time::timeout(self.terms.grace, turn).await
        {
            self.count(&response);
        }
        Err(failure)
    }

    async fn unwanted(&self) -> Failure {
        self.terms.patience.over().await.into()
    }
}

impl Conversation<'_> {
    /// What a turn that ended by itself gave.
    fn ended(&self, response: Result<PromptResponse, Error>) -> Result<String, Failure> {
        let response = response.map_err(|error| refused(&error))?;
        self.count(&response);
        let said = self.heard.take();
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

    fn count(&self, response: &PromptResponse) {
        let Some(usage) = &response.usage else { return };
        let [read, created] =
            [usage.cached_read_tokens, usage.cached_write_tokens].map(Option::unwrap_or_default);
        let all = usage.input_tokens.saturating_add(read).saturating_add(created);
        let written = usage.output_tokens.saturating_add(usage.thought_tokens.unwrap_or_default());
        self.terms.meter.add(Usage::new(all, written).cached(read, created));
    }
}

fn stalled(terms: &Terms<'_>) -> Failure {
    let ms = terms.stall.unwrap_or_default().as_millis();
    Failure::new(FailureKind::Stall, format!("nothing came for {ms} ms"))
}

/// The agent answered a request with an error, or not at all.
fn refused(error: &Error) -> Failure {
    if is_incoming_transport_closed(error) {
        return Failure::new(FailureKind::Exit, CLOSED);
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

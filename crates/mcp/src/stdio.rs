//! The server over a pair of streams, for one client.

mod lines;
mod output;

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use fanfold::CancellationToken;
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::{RoleServer, ServerInitializeError, serve_server_with_ct};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};

use self::lines::{Line, Lines};
use self::output::Output;
use crate::incoming::{self, Fault, MAX_BYTES, Refusal};
use crate::session::Session;

/// How long calls may go on after the client has closed its end: a client that writes its requests and closes, as
/// scripts do, still gets the answers that are quick.
const FAREWELL: Duration = Duration::from_secs(1);

/// Why a client could not be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// It did not introduce itself as a client of the Model Context Protocol does.
    #[error("the client did not begin as MCP clients do: {0}")]
    Begin(#[source] Box<ServerInitializeError>),
    /// The task that served it is gone.
    #[error("the task that served the client broke: {0}")]
    Broken(#[source] tokio::task::JoinError),
}

pub(crate) async fn serve(
    session: Session,
    reader: impl AsyncRead + Send + Unpin + 'static,
    writer: impl AsyncWrite + Send + Unpin + 'static,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let gone = session.gone().clone();
    let (output, writing) = Output::new(writer);
    let streams = Streams::new(reader, output.clone(), gone.clone());
    let served = attend(session, streams, gone, stop).await;
    output.close();
    // It ends within a second, and a panic of its would be as good as that.
    let _ = writing.await;
    served
}

async fn attend(
    session: Session,
    streams: Streams<impl AsyncRead + Send + Unpin + 'static>,
    gone: CancellationToken,
    stop: CancellationToken,
) -> Result<(), ServeError> {
    let closed = streams.closed.clone();
    let service = match serve_server_with_ct(session, streams, stop.child_token()).await {
        Ok(service) => service,
        // Somebody who asked for nothing.
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(error) => return Err(ServeError::Begin(Box::new(error))),
    };
    let ending = async {
        closed.cancelled().await;
        tokio::time::sleep(FAREWELL).await;
        gone.cancel();
        std::future::pending().await
    };
    tokio::select! {
        ended = service.waiting() => ended.map(drop).map_err(ServeError::Broken),
        () = ending => Ok(()),
    }
}

/// Messages over a pair of streams, one a line.
///
/// `rmcp` has a transport like it. That one leaves lines that it cannot read without an answer, and does not end while
/// its client leaves an answer unread.
struct Streams<R> {
    lines: Lines<R>,
    output: Output,
    /// Requests that wait until the client reads answers, and their size in bytes.
    waiting: VecDeque<(ClientJsonRpcMessage, usize)>,
    waiting_bytes: usize,
    /// Fires when the client has closed its end.
    closed: CancellationToken,
    /// Fires some time later.
    gone: CancellationToken,
}

impl<R: AsyncRead + Send + Unpin> Streams<R> {
    fn new(reader: R, output: Output, gone: CancellationToken) -> Self {
        Self {
            lines: Lines::new(reader),
            output,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            closed: CancellationToken::new(),
            gone,
        }
    }

    /// Reads a message, and answers one that cannot be read.
    fn read(&mut self, line: &[u8]) -> Option<ClientJsonRpcMessage> {
        let read = incoming::read(line).and_then(|readable| {
            serde_json::from_str(&readable.text).map_err(|error| match readable.id {
                Value::Null => Fault::Ignored,
                id => {
                    let message = format!("this is no request: {error}");
                    Fault::Refused(Refusal::new(id, Refusal::INVALID_REQUEST, message))
                }
            })
        });
        match read {
            Ok(message) => return Some(message),
            Err(Fault::Refused(refusal)) => self.refuse(&refusal),
            Err(Fault::Ignored) => {}
        }
        None
    }

    fn refuse(&self, refusal: &Refusal) {
        self.output.push(refusal.json().to_string().into_bytes());
    }
}

impl<R: AsyncRead + Send + Unpin + 'static> Transport<RoleServer> for Streams<R> {
    type Error = Infallible;

    /// Queues a message. While the client reads nothing, notifications are dropped: a run sends them without end.
    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        let dropped = matches!(message, JsonRpcMessage::Notification(_)) && self.output.is_full();
        // Types with string keys and finite numbers alone: they have a JSON form.
        if let Ok(line) = serde_json::to_vec(&message)
            && !dropped
        {
            self.output.push(line);
        }
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        loop {
            if !self.output.is_full()
                && let Some((message, bytes)) = self.waiting.pop_front()
            {
                self.waiting_bytes -= bytes;
                return Some(message);
            }
            if self.output.broken().is_cancelled() || (self.closed.is_cancelled() && self.waiting.is_empty())
            {
                self.closed.cancel();
                return None;
            }
            let reads = !self.closed.is_cancelled() && self.waiting_bytes <= MAX_BYTES;
            let line = tokio::select! {
                biased;
                () = self.output.broken().cancelled() => continue,
                // Its client no longer waits for answers.
                () = self.gone.cancelled() => return None,
                () = self.output.has_room(), if !self.waiting.is_empty() => continue,
                line = self.lines.next(), if reads => line,
            };
            match line {
                Line::Whole(line) => match self.read(&line) {
                    Some(message @ JsonRpcMessage::Request(_)) => {
                        self.waiting_bytes += line.len();
                        self.waiting.push_back((message, line.len()));
                    }
                    // It makes nothing that would have to be written, and may end what does.
                    Some(message) => return Some(message),
                    None => {}
                },
                Line::TooLong(id) => {
                    let message = format!(
                        "the message has more than {MAX_BYTES} bytes; pass less, or where to find it"
                    );
                    self.refuse(&Refusal::new(id, Refusal::PARSE, message));
                }
                Line::End => self.closed.cancel(),
            }
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.output.close();
        Ok(())
    }
}

//! The server over a pair of streams, for one client.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use fanfold::CancellationToken;
use rmcp::service::{ServerInitializeError, serve_server_with_ct};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

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
    let closed = CancellationToken::new();
    let reader = Watched { reader, closed: closed.clone() };
    let service = match serve_server_with_ct(session, (reader, writer), stop.child_token()).await {
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

/// A reader that tells when it has come to its end.
struct Watched<R> {
    reader: R,
    closed: CancellationToken,
}

impl<R: AsyncRead + Unpin> AsyncRead for Watched<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.reader).poll_read(context, buffer);
        if let Poll::Ready(result) = &read
            && (result.is_err() || (buffer.filled().len() == before && buffer.remaining() > 0))
        {
            self.closed.cancel();
        }
        read
    }
}

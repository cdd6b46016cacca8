//! The sessions of HTTP clients.
//!
//! `rmcp` has a manager of sessions too. That one forgets an answer with the connection it was sent over, and stops all of
//! a session while its client leaves one stream unread.

use std::collections::HashMap;
use std::convert::Infallible;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures::Stream;
use rmcp::model::{ClientJsonRpcMessage, GetExtensions as _, JsonRpcMessage, ServerJsonRpcMessage};
use rmcp::service::RoleServer;
use rmcp::transport::Transport;
use rmcp::transport::streamable_http_server::session::{ServerSseMessage, SessionId, SessionManager};
use tokio::sync::mpsc;
use uuid::Uuid;

use super::mailbox::Mailbox;
use crate::delivery::SessionEnd;

/// How many messages of a client may wait for the server to take them, which it does at once.
const CAPACITY: usize = 64;

#[derive(Default)]
pub(super) struct Sessions(Mutex<HashMap<SessionId, Arc<Mailbox>>>);

/// Why a session does not do what was asked.
#[derive(Debug, thiserror::Error)]
pub(super) enum SessionError {
    #[error("there is no such session, or no longer")]
    Unknown,
    #[error("there is no such event, or no longer")]
    UnknownEvent,
}

impl Sessions {
    /// Ends a session, if there is one.
    pub(super) fn close(&self, id: &str) {
        if let Some(mailbox) = self.lock().remove(id) {
            mailbox.ended().cancel();
        }
    }

    fn get(&self, id: &SessionId) -> Result<Arc<Mailbox>, SessionError> {
        self.lock().get(id).cloned().ok_or(SessionError::Unknown)
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<SessionId, Arc<Mailbox>>> {
        // Nothing that holds the lock can leave the map half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl SessionManager for Sessions {
    type Error = SessionError;
    type Transport = ServerEnd;

    async fn create_session(&self) -> Result<(SessionId, ServerEnd), SessionError> {
        let id: SessionId = Uuid::new_v4().to_string().into();
        let (mailbox, messages) = Mailbox::new(CAPACITY);
        self.lock().insert(id.clone(), mailbox.clone());
        Ok((id, ServerEnd { mailbox, messages }))
    }

    async fn initialize_session(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<ServerJsonRpcMessage, SessionError> {
        self.get(id)?.initialize(message).await.ok_or(SessionError::Unknown)
    }

    async fn has_session(&self, id: &SessionId) -> Result<bool, SessionError> {
        Ok(self.lock().contains_key(id))
    }

    async fn close_session(&self, id: &SessionId) -> Result<(), SessionError> {
        self.close(id);
        Ok(())
    }

    async fn create_stream(
        &self,
        id: &SessionId,
        mut message: ClientJsonRpcMessage,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let mailbox = self.get(id)?;
        if let JsonRpcMessage::Request(request) = &mut message {
            request.request.extensions_mut().insert(SessionEnd(mailbox.ended().clone()));
        }
        let reader = mailbox.begin(&message);
        if !mailbox.send(message).await {
            return Err(SessionError::Unknown);
        }
        Ok(reader.messages())
    }

    async fn accept_message(
        &self,
        id: &SessionId,
        message: ClientJsonRpcMessage,
    ) -> Result<(), SessionError> {
        if self.get(id)?.send(message).await { Ok(()) } else { Err(SessionError::Unknown) }
    }

    async fn create_standalone_stream(
        &self,
        id: &SessionId,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        Ok(self.get(id)?.common().messages())
    }

    async fn resume(
        &self,
        id: &SessionId,
        last_event_id: String,
    ) -> Result<impl Stream<Item = ServerSseMessage> + Send + Sync + 'static, SessionError> {
        let reader = self.get(id)?.resume(&last_event_id).ok_or(SessionError::UnknownEvent)?;
        Ok(reader.messages())
    }
}

/// The server's end of a session. Nothing that it does waits for the client.
pub(super) struct ServerEnd {
    mailbox: Arc<Mailbox>,
    messages: mpsc::Receiver<ClientJsonRpcMessage>,
}

impl Transport<RoleServer> for ServerEnd {
    type Error = Infallible;

    fn send(
        &mut self,
        message: ServerJsonRpcMessage,
    ) -> impl Future<Output = Result<(), Infallible>> + Send + 'static {
        self.mailbox.put(message);
        std::future::ready(Ok(()))
    }

    async fn receive(&mut self) -> Option<ClientJsonRpcMessage> {
        tokio::select! {
            biased;
            () = self.mailbox.ended().cancelled() => None,
            message = self.messages.recv() => message,
        }
    }

    async fn close(&mut self) -> Result<(), Infallible> {
        self.mailbox.ended().cancel();
        Ok(())
    }
}

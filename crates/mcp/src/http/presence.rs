//! Which sessions have a client at the other end.
//!
//! A client that dies says nothing: its connections close, and that is all. So a session that has had no request and no
//! stream open for a while is closed, which cancels its runs. One that merely is silent is not: its client listens.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use rmcp::transport::streamable_http_server::session::SessionManager as _;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use tokio::time::Instant;

const SESSION_HEADER: &str = "mcp-session-id";

#[derive(Clone)]
pub(super) struct Presence {
    sessions: Arc<Mutex<HashMap<String, Connections>>>,
    idle: Duration,
}

struct Connections {
    open: usize,
    last_closed: Instant,
}

impl Presence {
    pub(super) fn new(idle: Duration) -> Self {
        Self { sessions: Arc::default(), idle }
    }

    /// Closes sessions whose clients have gone, for ever.
    pub(super) async fn reap(&self, manager: &LocalSessionManager) {
        let pace = (self.idle / 4).max(Duration::from_millis(50));
        loop {
            tokio::time::sleep(pace).await;
            for session in self.take_deserted() {
                // One that was closed already is as good.
                let _ = manager.close_session(&session.into()).await;
            }
        }
    }

    fn take_deserted(&self) -> Vec<String> {
        let deserted =
            |_: &String, it: &mut Connections| it.open == 0 && it.last_closed.elapsed() >= self.idle;
        self.lock().extract_if(deserted).map(|(session, _)| session).collect()
    }

    /// Notes a session that the server has just made.
    fn begin(&self, session: &str) {
        self.lock().entry(session.to_owned()).or_insert(Connections { open: 0, last_closed: Instant::now() });
    }

    /// Notes a connection of a session, until the guard is dropped. Sessions that the server did not make are not
    /// noted.
    fn enter(&self, session: &str) -> Option<Connection> {
        self.lock().get_mut(session)?.open += 1;
        Some(Connection { presence: self.clone(), session: session.to_owned() })
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<String, Connections>> {
        // Nothing that holds the lock can leave the map half-written.
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request of a session, and the stream that answers it.
struct Connection {
    presence: Presence,
    session: String,
}

impl Drop for Connection {
    fn drop(&mut self) {
        if let Some(connections) = self.presence.lock().get_mut(&self.session) {
            connections.open -= 1;
            connections.last_closed = Instant::now();
        }
    }
}

pub(super) async fn track(State(presence): State<Presence>, request: Request, next: Next) -> Response {
    let connection = session(request.headers()).and_then(|session| presence.enter(session));
    let response = next.run(request).await;
    if let Some(session) = session(response.headers()) {
        presence.begin(session);
    }
    let Some(connection) = connection else { return response };
    // The body is dropped when the client has it, or has gone.
    let (parts, body) = response.into_parts();
    let body = body.into_data_stream().inspect(move |_| {
        let _ = &connection;
    });
    Response::from_parts(parts, Body::from_stream(body))
}

fn session(headers: &HeaderMap) -> Option<&str> {
    headers.get(SESSION_HEADER)?.to_str().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_session_is_deserted_once_its_last_connection_is_closed_for_long_enough() {
        let presence = Presence::new(Duration::ZERO);
        assert!(presence.enter("a").is_none(), "the server made no such session");
        presence.begin("a");
        let (first, second) = (presence.enter("a"), presence.enter("a"));
        drop(first);
        assert!(presence.take_deserted().is_empty());
        drop(second);
        assert_eq!(presence.take_deserted(), ["a"]);
        assert!(presence.take_deserted().is_empty());

        let patient = Presence::new(Duration::from_secs(3600));
        patient.begin("b");
        assert!(patient.take_deserted().is_empty());
    }
}

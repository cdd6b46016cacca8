//! Which sessions have a client at the other end, and how many connections may wait at once.
//!
//! A client that dies says nothing: its connections close, and that is all. So a session that has had no request and no
//! stream open for a while is closed, which cancels its runs. One that merely is silent is not: its client listens.
//!
//! A connection takes one of the files that the process may open. So no client may hold all of them.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use tokio::time::Instant;

use super::refusal::refuse;
use super::sessions::Sessions;

const SESSION_HEADER: &str = "mcp-session-id";

#[derive(Clone)]
pub(super) struct Presence {
    shared: Arc<Mutex<Shared>>,
    idle: Duration,
    most: Most,
}

#[derive(Default)]
struct Shared {
    sessions: HashMap<String, Connections>,
    open: Open,
}

struct Connections {
    open: Open,
    last_closed: Instant,
}

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Messages that belong to no request (`GET`).
    Stream,
    /// The answer to a request.
    Answer,
}

/// How many connections are open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Open {
    streams: usize,
    answers: usize,
}

impl Open {
    fn get(self, kind: Kind) -> usize {
        match kind {
            Kind::Stream => self.streams,
            Kind::Answer => self.answers,
        }
    }

    fn of(&mut self, kind: Kind) -> &mut usize {
        match kind {
            Kind::Stream => &mut self.streams,
            Kind::Answer => &mut self.answers,
        }
    }
}

/// How many connections may be open.
#[derive(Clone, Copy, Debug)]
struct Most {
    of_session: Open,
    in_all: Open,
}

impl Most {
    /// So that a process that may open this many files has some left.
    fn with_files(files: usize) -> Self {
        Self {
            // A client needs one stream, and a few while connections that were dropped are not noticed yet. Answers are
            // waited for by runs, of which no more are kept.
            of_session: Open { streams: 16, answers: 256 },
            in_all: Open { streams: (files / 4).clamp(8, 1024), answers: (files / 2).clamp(16, 4096) },
        }
    }
}

/// How many files the process may open.
fn open_files() -> usize {
    #[cfg(unix)]
    {
        let most = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
        most.and_then(|most| usize::try_from(most).ok()).unwrap_or(usize::MAX)
    }
    #[cfg(not(unix))]
    8192
}

impl Presence {
    pub(super) fn new(idle: Duration) -> Self {
        Self { shared: Arc::default(), idle, most: Most::with_files(open_files()) }
    }

    /// Closes sessions whose clients have gone, for ever.
    pub(super) async fn reap(&self, sessions: &Sessions) {
        let pace = (self.idle / 4).max(Duration::from_millis(50));
        loop {
            tokio::time::sleep(pace).await;
            self.take_deserted().iter().for_each(|session| sessions.close(session));
        }
    }

    /// Waits until no request waits for its answer.
    pub(super) async fn all_answered(&self) {
        while self.lock().open.answers > 0 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    fn take_deserted(&self) -> Vec<String> {
        let deserted = |_: &String, it: &mut Connections| {
            it.open == Open::default() && it.last_closed.elapsed() >= self.idle
        };
        self.lock().sessions.extract_if(deserted).map(|(session, _)| session).collect()
    }

    /// Notes a session that the server has just made.
    fn begin(&self, session: &str) {
        let connections = Connections { open: Open::default(), last_closed: Instant::now() };
        self.lock().sessions.entry(session.to_owned()).or_insert(connections);
    }

    /// Notes a connection, and its session if the server made that, until the guard is dropped.
    ///
    /// # Errors
    /// When too many are open, with what to do about it.
    fn enter(&self, session: Option<&str>, kind: Kind) -> Result<Connection, (StatusCode, &'static str)> {
        let mut shared = self.lock();
        let shared = &mut *shared;
        let known = session.and_then(|session| shared.sessions.get_mut(session));
        if shared.open.get(kind) >= self.most.in_all.get(kind) {
            let message = "the server has too many connections open; close some that are not needed, or try again later";
            return Err((StatusCode::SERVICE_UNAVAILABLE, message));
        }
        let session = match known {
            Some(connections) if connections.open.get(kind) >= self.most.of_session.get(kind) => {
                let message = "this session has too many connections open; close those that are not needed";
                return Err((StatusCode::TOO_MANY_REQUESTS, message));
            }
            Some(connections) => {
                *connections.open.of(kind) += 1;
                session.map(str::to_owned)
            }
            None => None,
        };
        *shared.open.of(kind) += 1;
        Ok(Connection { presence: self.clone(), session, kind })
    }

    fn lock(&self) -> MutexGuard<'_, Shared> {
        // Nothing that holds the lock can leave the map half-written.
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A request, and the stream that answers it.
struct Connection {
    presence: Presence,
    session: Option<String>,
    kind: Kind,
}

impl Drop for Connection {
    fn drop(&mut self) {
        let mut shared = self.presence.lock();
        let shared = &mut *shared;
        *shared.open.of(self.kind) -= 1;
        if let Some(connections) =
            self.session.as_deref().and_then(|session| shared.sessions.get_mut(session))
        {
            *connections.open.of(self.kind) -= 1;
            connections.last_closed = Instant::now();
        }
    }
}

pub(super) async fn track(State(presence): State<Presence>, request: Request, next: Next) -> Response {
    let kind = if request.method() == Method::GET { Kind::Stream } else { Kind::Answer };
    let connection = match presence.enter(session(request.headers()), kind) {
        Ok(connection) => connection,
        Err((status, message)) => {
            let mut refused = refuse(status, message);
            // Kept open it would be one more.
            refused.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
            refused.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("5"));
            return refused;
        }
    };
    let response = next.run(request).await;
    if let Some(session) = session(response.headers()) {
        presence.begin(session);
    }
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
        let enter = |kind| presence.enter(Some("a"), kind).ok().unwrap();
        assert_eq!(enter(Kind::Answer).session, None, "the server made no such session");
        presence.begin("a");
        let (first, second) = (enter(Kind::Answer), enter(Kind::Stream));
        drop(first);
        assert!(presence.take_deserted().is_empty());
        drop(second);
        assert_eq!(presence.take_deserted(), ["a"]);
        assert!(presence.take_deserted().is_empty());

        let patient = Presence::new(Duration::from_secs(3600));
        patient.begin("b");
        assert!(patient.take_deserted().is_empty());
    }

    #[test]
    fn no_client_holds_all_connections_at_any_number_of_files() {
        for files in [0, 256, 1024, usize::MAX] {
            let mut presence = Presence::new(Duration::ZERO);
            presence.most = Most::with_files(files);
            let in_all = presence.most.in_all;
            assert!(files < 256 || in_all.streams + in_all.answers < files);
            presence.begin("a");
            let of_one: Vec<_> =
                std::iter::from_fn(|| presence.enter(Some("a"), Kind::Stream).ok()).collect();
            assert_eq!(of_one.len(), in_all.streams.min(16), "{files}");
            let others: Vec<_> =
                std::iter::from_fn(|| presence.enter(Some("unknown"), Kind::Stream).ok()).collect();
            assert_eq!(of_one.len() + others.len(), in_all.streams, "{files}");
            let refused = presence.enter(None, Kind::Stream).err().map(|(status, _)| status);
            assert_eq!(refused, Some(StatusCode::SERVICE_UNAVAILABLE));
            assert!(presence.enter(Some("a"), Kind::Answer).is_ok(), "others are answered");
            drop((of_one, others));
            assert_eq!(presence.lock().open, Open::default());
        }
    }
}

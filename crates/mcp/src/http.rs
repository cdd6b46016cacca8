//! The server over streamable HTTP.

mod exchange;
mod guard;
mod mailbox;
mod presence;
mod refusal;
mod sessions;

use std::fmt;
use std::future::IntoFuture as _;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::serve::ListenerExt as _;
use fanfold::CancellationToken;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::net::TcpListener;

use self::guard::Guard;
use self::presence::Presence;
use self::sessions::Sessions;
use crate::incoming::MAX_BYTES;
use crate::session::Session;

/// Where the server answers.
pub const HTTP_PATH: &str = "/mcp";

/// How long calls have to be answered once the server stops.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

/// How long connections have to end after that; what a client has sent half of may never come.
const FAREWELL: Duration = Duration::from_secs(1);

/// How the server behaves towards HTTP clients.
#[derive(Clone)]
#[non_exhaustive]
pub struct HttpOptions {
    /// The bearer token that every request must carry. Default: none is asked for. An empty one lets nobody in.
    pub token: Option<String>,
    /// Names that clients reach the server by, for the check against DNS rebinding: hosts, or hosts with ports.
    /// `localhost`, `127.0.0.1` and `::1` always are.
    pub hosts: Vec<String>,
    /// A session whose client has no request and no stream open for this long is over, and its runs with it.
    /// Default 5 minutes.
    pub session_idle: Duration,
}

impl fmt::Debug for HttpOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { token, hosts, session_idle } = self;
        f.debug_struct("HttpOptions")
            // Not the token itself: whoever has it can run agents.
            .field("token", &token.as_ref().map(|_| "…"))
            .field("hosts", hosts)
            .field("session_idle", session_idle)
            .finish()
    }
}

impl Default for HttpOptions {
    fn default() -> Self {
        Self { token: None, hosts: Vec::new(), session_idle: Duration::from_secs(300) }
    }
}

impl HttpOptions {
    /// Every request must carry this bearer token.
    #[must_use]
    pub fn token(mut self, token: impl Into<String>) -> Self {
        self.token = Some(token.into());
        self
    }

    /// Clients reach the server by this name too.
    #[must_use]
    pub fn host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into());
        self
    }

    /// How long a session lives without its client.
    #[must_use]
    pub fn session_idle(mut self, idle: Duration) -> Self {
        self.session_idle = idle;
        self
    }
}

/// Serves until `stop` fires, then ends every request and stream.
pub(crate) async fn serve(
    session: impl Fn() -> Session + Send + Sync + 'static,
    listener: TcpListener,
    options: HttpOptions,
    stop: CancellationToken,
) -> io::Result<()> {
    let sessions = Arc::new(Sessions::default());
    let presence = Presence::new(options.session_idle);
    let streams = CancellationToken::new();
    let loopback = ["localhost", "127.0.0.1", "[::1]"];
    let mut config = StreamableHttpServerConfig::default()
        .with_allowed_origins(loopback.map(|host| format!("http://{host}:*")))
        .with_max_request_body_bytes(MAX_BYTES)
        .with_cancellation_token(streams.clone());
    config.allowed_hosts.extend(options.hosts);
    let service = StreamableHttpService::new(move || Ok(session()), sessions.clone(), config);
    let router = Router::new()
        .route_service(HTTP_PATH, service)
        .layer(from_fn(exchange::exchange))
        .layer(from_fn_with_state(presence.clone(), presence::track))
        .layer(from_fn_with_state(Arc::new(Guard::new(options.token)), guard::check));
    let reaper = {
        let presence = presence.clone();
        tokio::spawn(async move { presence.reap(&sessions).await })
    };
    // An answer is written in parts: held back until the part before is acknowledged, it would be 40 ms late.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    let serving = axum::serve(listener, router).with_graceful_shutdown(stop.clone().cancelled_owned());
    let late = async {
        stop.cancelled().await;
        // Calls that wait for a run are told that it was cancelled; they would wait on otherwise.
        let _ = tokio::time::timeout(LAST_ANSWERS, presence.all_answered()).await;
        streams.cancel();
        tokio::time::sleep(FAREWELL).await;
    };
    let served = tokio::select! {
        served = serving.into_future() => served,
        () = late => Ok(()),
    };
    reaper.abort();
    served
}

/// The address that clients use.
pub fn http_url(address: SocketAddr) -> String {
    format!("http://{address}{HTTP_PATH}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_is_not_printed() {
        let options = HttpOptions::default().token("a-secret").host("example.com");
        let printed = format!("{options:?}");
        assert!(printed.contains("example.com") && !printed.contains("a-secret"), "{printed}");
    }
}

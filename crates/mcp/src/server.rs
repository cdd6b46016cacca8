//! What a host makes: one server for all its clients.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use fanfold::{CancellationToken, Engine, WorkflowError};
use fanfold_tool::{Runs, ToolConfig, WorkflowTool};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;

use crate::http::{self, HttpOptions};
use crate::line::Lines;
use crate::sampling::Sampling;
use crate::session::Session;
use crate::stdio::{self, ServeError};
use crate::tools::{SavedWorkflow, Tools};

/// Who runs the `agent()` calls of clients' scripts.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub enum Agents {
    /// The engine's default provider.
    #[default]
    Engine,
    /// The client's own model. A client that offers no sampling can run scripts without agents alone.
    Client(Sampling),
    /// The client's own model, or for clients that offer no sampling the engine's default provider; with what models
    /// are told then.
    ClientOr(Sampling, String),
}

/// How a server behaves.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct ServerOptions {
    /// Who runs `agent()`. Default: the engine's default provider.
    pub agents: Agents,
    /// A call that waits for its run is answered after this time even if the run goes on; the answer says how to wait
    /// on. Default: 50 seconds for a client that asks for no progress, since clients give up after a minute if nothing
    /// is heard; none for others.
    pub answer_within: Option<Duration>,
    /// Saved workflows that are tools of their own. Default: none.
    pub saved: Vec<SavedWorkflow>,
}

/// The workflow tool as an MCP server. Cheap to clone; clones serve the same runs.
///
/// A run belongs to the session that started it, and to those that joined it by an equal call, and is cancelled when they
/// have ended: standard input is closed, an HTTP session is deleted or deserted. Over HTTP, protocol 2026-07-28 has no sessions: there a call that waits is cancelled
/// when its client goes, and runs in the background belong to the server.
#[derive(Clone)]
pub struct Server {
    pub(crate) shared: Arc<Shared>,
}

pub(crate) struct Shared {
    pub(crate) tool: WorkflowTool,
    pub(crate) tools: Tools,
    pub(crate) lines: Lines,
    pub(crate) options: ServerOptions,
}

impl Server {
    /// A server that runs scripts on this engine. Where `options` name a [`Sampling`], the engine must know it as
    /// [`Sampling::NAME`].
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a configuration that [`ToolConfig::validate`] refuses, and for a saved workflow whose name
    /// another tool has.
    pub fn new(engine: Engine, config: ToolConfig, options: ServerOptions) -> Result<Self, WorkflowError> {
        let tool = WorkflowTool::new(engine, config)?.with_runs(Runs::default());
        let tools = Tools::new(&tool, &options.saved)?;
        Ok(Self { shared: Arc::new(Shared { tool, tools, lines: Lines::default(), options }) })
    }

    /// Serves one client over the process's standard input and output, until the client closes the input or `stop`
    /// fires. Nothing else may write to standard output meanwhile.
    ///
    /// # Errors
    /// When what the client sends is no MCP, or the output breaks before the client has introduced itself.
    ///
    /// # Panics
    /// Outside a Tokio runtime with I/O and time.
    pub async fn serve_stdio(&self, stop: CancellationToken) -> Result<(), ServeError> {
        let (reader, writer) = rmcp::transport::io::stdio_pipes();
        self.serve(reader, writer, stop).await
    }

    /// Serves one client over any pair of streams, as [`Server::serve_stdio`] does.
    ///
    /// # Errors
    /// As [`Server::serve_stdio`].
    pub async fn serve(
        &self,
        reader: impl AsyncRead + Send + Unpin + 'static,
        writer: impl AsyncWrite + Send + Unpin + 'static,
        stop: CancellationToken,
    ) -> Result<(), ServeError> {
        stdio::serve(Session::of_connection(self.shared.clone()), reader, writer, stop).await
    }

    /// Serves clients over streamable HTTP, at [`HTTP_PATH`](crate::HTTP_PATH), until `stop` fires.
    ///
    /// # Errors
    /// When the listener breaks.
    ///
    /// # Panics
    /// Outside a Tokio runtime with I/O and time.
    pub async fn serve_http(
        &self,
        listener: TcpListener,
        options: HttpOptions,
        stop: CancellationToken,
    ) -> io::Result<()> {
        let shared = self.shared.clone();
        let session = {
            let stop = stop.clone();
            move || Session::of_http(shared.clone(), stop.child_token())
        };
        http::serve(session, listener, options, stop).await
    }

    /// Starts no further runs, cancels those that run, and waits until nothing of them is left.
    pub async fn shutdown(&self) {
        if let Some(runs) = self.shared.tool.runs() {
            runs.shutdown().await;
        }
    }
}

impl std::fmt::Debug for Server {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Server").field("options", &self.shared.options).finish_non_exhaustive()
    }
}

//! A client that is nothing but JSON, one message a line.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use fanfold::{AgentType, CancellationToken, Engine};
use fanfold_agents::Scripted;
use fanfold_mcp::{Sampling, ServeError, Server, ServerOptions};
use fanfold_tool::ToolConfig;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader, DuplexStream, ReadHalf, WriteHalf};
use tokio::task::JoinHandle;

/// A server with scripted agents, which are the second thing.
pub(crate) fn server(options: impl FnOnce(&Sampling, &mut ServerOptions)) -> (Server, Scripted) {
    let (agents, sampling) = (Scripted::new(), Sampling::new());
    let mut limits = fanfold::Limits::default();
    limits.max_concurrent_agents = 4;
    let reviewer = Arc::new(AgentType::new("reviewer", "Be strict."));
    let engine = Engine::builder()
        .agent_types(BTreeMap::from([("reviewer".to_owned(), reviewer)]))
        .provider("spawn", agents.clone())
        .provider(Sampling::NAME, sampling.clone())
        .limits(limits)
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .build()
        .expect("the engine builds");
    let mut chosen = ServerOptions::default();
    options(&sampling, &mut chosen);
    (Server::new(engine, ToolConfig::default(), chosen).expect("the server builds"), agents)
}

/// The client's end of a connection.
pub(crate) struct Wire {
    reader: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    writer: WriteHalf<DuplexStream>,
    /// What was read while something else was waited for.
    unread: VecDeque<Value>,
    pub(crate) served: JoinHandle<Result<(), ServeError>>,
    pub(crate) stop: CancellationToken,
    last_id: u64,
    modern: bool,
    capabilities: Value,
}

impl Wire {
    /// Connects a client of protocol 2025-11-25, which introduces itself.
    pub(crate) async fn connect(server: &Server, capabilities: Value) -> Self {
        let mut wire = Self::open(server, capabilities, false);
        let client = json!({"name": "wire", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-11-25", "capabilities": wire.capabilities, "clientInfo": client});
        let result = wire.request("initialize", params).await["result"].clone();
        assert_eq!(result["protocolVersion"], "2025-11-25");
        assert!(result["instructions"].as_str().unwrap().starts_with("Use the workflow tool ONLY"));
        wire.send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        wire
    }

    /// Connects a client of protocol 2026-07-28, whose requests each say who it is.
    pub(crate) fn connect_modern(server: &Server, capabilities: Value) -> Self {
        Self::open(server, capabilities, true)
    }

    fn open(server: &Server, capabilities: Value, modern: bool) -> Self {
        let (ours, theirs) = tokio::io::duplex(1 << 16);
        let (reader, writer) = tokio::io::split(theirs);
        let (server, stop) = (server.clone(), CancellationToken::new());
        let token = stop.clone();
        let served = tokio::spawn(async move { server.serve(reader, writer, token).await });
        let (reader, writer) = tokio::io::split(ours);
        let reader = BufReader::new(reader).lines();
        Self { reader, writer, unread: VecDeque::new(), served, stop, last_id: 0, modern, capabilities }
    }

    pub(crate) async fn send(&mut self, message: Value) {
        self.send_bytes(format!("{message}\n").as_bytes()).await;
    }

    pub(crate) async fn send_bytes(&mut self, bytes: &[u8]) {
        self.writer.write_all(bytes).await.expect("the server reads");
    }

    /// Sends what is no message, and gives what comes back that has its id, 5, or none.
    pub(crate) async fn answer_to(&mut self, bytes: &[u8]) -> Value {
        self.send_bytes(bytes).await;
        self.send_bytes(b"\n").await;
        self.next(|message| {
            message.get("method").is_none() && (message["id"] == 5 || message["id"].is_null())
        })
        .await
    }

    /// Closes the client's end, and goes on reading.
    pub(crate) async fn close(&mut self) {
        self.writer.shutdown().await.expect("it is open");
    }

    /// Cancels a request.
    pub(crate) async fn cancel(&mut self, id: u64) {
        let params = json!({"requestId": id});
        self.send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})).await;
    }

    /// Sends a request; gives its id.
    pub(crate) async fn ask(&mut self, method: &str, mut params: Value) -> u64 {
        self.last_id += 1;
        if self.modern {
            let meta = &mut params["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
            meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "wire", "version": "1"});
            meta["io.modelcontextprotocol/clientCapabilities"] = self.capabilities.clone();
        }
        let message = json!({"jsonrpc": "2.0", "id": self.last_id, "method": method, "params": params});
        self.send(message).await;
        self.last_id
    }

    /// The next message that this holds of; others wait.
    pub(crate) async fn next(&mut self, wanted: impl Fn(&Value) -> bool) -> Value {
        if let Some(at) = self.unread.iter().position(&wanted) {
            return self.unread.remove(at).expect("it is there");
        }
        loop {
            let line = self.reader.next_line().await.expect("it reads").expect("the server is there");
            let message: Value = serde_json::from_str(&line).expect("every line is JSON");
            if wanted(&message) {
                return message;
            }
            self.unread.push_back(message);
        }
    }

    pub(crate) async fn answer(&mut self, id: u64) -> Value {
        self.next(|message| message["id"] == id && message.get("method").is_none()).await
    }

    pub(crate) async fn request(&mut self, method: &str, params: Value) -> Value {
        let id = self.ask(method, params).await;
        self.answer(id).await
    }

    /// Calls a tool; gives its result.
    pub(crate) async fn call(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.request("tools/call", json!({"name": name, "arguments": arguments})).await;
        assert!(answer.get("error").is_none(), "{answer}");
        answer["result"].clone()
    }

    /// Calls the workflow tool with this script.
    pub(crate) async fn run(&mut self, script: &str) -> Value {
        self.call("workflow", arguments(script)).await
    }

    /// Begins a call of the workflow tool with this script; gives its id.
    pub(crate) async fn begin(&mut self, script: &str) -> u64 {
        self.ask("tools/call", json!({"name": "workflow", "arguments": arguments(script)})).await
    }

    /// What was not waited for, so far.
    pub(crate) fn unread(&self) -> &VecDeque<Value> {
        &self.unread
    }
}

pub(crate) fn arguments(script: &str) -> Value {
    json!({"meta": {"name": "test", "description": "a test"}, "script": script})
}

pub(crate) fn text(result: &Value) -> &str {
    result["content"][0]["text"].as_str().expect("there is text")
}

/// Returns once the condition holds.
pub(crate) async fn until(condition: impl Fn() -> bool) {
    while !condition() {
        tokio::time::sleep(std::time::Duration::from_millis(2)).await;
    }
}

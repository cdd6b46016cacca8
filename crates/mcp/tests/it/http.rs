//! The server over HTTP: who is let in, and whose runs end when.

use std::net::SocketAddr;
use std::time::Duration;

use fanfold::CancellationToken;
use fanfold_agents::Scripted;
use fanfold_mcp::{HttpOptions, Server, http_url};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

use crate::wire::{arguments, server, until};

struct Site {
    server: Server,
    agents: Scripted,
    address: SocketAddr,
    stop: CancellationToken,
    served: JoinHandle<std::io::Result<()>>,
}

impl Site {
    async fn open(options: HttpOptions) -> Self {
        let (server, agents) = server(|_, _| {});
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let served = {
            let (server, stop) = (server.clone(), stop.clone());
            tokio::spawn(async move { server.serve_http(listener, options, stop).await })
        };
        Self { server, agents, address, stop, served }
    }

    /// Sends a request and leaves the connection open.
    async fn send(&self, method: &str, headers: &[(&str, &str)], body: &str) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        let mut head = format!("{method} /mcp HTTP/1.1\r\nContent-Length: {}\r\n", body.len());
        let usual = [
            ("Host", "localhost"),
            ("Accept", "application/json, text/event-stream"),
            ("Content-Type", "application/json"),
        ];
        let kept = usual.iter().filter(|(name, _)| !headers.iter().any(|(other, _)| name == other));
        for (name, value) in kept.chain(headers) {
            head += &format!("{name}: {value}\r\n");
        }
        stream.write_all(format!("{head}\r\n{body}").as_bytes()).await.unwrap();
        stream
    }

    /// Sends a request and gives the status, and what came until `enough`.
    async fn ask(&self, headers: &[(&str, &str)], body: &str, enough: &str) -> (u16, String) {
        let mut stream = self.send("POST", headers, body).await;
        let (mut answer, mut buffer) = (String::new(), [0; 4096]);
        while !answer.contains(enough) {
            let read = stream.read(&mut buffer).await.unwrap();
            if read == 0 {
                break;
            }
            answer += &String::from_utf8_lossy(&buffer[..read]);
        }
        (answer[9..12].parse().unwrap(), answer)
    }

    /// Begins a session; gives its id.
    async fn begin(&self) -> String {
        let (status, answer) = self.ask(&[], &initialize(), "serverInfo").await;
        assert_eq!(status, 200, "{answer}");
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        id.trim().to_owned()
    }
}

fn initialize() -> String {
    let client = json!({"name": "raw", "version": "1"});
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string()
}

fn call(name: &str, script: &str, modern: bool) -> String {
    let mut params = json!({"name": name, "arguments": arguments(script)});
    if modern {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "raw", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
    }
    json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string()
}

#[tokio::test]
async fn only_who_has_the_token_and_no_foreign_page_gets_in() {
    let site = Site::open(HttpOptions::default().token("secret").host("fanfold.test")).await;
    let token = ("Authorization", "Bearer secret");
    for (headers, expected) in [
        (vec![], 401),
        (vec![("Authorization", "Bearer guess")], 401),
        (vec![token], 200),
        (vec![token, ("Host", "127.0.0.1:1")], 200),
        (vec![token, ("Host", "fanfold.test")], 200),
        (vec![token, ("Host", "evil.test")], 403),
        (vec![token, ("Origin", "http://localhost:3000")], 200),
        (vec![token, ("Origin", "https://evil.test")], 403),
        (vec![token, ("Origin", "null")], 403),
    ] {
        let (status, answer) = site.ask(&headers, &initialize(), "\r\n\r\n").await;
        assert_eq!(status, expected, "{headers:?}: {answer}");
    }
    assert_eq!(http_url(site.address), format!("http://{}/mcp", site.address));
}

#[tokio::test]
async fn a_session_whose_client_has_gone_ends_with_its_runs() {
    let site = Site::open(HttpOptions::default().session_idle(Duration::from_millis(300))).await;
    let session = site.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let hang = "return await agent('hang:')";
    let (status, _) = site.ask(&headers, &call("workflow_start", hang, false), "runId").await;
    assert_eq!(status, 200);
    let waiting = site.send("POST", &headers, &call("workflow", hang, false)).await;
    let listening = site.send("GET", &headers, "").await;
    until(|| site.agents.running() == 2).await;
    // Whoever listens is there, however long nothing is said.
    drop(waiting);
    tokio::time::sleep(Duration::from_millis(900)).await;
    assert_eq!(site.agents.running(), 2);
    drop(listening);
    until(|| site.agents.running() == 0).await;
    let (status, _) = site.ask(&headers, &call("workflow", "return 1", false), "\r\n\r\n").await;
    assert_eq!(status, 404);
}

#[tokio::test]
async fn a_session_that_is_deleted_ends_with_its_runs() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    site.ask(&headers, &call("workflow_start", "return await agent('hang:')", false), "runId").await;
    until(|| site.agents.running() == 1).await;
    let _deleting = site.send("DELETE", &headers, "").await;
    until(|| site.agents.running() == 0).await;
}

#[tokio::test]
async fn without_sessions_a_call_ends_when_its_client_goes() {
    let site = Site::open(HttpOptions::default()).await;
    let headers =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "workflow")];
    let waiting = site.send("POST", &headers, &call("workflow", "return await agent('hang:')", true)).await;
    until(|| site.agents.running() == 1).await;
    drop(waiting);
    until(|| site.agents.running() == 0).await;
    let (status, answer) = site.ask(&headers, &call("workflow", "return 'there'", true), "\"there\"").await;
    assert_eq!(status, 200, "{answer}");
}

#[tokio::test]
async fn a_server_that_stops_ends_every_session_and_run() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let _waiting = site.send("POST", &headers, &call("workflow", "return await agent('hang:')", false)).await;
    let _listening = site.send("GET", &headers, "").await;
    until(|| site.agents.running() == 1).await;
    site.stop.cancel();
    site.served.await.unwrap().unwrap();
    site.server.shutdown().await;
    assert_eq!(site.agents.running(), 0);
}

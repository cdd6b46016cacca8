//! The server over HTTP: who is let in, and whose runs end when.

use std::net::SocketAddr;
use std::time::Duration;

use fanfold::CancellationToken;
use fanfold_agents::Scripted;
use fanfold_mcp::{Agents, HttpOptions, Sampling, Server, ServerOptions, http_url};
use serde_json::{Value, json};
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
        Self::open_with(options, |_, _| {}).await
    }

    async fn open_with(options: HttpOptions, choose: impl FnOnce(&Sampling, &mut ServerOptions)) -> Self {
        let (server, agents) = server(choose);
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

    /// Sends a request and gives the status and the JSON-RPC message that answers it.
    async fn message(&self, method: &str, headers: &[(&str, &str)], body: &str) -> (u16, Value) {
        let headers: Vec<_> = headers.iter().copied().chain([("Connection", "close")]).collect();
        let mut stream = self.send(method, &headers, body).await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let status = answer[9..12].parse().unwrap();
        let message = messages(&answer).into_iter().rfind(|message| message.get("method").is_none());
        (status, message.unwrap_or_else(|| panic!("{answer}")))
    }

    /// The value of a tool's answer, in a session.
    async fn call(&self, session: &str, name: &str, arguments: Value) -> Value {
        let params = json!({"name": name, "arguments": arguments});
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
        let (status, message) = self.message("POST", &[("Mcp-Session-Id", session)], &body).await;
        assert_eq!(status, 200, "{message}");
        message["result"]["structuredContent"].clone()
    }

    /// Sends a request that waits for a run, reads until it is told the run's id, and drops the connection. Gives that
    /// id and the last event's.
    async fn drop_call(&self, session: &str, script: &str) -> (String, String) {
        let params =
            json!({"name": "workflow", "arguments": arguments(script), "_meta": {"progressToken": 1}});
        let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
        let mut stream = self.send("POST", &[("Mcp-Session-Id", session)], &body).await;
        let (mut seen, mut buffer) = (String::new(), [0; 4096]);
        let told = |seen: &str| {
            let run = seen.split("\"run ").nth(1)?.get(..36)?.to_owned();
            let event = seen.rsplit("\nid: ").next()?.split('\n').next()?.trim().to_owned();
            seen.ends_with("\n\n\r\n").then_some((run, event))
        };
        loop {
            let read = stream.read(&mut buffer).await.unwrap();
            seen += &String::from_utf8_lossy(&buffer[..read]);
            if let Some(told) = told(&seen) {
                return told;
            }
        }
    }

    /// Begins a session; gives its id.
    async fn begin(&self) -> String {
        let (status, answer) = self.ask(&[], &initialize(), "serverInfo").await;
        assert_eq!(status, 200, "{answer}");
        let id = answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap();
        id.trim().to_owned()
    }
}

/// The JSON-RPC messages of a response, which may be a stream of events.
fn messages(response: &str) -> Vec<Value> {
    let lines = response.lines().map(|line| line.strip_prefix("data:").unwrap_or(line).trim());
    lines.filter(|line| line.starts_with('{')).map(|line| serde_json::from_str(line).unwrap()).collect()
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
    let mut waiting =
        site.send("POST", &headers, &call("workflow", "return await agent('hang:')", false)).await;
    let _listening = site.send("GET", &headers, "").await;
    until(|| site.agents.running() == 1).await;
    site.stop.cancel();
    let mut answer = String::new();
    waiting.read_to_string(&mut answer).await.unwrap();
    let told = &messages(&answer)[0]["result"]["structuredContent"];
    assert_eq!(told["state"], "cancelled", "a call that waits is told: {answer}");
    site.served.await.unwrap().unwrap();
    site.server.shutdown().await;
    assert_eq!(site.agents.running(), 0);
}

#[tokio::test]
async fn an_answer_whose_connection_was_dropped_is_fetched_by_the_last_event() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let (run_id, event) = site.drop_call(&session, "return await agent('sleep:200') + ' well'").await;
    // While the run goes on, and after its end.
    for _ in 0..2 {
        let headers = [("Mcp-Session-Id", session.as_str()), ("Last-Event-ID", event.as_str())];
        let (status, answer) = site.message("GET", &headers, "").await;
        assert_eq!((status, &answer["id"]), (200, &json!(2)), "{answer}");
        let value = &answer["result"]["structuredContent"];
        assert_eq!((&value["runId"], &value["result"]), (&json!(run_id), &json!("slept well")), "{answer}");
    }
    // It was fetched, so that the next equal call is a new one.
    let anew = site.call(&session, "workflow", arguments("return await agent('sleep:200') + ' well'")).await;
    assert_ne!(anew["runId"], run_id);
    for unknown in ["none", "1", "9/9", "1/99", "/"] {
        let headers = [("Mcp-Session-Id", session.as_str()), ("Last-Event-ID", unknown)];
        let mut stream = site.send("GET", &[&headers[..], &[("Connection", "close")]].concat(), "").await;
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 200") && messages(&answer).is_empty(), "{unknown}: {answer}");
    }
}

#[tokio::test]
async fn an_equal_call_finds_the_run_whose_connection_was_dropped() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let script = "return await agent('sleep:300')";
    let (run_id, _) = site.drop_call(&session, script).await;
    // It goes on.
    let found = site.call(&session, "workflow", arguments(script)).await;
    assert_eq!((&found["runId"], &found["result"]), (&json!(run_id), &json!("slept")), "{found}");
    // It has ended, and nobody has read its result.
    let script = "return [await agent('sleep:50')]";
    let (run_id, _) = site.drop_call(&session, script).await;
    let state =
        async || site.call(&session, "workflow_status", json!({"runId": run_id})).await["state"].clone();
    while state().await == "running" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let status = site.call(&session, "workflow_status", json!({})).await;
    let listed = status["runs"].as_array().unwrap().iter().find(|run| run["runId"] == run_id).unwrap();
    assert_eq!((&listed["state"], &listed["read"]), (&json!("completed"), &json!(false)));
    let found = site.call(&session, "workflow", arguments(script)).await;
    assert_eq!((&found["runId"], &found["result"]), (&json!(run_id), &json!(["slept"])), "{found}");
    let anew = site.call(&session, "workflow", arguments(script)).await;
    assert_ne!(anew["runId"], run_id, "its result was read");
}

#[tokio::test]
async fn a_client_that_begins_anew_finds_what_it_left_behind_and_nothing_else() {
    let site = Site::open(HttpOptions::default()).await;
    let (old, new) = (site.begin().await, site.begin().await);
    let script = "return await agent('sleep:600')";
    let (run_id, _) = site.drop_call(&old, script).await;
    let headers = [("Mcp-Session-Id", new.as_str())];
    let calling = site.send("POST", &headers, &call("workflow", script, false)).await;
    let listed = async || site.call(&new, "workflow_status", json!({})).await["runs"].clone();
    while listed().await != json!([]) && listed().await[0]["runId"] != run_id {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // The old session's end is not the run's any more.
    site.send("DELETE", &[("Mcp-Session-Id", old.as_str())], "").await;
    drop(calling);
    let found = site.call(&new, "workflow", arguments(script)).await;
    assert_eq!((&found["runId"], &found["result"]), (&json!(run_id), &json!("slept")), "{found}");

    // A run that somebody waits for is theirs.
    let other = site.begin().await;
    let theirs = [("Mcp-Session-Id", other.as_str())];
    let _waiting = site.send("POST", &theirs, &call("workflow", "return await agent('hang:')", false)).await;
    until(|| site.agents.running() == 1).await;
    let _calling = site.send("POST", &headers, &call("workflow", "return await agent('hang:')", false)).await;
    until(|| site.agents.running() == 2).await;
}

#[tokio::test]
async fn whatever_is_refused_is_refused_in_json_rpc() {
    let site = Site::open(HttpOptions::default().token("secret")).await;
    let (status, answer) = site.message("POST", &[], &initialize()).await;
    assert_eq!((status, &answer["error"]["code"], &answer["id"]), (401, &json!(-32000), &json!(null)));
    let site = Site::open(HttpOptions::default()).await;
    let unknown = ("Mcp-Session-Id", "00000000-0000-4000-8000-000000000000");
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let session = site.begin().await;
    let known = ("Mcp-Session-Id", session.as_str());
    let deep = format!("{}{}", "[".repeat(150), "]".repeat(150));
    let deep = format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{{"a":{deep}}}}}"#);
    let long =
        format!(r#"{{"jsonrpc":"2.0","id":5,"method":"ping","params":{{"a":"{}"}}}}"#, "x".repeat(17 << 20));
    for (method, headers, body, status, code, id) in [
        ("POST", vec![unknown], ping, 404, -32001, json!(5)),
        ("GET", vec![unknown], "", 404, -32001, json!(null)),
        ("POST", vec![], ping, 400, -32000, json!(5)),
        ("POST", vec![known, ("Accept", "text/html")], ping, 406, -32000, json!(5)),
        ("POST", vec![known, ("Content-Type", "text/plain")], ping, 415, -32000, json!(5)),
        ("POST", vec![known, ("Host", "evil.test")], ping, 403, -32000, json!(5)),
        ("PUT", vec![known], ping, 405, -32000, json!(null)),
        ("POST", vec![known], r#"{"jsonrpc":"2.0","id":5,"#, 400, -32700, json!(null)),
        ("POST", vec![known], "", 400, -32700, json!(null)),
        ("POST", vec![known], "[]", 400, -32700, json!(null)),
        ("POST", vec![known], r#"{"jsonrpc":"2.0","id":5}"#, 400, -32600, json!(5)),
        ("POST", vec![known], &deep, 400, -32602, json!(5)),
        ("POST", vec![known], &long, 413, -32700, json!(null)),
    ] {
        let (given, answer) = site.message(method, &headers, body).await;
        let told = (given, &answer["error"]["code"], &answer["id"]);
        assert_eq!(told, (status, &json!(code), &id), "{method} {headers:?}: {answer}");
        assert!(!answer["error"]["message"].as_str().unwrap().is_empty(), "{answer}");
    }
}

#[tokio::test]
async fn requests_that_are_hardly_messages_are_answered_over_http_too() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let modern =
        [("MCP-Protocol-Version", "2026-07-28"), ("Mcp-Method", "tools/call"), ("Mcp-Name", "workflow")];
    let half = call("workflow", "return 'HALF'", false).replace("HALF", "\\ud83d");
    let modern_half = call("workflow", "return 'HALF'", true).replace("HALF", "\\ud83d");
    for (headers, body) in
        [(vec![("Mcp-Session-Id", session.as_str())], half), (modern.to_vec(), modern_half)]
    {
        let (status, answer) = site.message("POST", &headers, &body).await;
        assert_eq!(
            (status, &answer["result"]["structuredContent"]["result"]),
            (200, &json!("\u{fffd}")),
            "{answer}"
        );
    }
    let list =
        r#"{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"workflow","arguments":[]}}"#;
    let (_, answer) = site.message("POST", &[("Mcp-Session-Id", session.as_str())], list).await;
    assert_eq!((&answer["error"]["code"], &answer["id"]), (&json!(-32602), &json!(5)), "{answer}");
}

#[tokio::test]
async fn a_client_that_holds_many_streams_is_refused_and_others_are_answered() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let (mut held, mut refused) = (Vec::new(), 0);
    for _ in 0..40 {
        let mut stream = site.send("GET", &[("Mcp-Session-Id", session.as_str())], "").await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        match &head[9..] {
            b"200" => held.push(stream),
            b"429" => refused += 1,
            other => panic!("{}", String::from_utf8_lossy(other)),
        }
    }
    assert_eq!((held.len(), refused), (16, 24));
    let (status, answer) = site.message("GET", &[("Mcp-Session-Id", session.as_str())], "").await;
    assert_eq!((status, &answer["error"]["code"]), (429, &json!(-32000)), "{answer}");
    // It may still ask, and others may do all.
    assert_eq!(site.call(&session, "workflow", arguments("return 1")).await["result"], 1);
    let other = site.begin().await;
    let _listening = site.send("GET", &[("Mcp-Session-Id", other.as_str())], "").await;
    assert_eq!(site.call(&other, "workflow", arguments("return 2")).await["result"], 2);
    // Those that are closed make room.
    drop(held);
    let opens = async || {
        let mut stream = site.send("GET", &[("Mcp-Session-Id", session.as_str())], "").await;
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        &head[9..] == b"200"
    };
    while !opens().await {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_stream_that_nobody_reads_holds_nothing_up() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let headers = [("Mcp-Session-Id", session.as_str())];
    let _listening = site.send("GET", &headers, "").await;
    let loud = "for (let i = 0; i < 1000; i++) log('x'.repeat(3000)); return await agent('hang:')";
    let params = json!({"name": "workflow", "arguments": arguments(loud), "_meta": {"progressToken": 1}});
    let body = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": params}).to_string();
    let _waiting = site.send("POST", &headers, &body).await;
    until(|| site.agents.running() == 1).await;
    for n in 0..20 {
        assert_eq!(site.call(&session, "workflow", arguments(&format!("return {n}"))).await["result"], n);
    }
    let runs = site.call(&session, "workflow_status", json!({})).await["runs"].clone();
    let running = runs.as_array().unwrap().iter().find(|run| run["state"] == "running").unwrap();
    let stopped = site.call(&session, "workflow_cancel", json!({"runId": running["runId"]})).await;
    assert_eq!(stopped["state"], "cancelled");
    site.send("DELETE", &headers, "").await;
}

#[tokio::test]
async fn the_parts_of_an_answer_do_not_wait_for_each_other() {
    let site = Site::open(HttpOptions::default()).await;
    let session = site.begin().await;
    let ping = r#"{"jsonrpc":"2.0","id":5,"method":"ping"}"#;
    let mut stream = site.send("POST", &[("Mcp-Session-Id", session.as_str())], ping).await;
    let head = format!(
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: {}\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMcp-Session-Id: {session}\r\n\r\n{ping}",
        ping.len()
    );
    let mut fastest = Duration::MAX;
    for n in 0..40 {
        let began = std::time::Instant::now();
        let (mut answer, mut buffer) = (String::new(), [0; 4096]);
        while !answer.ends_with("0\r\n\r\n") {
            let read = stream.read(&mut buffer).await.unwrap();
            answer += &String::from_utf8_lossy(&buffer[..read]);
        }
        // The first ones are acknowledged at once, whatever the server does. Each of the others would take 40 ms.
        if n >= 20 {
            fastest = fastest.min(began.elapsed());
        }
        stream.write_all(head.as_bytes()).await.unwrap();
    }
    assert!(fastest < Duration::from_millis(30), "{fastest:?}");
}

#[tokio::test]
async fn questions_that_were_lost_with_a_connection_are_put_again() {
    let options = HttpOptions::default();
    let site =
        Site::open_with(options, |sampling, options| options.agents = Agents::Client(sampling.clone())).await;
    let hello = initialize().replace("\"capabilities\":{}", "\"capabilities\":{\"sampling\":{}}");
    let (_, answer) = site.ask(&[], &hello, "serverInfo").await;
    let session =
        answer.lines().find_map(|line| line.strip_prefix("mcp-session-id: ")).unwrap().trim().to_owned();
    let headers = [("Mcp-Session-Id", session.as_str())];
    let body = call("workflow", "return await agent('who are you?')", false);
    let (_, lost) = site.ask(&headers, &body, "sampling/createMessage").await;
    assert!(lost.contains("who are you?"), "{lost}");
    // The server hears of a dropped connection a moment later.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let mut again = site.send("POST", &headers, &body.replace("\"id\":2", "\"id\":3")).await;
    let (mut seen, mut buffer) = (String::new(), [0; 4096]);
    let mut answered = false;
    let value = loop {
        let read = again.read(&mut buffer).await.unwrap();
        seen += &String::from_utf8_lossy(&buffer[..read]);
        let whole = seen[..seen.rfind("\n\n").unwrap_or_default()].to_owned();
        let told = messages(&whole);
        if let Some(asked) = told.iter().find(|message| message["method"] == "sampling/createMessage")
            && !answered
        {
            let said =
                json!({"model": "m", "role": "assistant", "content": {"type": "text", "text": "a model"}});
            let reply = json!({"jsonrpc": "2.0", "id": asked["id"], "result": said}).to_string();
            let (status, _) = site.ask(&headers, &reply, "\r\n\r\n").await;
            assert_eq!(status, 202);
            answered = true;
        }
        if let Some(answer) =
            told.iter().find(|message| message["id"] == 3 && message.get("method").is_none())
        {
            break answer["result"]["structuredContent"].clone();
        }
    };
    assert_eq!((&value["result"], answered), (&json!("a model"), true), "{value}");
}

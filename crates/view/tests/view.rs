//! The view over HTTP, as a browser would ask it, and as others might.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on should not")]

use std::net::SocketAddr;
use std::sync::Arc;

use fanfold::{
    Agent, AgentOutcome, CancellationToken, EndedAgent, ErrorCode, Event, EventKind, Meta, Observer as _,
    RunEnd, StopReason,
};
use fanfold_view::{About, FilesError, Server, View, ViewOptions, Watch};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

const TOKEN: &str = "a-secret";

fn options() -> ViewOptions {
    let mut options = ViewOptions::default();
    options.token = Some(TOKEN.into());
    options
}

async fn serve(view: &View) -> SocketAddr {
    let server = Server::bind(view.clone(), "127.0.0.1:0".parse().unwrap()).await.unwrap();
    let url = server.url();
    assert!(url.ends_with("/#token=a-secret"), "{url}");
    let address = url.trim_start_matches("http://").split('/').next().unwrap().parse().unwrap();
    tokio::spawn(server.serve());
    address
}

/// An answer: its status, its head and its body.
struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    /// The names, ids and data of the server-sent events in it.
    fn all_events(&self) -> Vec<(&str, &str, &str)> {
        let blocks = self.body.split("\n\n").filter(|block| !block.is_empty() && !block.starts_with(':'));
        blocks
            .map(|block| {
                let field = |name| block.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
                (field("event: "), field("id: "), field("data: "))
            })
            .collect()
    }

    /// The ids and data of those that are lines.
    fn events(&self) -> Vec<(&str, &str)> {
        let lines = self.all_events().into_iter().filter(|(name, ..)| name.is_empty());
        lines.map(|(_, id, data)| (id, data)).collect()
    }

    /// Whether the reader was told to start over.
    fn restarts(&self) -> bool {
        self.all_events().iter().any(|(name, ..)| *name == "restart")
    }

    /// What the stream ended with.
    fn end(&self) -> &str {
        self.all_events().last().map_or("", |(name, ..)| name)
    }
}

/// Asks for something, and reads the answer until the server closes.
async fn ask(address: SocketAddr, request: &str, headers: &[&str]) -> Answer {
    let mut wire = TcpStream::connect(address).await.unwrap();
    let host = if headers.iter().any(|header| header.starts_with("Host:")) {
        String::new()
    } else {
        format!("Host: {address}\r\n")
    };
    let headers: String = headers.iter().map(|header| format!("{header}\r\n")).collect();
    let text = format!("{request} HTTP/1.1\r\n{host}{headers}Connection: close\r\n\r\n");
    wire.write_all(text.as_bytes()).await.unwrap();
    let mut bytes = Vec::new();
    wire.read_to_end(&mut bytes).await.unwrap();
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let body = if head.contains("transfer-encoding: chunked") { unchunk(body) } else { body.to_owned() };
    Answer { status: head[9..12].parse().unwrap(), head: head.to_ascii_lowercase(), body }
}

fn unchunk(mut text: &str) -> String {
    let mut body = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        if size == 0 {
            break;
        }
        body += &rest[..size];
        text = &rest[size + 2..];
    }
    body
}

async fn get(address: SocketAddr, path: &str) -> Answer {
    ask(address, &format!("GET {path}"), &[&format!("Authorization: Bearer {TOKEN}")]).await
}

/// Asks for what follows an event.
async fn resume(address: SocketAddr, path: &str, id: &str) -> Answer {
    let headers = [format!("Authorization: Bearer {TOKEN}"), format!("Last-Event-ID: {id}")];
    ask(address, &format!("GET {path}"), &headers.each_ref().map(String::as_str)).await
}

/// Tells a short run, its end included.
fn tell(watch: &Watch) {
    tell_named(watch, "demo");
}

fn tell_named(watch: &Watch, name: &str) {
    let meta = Arc::new(Meta::new(name, "a run"));
    let agent = Arc::new(Agent { seq: 1, label: "a".into(), phase: None, child_id: "c".into() });
    let ended = EndedAgent::new(agent.clone(), AgentOutcome::Completed);
    let end = RunEnd { stop_reason: StopReason::Completed, error: None, agents_started: 1 };
    let kinds = [
        EventKind::Start { meta: meta.clone() },
        EventKind::AgentStart { agent },
        EventKind::AgentEnd { agent: ended },
        EventKind::End { result: end },
    ];
    for (i, kind) in kinds.into_iter().enumerate() {
        let n = i as u64 + 1;
        watch.event(&meta, &Event { kind, id: "run-1".into(), n, at: 1_000 + n });
    }
}

#[tokio::test]
async fn a_reader_that_comes_back_gets_what_it_missed_and_nothing_twice() {
    let view = View::new(options());
    let watch = view.watch(About::default());
    tell(&watch);
    drop(watch);
    let address = serve(&view).await;
    let whole = get(address, "/api/runs/1/events").await;
    assert_eq!(whole.status, 200);
    assert!(whole.head.contains("content-type: text/event-stream"), "{}", whole.head);
    assert_eq!((whole.events().len(), whole.restarts(), whole.end()), (4, false, "over"));
    for seen in 0..=4_usize {
        let ids = [
            // The id of the last event, and the number alone.
            seen.checked_sub(1).map_or("0", |last| whole.events()[last].0).to_owned(),
            seen.to_string(),
        ];
        for id in ids {
            let rest = resume(address, "/api/runs/1/events", &id).await;
            assert_eq!(rest.events(), whole.events()[seen..], "after {id}");
            assert_eq!((rest.restarts(), rest.end()), (false, "over"), "after {id}");
        }
    }
}

#[tokio::test]
async fn a_reader_whose_place_the_run_does_not_have_starts_over() {
    let view = View::new(options());
    tell(&view.watch(About::default()));
    let address = serve(&view).await;
    let whole = get(address, "/api/runs/1/events").await;
    let last = whole.events()[3].0.to_owned();
    let (_, digest) = last.split_once('-').unwrap();
    for id in
        ["5", "1000000", "-1", "x", "", "4-0000000000000000", &format!("3-{digest}"), &format!("5-{digest}")]
    {
        let again = resume(address, "/api/runs/1/events", id).await;
        assert!(again.restarts(), "{id}: {}", again.body);
        assert_eq!((again.events(), again.end()), (whole.events(), "over"), "{id}");
    }
}

#[tokio::test]
async fn a_reader_of_another_process_starts_over_unless_it_tells_the_same() {
    let view = View::new(options());
    tell(&view.watch(About::default()));
    let address = serve(&view).await;
    let id = get(address, "/api/runs/1/events").await.events()[1].0.to_owned();
    // The same run under the same number, from a log perhaps; and another run.
    for (name, same) in [("demo", true), ("another", false)] {
        let other = View::new(options());
        tell_named(&other.watch(About::default()), name);
        let address = serve(&other).await;
        let rest = resume(address, "/api/runs/1/events", &id).await;
        assert_eq!((rest.restarts(), rest.events().len()), (!same, if same { 2 } else { 4 }), "{name}");
    }
}

#[tokio::test]
async fn a_stream_for_a_time_ends_when_the_reader_has_caught_up() {
    let view = View::new(options());
    let watch = view.watch(About::default());
    let meta = Arc::new(Meta::new("demo", "a run"));
    watch.event(&meta, &Event { kind: EventKind::Start { meta: meta.clone() }, id: "r".into(), n: 1, at: 1 });
    let address = serve(&view).await;
    for (ms, waits) in [(0, false), (50, true)] {
        let began = std::time::Instant::now();
        let told = get(address, &format!("/api/runs/1/events?forMs={ms}")).await;
        assert_eq!((told.events().len(), told.end()), (1, "caught-up"));
        assert!(!waits || began.elapsed() >= std::time::Duration::from_millis(50));
        // The next one goes on behind it, and says at once that the server is there.
        let id = told.all_events().last().unwrap().1.to_owned();
        let rest = resume(address, &format!("/api/runs/1/events?forMs={ms}"), &id).await;
        assert_eq!((rest.events().len(), rest.restarts(), rest.end()), (0, false, "caught-up"));
    }
    assert_eq!(get(address, "/api/runs/1/events?forMs=soon").await.status, 400);
    drop(watch);
}

#[tokio::test]
async fn there_are_only_so_many_streams_at_once() {
    let view = View::new(options());
    let watch = view.watch(About::default());
    let address = serve(&view).await;
    let mut wires = Vec::new();
    let refused = loop {
        let mut wire = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /api/runs/1/events HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {TOKEN}\r\n\r\n"
        );
        wire.write_all(request.as_bytes()).await.unwrap();
        let mut head = [0; 12];
        wire.read_exact(&mut head).await.unwrap();
        wires.push(wire);
        if !head.ends_with(b" 200") {
            break String::from_utf8_lossy(&head).into_owned();
        }
        assert!(wires.len() < 1000);
    };
    assert!(refused.ends_with(" 503"), "{refused}");
    // Everything else is still answered, and there is room again when readers have gone.
    assert_eq!(get(address, "/api/runs/1").await.status, 200);
    drop(wires);
    loop {
        match get(address, "/api/runs/1/events?forMs=0").await.status {
            200 => break,
            status => assert_eq!(status, 503),
        }
    }
    drop(watch);
}

#[tokio::test]
async fn a_reader_of_a_live_run_is_told_as_it_happens() {
    let view = View::new(options());
    let watch = view.watch(About::default());
    let address = serve(&view).await;
    let reader = tokio::spawn(async move { get(address, "/api/runs/1/events").await });
    // Whatever of it comes before the reader and whatever after.
    tokio::task::yield_now().await;
    tell(&watch);
    drop(watch);
    let told = reader.await.unwrap();
    assert_eq!(told.events().len(), 4);
    assert!(told.body.contains("event: over"));
}

#[tokio::test]
async fn a_run_that_could_not_start_says_why() {
    let view = View::new(options());
    let watch = view.watch(About::default());
    watch.refuse(&ErrorCode::ScriptParse.error("unexpected token").at(3, 7));
    let address = serve(&view).await;
    let told = get(address, "/api/runs/1/events").await;
    assert_eq!(told.events().len(), 1);
    assert!(told.body.contains("SCRIPT_PARSE") && told.body.contains("event: over"), "{}", told.body);
}

#[tokio::test]
async fn nothing_is_told_without_the_token() {
    let view = View::new(options());
    tell(&view.watch(About::default().script("secret script")));
    let address = serve(&view).await;
    let paths = ["", "/1", "/1/events", "/1/value"];
    for path in paths {
        for headers in [&[][..], &["Authorization: Bearer wrong"], &["Cookie: token=a-secret"]] {
            let answer = ask(address, &format!("GET /api/runs{path}"), headers).await;
            assert_eq!(answer.status, 401, "{path} {headers:?}");
            assert!(!answer.body.contains("demo") && !answer.body.contains("script"), "{}", answer.body);
        }
        let query = ask(address, &format!("GET /api/runs{path}?token={TOKEN}"), &[]).await;
        assert_eq!(query.status, 401, "a token in a query would be written into logs");
    }
    assert_eq!(ask(address, "POST /api/runs/1/cancel", &["X-Fanfold-View: 1"]).await.status, 401);
    assert_eq!(get(address, "/api/runs").await.status, 200);
    assert!(get(address, "/api/runs/1").await.body.contains("secret script"));
}

#[tokio::test]
async fn a_name_that_was_made_to_point_here_is_refused() {
    let mut options = options();
    options.hosts = vec!["runs.example.com".into()];
    let view = View::new(options);
    let address = serve(&view).await;
    let bearer = format!("Authorization: Bearer {TOKEN}");
    for (host, status) in [
        ("evil.example", 421),
        ("localhost.evil.example", 421),
        ("localhost", 200),
        ("[::1]:80", 200),
        ("runs.example.com:443", 200),
    ] {
        for path in ["/", "/assets/main.js", "/api/runs"] {
            let answer = ask(address, &format!("GET {path}"), &[&bearer, &format!("Host: {host}")]).await;
            assert_eq!(answer.status, status, "{host} {path}");
        }
    }
}

#[tokio::test]
async fn the_page_allows_nothing_but_itself() {
    let view = View::new(options());
    let address = serve(&view).await;
    let (one, other) = (ask(address, "GET /", &[]).await, ask(address, "GET /", &[]).await);
    let policy = |answer: &Answer| {
        let line = answer.head.lines().find(|line| line.starts_with("content-security-policy:")).unwrap();
        line.to_owned()
    };
    let (policies, page) = ((policy(&one), policy(&other)), &one.body);
    for directive in ["default-src 'none'", "'wasm-unsafe-eval'", "base-uri 'none'", "frame-ancestors 'none'"]
    {
        assert!(policies.0.contains(directive), "{}", policies.0);
    }
    for hole in ["unsafe-inline", "'unsafe-eval'", "http:", "https:", "data:", "*"] {
        assert!(!policies.0.contains(hole), "{}", policies.0);
    }
    assert_ne!(policies.0, policies.1, "a nonce is for one page");
    let nonce = policies.0.split("'nonce-").nth(1).unwrap().split('\'').next().unwrap();
    assert_eq!(page.matches(&format!("nonce=\"{nonce}\"")).count(), 2);
    assert_eq!(page.matches("<script").count(), 1);
    assert!(!page.contains(TOKEN) && !page.contains("{{"));
    for header in
        ["referrer-policy: no-referrer", "x-content-type-options: nosniff", "cache-control: no-store"]
    {
        assert!(one.head.contains(header), "{}", one.head);
    }
    // All that it asks for is there.
    let mut scripts = vec![
        "main.js".to_owned(),
        "fanfold_types_bg.wasm".to_owned(),
        "view.css".to_owned(),
        "icon.svg".to_owned(),
    ];
    let mut at = 0;
    while let Some(name) = scripts.get(at).cloned() {
        let asset = ask(address, &format!("GET /assets/{name}"), &[]).await;
        assert_eq!(asset.status, 200, "{name}");
        for import in asset.body.split("from \"./").skip(1).filter(|_| name.ends_with(".js")) {
            let import = import.split('"').next().unwrap().to_owned();
            if !scripts.contains(&import) {
                scripts.push(import);
            }
        }
        at += 1;
    }
    assert!(scripts.len() > 10, "{scripts:?}");
    assert_eq!(ask(address, "GET /assets/../Cargo.toml", &[]).await.status, 404);
}

#[tokio::test]
async fn cancelling_needs_leave_and_comes_from_the_page() {
    let bearer = format!("Authorization: Bearer {TOKEN}");
    for (allowed, headers, status) in [
        (false, vec!["X-Fanfold-View: 1"], 403),
        (true, vec![], 403),
        (true, vec!["X-Fanfold-View: 1", "Origin: http://evil.example"], 403),
        (true, vec!["X-Fanfold-View: 1", "Sec-Fetch-Site: cross-site"], 403),
        (true, vec!["X-Fanfold-View: 1"], 202),
    ] {
        let mut options = options();
        options.cancel = allowed;
        let view = View::new(options);
        let cancel = CancellationToken::new();
        let watch = view.watch(About::default().cancel(cancel.clone()));
        let address = serve(&view).await;
        let all: Vec<&str> = headers.iter().copied().chain([bearer.as_str()]).collect();
        assert_eq!(ask(address, "POST /api/runs/1/cancel", &all).await.status, status, "{headers:?}");
        assert_eq!(cancel.is_cancelled(), status == 202, "{headers:?}");
        assert_eq!(ask(address, "GET /api/runs/1/cancel", &all).await.status, 405);
        drop(watch);
    }
}

#[tokio::test]
async fn it_can_be_mounted_anywhere() {
    let mut options = options();
    options.token = None;
    let view = View::new(options);
    tell(&view.watch(About::default()));
    let app = axum::Router::new().nest("/team/runs", view.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    // The page finds what it needs from wherever it is.
    let page = ask(address, "GET /team/runs", &[]).await;
    assert!(page.body.contains("src=\"./runs/assets/main.js\""), "{}", page.body);
    for path in ["/assets/main.js", "/api/runs", "/api/runs/1/events"] {
        assert_eq!(ask(address, &format!("GET /team/runs{path}"), &[]).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn where_it_is_mounted_is_a_strangers_text_too() {
    let view = View::new(options());
    let app = axum::Router::new().nest("/{team}", view.router());
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move { axum::serve(listener, app).await });
    let page = ask(address, "GET /\"onload=\"x", &[]).await;
    assert!(!page.body.contains("\"onload"), "{}", page.body);
    let page = ask(address, "GET /javascript:x", &[]).await;
    assert!(!page.body.contains("\"javascript:"), "{}", page.body);
}

#[tokio::test]
async fn only_so_many_ended_runs_are_kept() {
    let mut options = options();
    options.keep = 2;
    let view = View::new(options);
    let lasting = view.watch(About::default());
    for _ in 0..5 {
        tell(&view.watch(About::default()));
    }
    let address = serve(&view).await;
    let list = get(address, "/api/runs").await;
    let keys: Vec<_> = (1..=6).filter(|key| list.body.contains(&format!("\"key\":{key},"))).collect();
    // The one that goes on, and the last of the others; one more may have ended since.
    assert_eq!(keys, [1, 4, 5, 6]);
    drop(lasting);
}

#[tokio::test]
async fn files_are_told_as_live_runs_are() {
    let folder = tempfile::tempdir().unwrap();
    let lines = concat!(
        "{\"type\":\"workflow/start\",\"id\":\"a\",\"n\":1,\"at\":5,\"meta\":{\"name\":\"one\",\"description\":\"d\"}}\n",
        "not a line\n",
        "{\"type\":\"workflow/start\",\"id\":\"b\",\"n\":1,\"at\":6,\"meta\":{\"name\":\"two\",\"description\":\"d\"}}\n",
        "{\"type\":\"message\"}\n",
        "{\"type\":\"workflow/end\",\"id\":\"a\",\"n\":2,\"at\":9,\"result\":{\"stopReason\":\"completed\",\"agentsStarted\":0}}\n",
        "{\"type\":\"result\",\"id\":\"a\",\"stopReason\":\"completed\",\"value\":{\"big\":12345678901234567890},\"agentsStarted\":0}\n",
    );
    std::fs::write(folder.path().join("both.jsonl"), lines).unwrap();
    std::fs::write(folder.path().join("both.js"), "return 1").unwrap();
    std::fs::write(folder.path().join("notes.txt"), "no run").unwrap();
    let view = View::new(options());
    assert_eq!(view.files([folder.path().to_owned()]).unwrap(), 1);
    let address = serve(&view).await;
    let list = get(address, "/api/runs").await.body;
    assert!(list.contains("\"name\":\"one\"") && list.contains("\"state\":\"completed\""), "{list}");
    assert!(list.contains("\"name\":\"two\"") && list.contains("\"state\":\"interrupted\""), "{list}");
    assert_eq!(get(address, "/api/runs/1/events").await.events().len(), 3);
    // The other one has no end: more of it may come.
    assert_eq!(get(address, "/api/runs/1/events").await.end(), "over");
    let torn = get(address, "/api/runs/2/events?forMs=0").await;
    assert_eq!((torn.events().len(), torn.end()), (1, "caught-up"));
    assert_eq!(get(address, "/api/runs/1/value").await.body, "{\"big\":12345678901234567890}");
    assert_eq!(get(address, "/api/runs/2/value").await.status, 404);
    assert!(get(address, "/api/runs/1").await.body.contains("return 1"));
    assert_eq!(get(address, "/api/runs/3/events").await.status, 404);
}

/// What a log says of a run: its start, some logs, and its end.
fn log_of(id: &str, logs: u64, ends: bool) -> String {
    let line = |kind: &str, n: u64, more: &str| {
        format!("{{\"type\":\"workflow/{kind}\",\"id\":\"{id}\",\"n\":{n},\"at\":{n},{more}}}\n")
    };
    let mut text = line("start", 1, "\"meta\":{\"name\":\"n\",\"description\":\"d\"}");
    (0..logs).for_each(|i| text += &line("log", i + 2, "\"message\":\"m\""));
    if ends {
        text += &line("end", logs + 2, "\"result\":{\"stopReason\":\"completed\",\"agentsStarted\":0}");
        text += &format!(
            "{{\"type\":\"result\",\"id\":\"{id}\",\"stopReason\":\"completed\",\"value\":1,\"agentsStarted\":0}}\n"
        );
    }
    text
}

#[tokio::test]
async fn a_reader_of_a_log_that_changes_goes_on_or_starts_over() {
    let whole = log_of("a", 600, true);
    let half = log_of("a", 300, false);
    let torn = &half[..half.len() - 20];
    let last = |text: &str| text.lines().count();
    // What the log becomes after a reader has seen all of it; the lines that it is told then, and whether it
    // starts over.
    let cases = [
        ("unchanged", half.clone(), half.clone(), 0, false, "caught-up"),
        ("longer", half.clone(), whole.clone(), last(&whole) - last(&half), false, "over"),
        ("a torn line that is whole now", torn.to_owned(), half.clone(), 1, false, "caught-up"),
        ("a last line without its end", half.trim_end().to_owned(), half.clone(), 0, false, "caught-up"),
        ("cut", half.clone(), log_of("a", 10, false), 11, true, "caught-up"),
        ("cut in a line", half.clone(), torn.to_owned(), 300, true, "caught-up"),
        (
            "written again",
            half.clone(),
            log_of("a", 300, false).replace("\"m\"", "\"x\""),
            301,
            true,
            "caught-up",
        ),
        ("other lines before it", half.clone(), format!("{{}}\n{half}"), 301, true, "caught-up"),
        ("blank lines before it", half.clone(), format!("\n\n{half}"), 0, false, "caught-up"),
    ];
    for replaced in [false, true] {
        for (what, before, after, lines, restarts, end) in &cases {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("x.jsonl");
            std::fs::write(&path, before).unwrap();
            let view = View::new(options());
            view.files([folder.path().to_owned()]).unwrap();
            let address = serve(&view).await;
            let seen = get(address, "/api/runs/1/events?forMs=0").await;
            let id = seen.all_events().iter().rev().find(|(_, id, _)| !id.is_empty()).unwrap().1.to_owned();
            if replaced {
                std::fs::write(folder.path().join("new"), after).unwrap();
                std::fs::rename(folder.path().join("new"), &path).unwrap();
            } else {
                std::fs::write(&path, after).unwrap();
            }
            let rest = resume(address, "/api/runs/1/events?forMs=0", &id).await;
            let told = (rest.events().len(), rest.restarts(), rest.end());
            assert_eq!(told, (*lines, *restarts, *end), "{what}, replaced: {replaced}");
            // Whoever comes now is told what is there now.
            let anew = get(address, "/api/runs/1/events?forMs=0").await;
            assert!(!anew.restarts() && anew.end() == *end, "{what}");
        }
    }
}

#[tokio::test]
async fn a_reader_that_stays_is_told_what_becomes_of_the_log() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, log_of("a", 3, false)).unwrap();
    let view = View::new(options());
    view.files([folder.path().to_owned()]).unwrap();
    let address = serve(&view).await;
    let reader = tokio::spawn(async move { get(address, "/api/runs/1/events").await });
    tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    std::fs::write(&path, log_of("a", 5, true)).unwrap();
    let told = reader.await.unwrap();
    assert_eq!((told.events().len(), told.restarts(), told.end()), (8, false, "over"));
}

#[tokio::test]
async fn a_run_that_is_no_longer_in_its_file_is_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    std::fs::write(&path, log_of("a", 3, false)).unwrap();
    let view = View::new(options());
    view.files([folder.path().to_owned()]).unwrap();
    let address = serve(&view).await;
    let id = get(address, "/api/runs/1/events?forMs=0").await.events()[1].0.to_owned();
    std::fs::write(&path, log_of("b", 3, true)).unwrap();
    assert_eq!(get(address, "/api/runs/1/events").await.status, 410);
    // One that was there before starts over, finds nothing, and is told when it comes again.
    let rest = resume(address, "/api/runs/1/events", &id).await;
    assert_eq!((rest.events().len(), rest.restarts()), (0, true));
    std::fs::remove_file(&path).unwrap();
    assert_eq!(resume(address, "/api/runs/1/events", &id).await.status, 410);
}

/// A log of one run, and what must not be shown.
#[cfg(unix)]
const LOG: &str = concat!(
    "{\"type\":\"workflow/start\",\"id\":\"a\",\"n\":1,\"at\":5,\"meta\":{\"name\":\"SECRET\",\"description\":\"d\"}}\n",
    "{\"type\":\"result\",\"id\":\"a\",\"stopReason\":\"completed\",\"value\":1,\"agentsStarted\":0}\n",
);

#[cfg(unix)]
#[tokio::test]
async fn a_link_out_of_the_folder_is_not_followed() {
    use std::os::unix::fs::symlink;
    // What is linked under which name in the folder `runs`, and whether it is shown.
    type Links = &'static [(&'static str, &'static str)];
    let cases: &[(&str, Links, bool)] = &[
        ("the script", &[("../secret.js", "x.js")], false),
        ("the script, by a path from the root", &[("{root}/secret.js", "x.js")], false),
        ("the script, by a chain", &[("../secret.js", "y"), ("y", "x.js")], false),
        ("the script, through a linked folder", &[("..", "up"), ("up/secret.js", "x.js")], false),
        ("the script, through its own folder's name", &[("../runs/../secret.js", "x.js")], false),
        ("the script of a sibling whose name begins the same", &[("../runs-of-others/z.js", "x.js")], false),
        ("a log", &[("../secret.jsonl", "z.jsonl")], false),
        ("a script that is in the folder", &[("../runs/below/inner.js", "x.js")], true),
        ("a log that is in the folder", &[("below/inner.jsonl", "z.jsonl")], true),
    ];
    for (what, links, shown) in cases {
        let root = tempfile::tempdir().unwrap();
        let runs = root.path().join("runs");
        for folder in ["runs/below", "runs-of-others"] {
            std::fs::create_dir_all(root.path().join(folder)).unwrap();
        }
        for file in ["secret.js", "runs/below/inner.js", "runs-of-others/z.js"] {
            std::fs::write(root.path().join(file), "// SECRET").unwrap();
        }
        for file in ["secret.jsonl", "runs/below/inner.jsonl"] {
            std::fs::write(root.path().join(file), LOG).unwrap();
        }
        std::fs::write(runs.join("x.jsonl"), LOG.replace("SECRET", "x")).unwrap();
        for (target, name) in *links {
            let target = target.replace("{root}", root.path().to_str().unwrap());
            symlink(target, runs.join(name)).unwrap();
        }
        let view = View::new(options());
        view.files([runs]).unwrap();
        let address = serve(&view).await;
        let mut told = get(address, "/api/runs").await.body;
        for key in 1..=2 {
            told += &get(address, &format!("/api/runs/{key}")).await.body;
        }
        assert!(told.contains("\"name\":\"x\""), "{what}: {told}");
        assert_eq!(told.contains("SECRET"), *shown, "{what}: {told}");
    }
}

#[cfg(unix)]
#[tokio::test]
async fn a_link_that_was_named_is_followed_but_not_to_the_script_of_its_target() {
    use std::os::unix::fs::symlink;
    let root = tempfile::tempdir().unwrap();
    let at = |name: &str| root.path().join(name);
    std::fs::create_dir_all(at("archive")).unwrap();
    std::fs::create_dir_all(at("here")).unwrap();
    std::fs::write(at("archive/old.jsonl"), LOG.replace("SECRET", "old")).unwrap();
    std::fs::write(at("archive/old.js"), "// the old script").unwrap();
    symlink("../archive/old.jsonl", at("here/latest.jsonl")).unwrap();
    symlink("archive", at("linked")).unwrap();
    let view = View::new(options());
    view.files([at("here/latest.jsonl")]).unwrap();
    // A folder that is named through a link is a folder that was named.
    view.files([at("linked")]).unwrap();
    let address = serve(&view).await;
    assert_eq!(get(address, "/api/runs").await.body.matches("\"name\":\"old\"").count(), 2);
    assert!(!get(address, "/api/runs/1").await.body.contains("the old script"));
    assert!(get(address, "/api/runs/2").await.body.contains("the old script"));
}

#[cfg(unix)]
#[tokio::test]
async fn a_log_that_became_a_link_out_of_the_folder_is_no_longer_shown() {
    let root = tempfile::tempdir().unwrap();
    let (runs, secret) = (root.path().join("runs"), root.path().join("secret.jsonl"));
    std::fs::create_dir(&runs).unwrap();
    std::fs::write(&secret, LOG).unwrap();
    let log = runs.join("x.jsonl");
    std::fs::write(&log, LOG.replace("SECRET", "x")).unwrap();
    let view = View::new(options());
    view.files([runs]).unwrap();
    std::fs::remove_file(&log).unwrap();
    std::os::unix::fs::symlink("../secret.jsonl", &log).unwrap();
    let address = serve(&view).await;
    for path in ["", "/1", "/1/events", "/1/value"] {
        let answer = get(address, &format!("/api/runs{path}")).await;
        assert!(!answer.body.contains("SECRET"), "{path}: {}", answer.body);
    }
}

#[test]
fn what_cannot_be_shown_is_said_by_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let view = View::new(options());
    let missing = view.files([folder.path().join("none.jsonl")]).unwrap_err();
    assert!(matches!(missing, FilesError::Read { .. }) && missing.to_string().contains("none.jsonl"));
    let notes = folder.path().join("notes.txt");
    std::fs::write(&notes, "no run\n").unwrap();
    assert!(matches!(view.files([notes]).unwrap_err(), FilesError::NoRun { .. }));
    assert_eq!(view.files([folder.path().to_owned()]).unwrap(), 0);
}

#[test]
fn a_token_is_new_for_each_view_and_in_no_debug_output() {
    let (one, other) = (View::new(ViewOptions::default()), View::new(ViewOptions::default()));
    assert_ne!(one.token(), other.token());
    let token = one.token().unwrap();
    assert!(token.len() >= 32);
    assert!(!format!("{one:?}").contains(token));
}

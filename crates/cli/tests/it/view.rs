//! `fanfold view` and `--view`, as far as a terminal sees them; `tests/browser` looks at the page.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Stdio};

use crate::fanfold::{fanfold, run, stderr, stdout};

/// A command that shows a page, and the page's address and token.
struct Page {
    child: Child,
    address: String,
    token: String,
}

impl Page {
    fn of(args: &[&str]) -> Self {
        let mut command = fanfold();
        command.args(args).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("fanfold starts");
        let said = BufReader::new(child.stderr.take().expect("it is piped"));
        let line = said.lines().map_while(Result::ok).find(|line| line.contains("look at"));
        let line = line.expect("it says where to look");
        let (address, token) =
            line.split_once("http://").and_then(|(_, url)| url.split_once("/#token=")).expect("an address");
        Self { child, address: address.to_owned(), token: token.to_owned() }
    }

    fn get(&self, path: &str) -> String {
        let mut wire = TcpStream::connect(&self.address).expect("the page is there");
        let Self { address, token, .. } = self;
        write!(
            wire,
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {token}\r\nConnection: close\r\n\r\n"
        )
        .expect("it listens");
        let mut answer = String::new();
        wire.read_to_string(&mut answer).expect("it answers");
        answer
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_run_that_was_written_down_can_be_looked_at() {
    let printed = run(&["run", "-", "--json", "--agents", "scripted"], "return await agent('hello')");
    let file = concat!(env!("CARGO_TARGET_TMPDIR"), "/looked-at.jsonl");
    std::fs::write(file, stdout(&printed)).unwrap();
    let page = Page::of(&["view", file]);
    assert!(page.get("/api/runs").contains(r#""state":"completed""#));
    let events = page.get("/api/runs/1/events");
    assert!(events.contains("workflow/agent-end") && events.contains("event: over"), "{events}");
    assert!(page.get("/api/runs/1/value").ends_with("\"echo:hello\""));
}

#[test]
fn a_run_is_on_its_page_to_its_end_and_afterwards() {
    let script = concat!(env!("CARGO_TARGET_TMPDIR"), "/on-a-page.js");
    std::fs::write(script, "phase('one'); return await agent('hello')").unwrap();
    let page = Page::of(&["run", script, "--view", "--agents", "scripted"]);
    // This ends when the run does.
    let events = page.get("/api/runs/1/events");
    for told in ["workflow/start", "workflow/phase", "workflow/end", r#""type":"result""#, "event: over"] {
        assert!(events.contains(told), "{told}: {events}");
    }
    assert!(page.get("/api/runs/1/value").ends_with("\"echo:hello\""));
    let about = page.get("/api/runs/1");
    assert!(about.contains(r#""canCancel":false"#) && about.contains("phase('one')"), "{about}");
}

#[test]
fn what_is_for_a_page_needs_one() {
    for args in [["run", "-", "--listen", "127.0.0.1:0"], ["run", "-", "--host", "example.com"]] {
        let refused = run(&args, "return 1");
        assert_eq!(refused.status.code(), Some(2));
        assert!(stderr(&refused).contains("add --view"), "{}", stderr(&refused));
    }
    let nothing = run(&["view", "no-such-file.jsonl"], "");
    assert_eq!(nothing.status.code(), Some(2));
    assert!(stderr(&nothing).contains("no-such-file.jsonl"), "{}", stderr(&nothing));
}

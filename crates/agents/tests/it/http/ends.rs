//! Children that are told to stop, or take too long: the server sees the connection close.

use std::time::Duration;

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError};
use fanfold_agents::FailureKind;

use super::raw::{End, Raw};
use super::server::{Act, Api, BOTH, Server};
use super::{failure, run, start, start_at};

/// Ways to keep a client waiting: before the answer, and in its midst.
fn silences(api: Api) -> [Act; 2] {
    let mut events = api.says(&["a"]);
    events.truncate(2);
    [Act::Hang, Act::Silence(events)]
}

#[tokio::test]
async fn a_cancelled_child_closes_its_connection() {
    for api in BOTH {
        for act in silences(api) {
            let server = Server::new([act]).await;
            let cancel = CancellationToken::new();
            let child = start(api, &server, AgentRequest::new("p"), cancel.clone()).await;
            let result = tokio::spawn(child.result);
            server.waited_for_by(1).await;
            cancel.cancel();
            assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled));
            server.waited_for_by(0).await;
        }
    }
}

#[tokio::test]
async fn a_dropped_child_closes_its_connection() {
    for api in BOTH {
        for act in silences(api) {
            let server = Server::new([act]).await;
            let child = start(api, &server, AgentRequest::new("p"), CancellationToken::new()).await;
            let result = tokio::spawn(child.result);
            server.waited_for_by(1).await;
            result.abort();
            server.waited_for_by(0).await;
        }
    }
}

#[tokio::test]
async fn a_silence_that_is_too_long_is_a_stall() {
    for api in BOTH {
        for act in silences(api) {
            let server = Server::new([act]).await;
            let mut request = AgentRequest::new("p");
            request.options.stall_ms = Some(300);
            let (kind, reason) = failure(run(api, &server, request).await);
            assert_eq!(kind, FailureKind::Stall);
            let said = "; the answer had not ended; it had said: a";
            assert!(
                reason.strip_suffix(said).unwrap_or(&reason) == "stall: nothing came for 300 ms",
                "{reason}"
            );
            server.waited_for_by(0).await;
        }
    }
}

#[tokio::test]
async fn a_child_out_of_time_is_a_timeout_over_all_its_tries() {
    for api in BOTH {
        let [hang, _] = silences(api);
        let server =
            Server::new([api.error(500, "api_error", "oops").header("retry-after-ms", "1"), hang]).await;
        let mut request = AgentRequest::new("p");
        (request.options.timeout_ms, request.options.retries) = (Some(1500), Some(9));
        let (kind, reason) = failure(run(api, &server, request).await);
        assert_eq!(kind, FailureKind::Timeout);
        let expected = "timeout: no answer within 1500 ms; the try before failed: server: ";
        assert!(reason.starts_with(expected) && reason.ends_with(" answered 500: oops"), "{reason}");
        server.waited_for_by(0).await;
    }
}

#[tokio::test]
async fn a_deadline_covers_everything_from_the_call_to_the_answer() {
    let head = |head: &str, body: &str| format!("HTTP/1.1 {head}\r\n\r\n{body}").into_bytes();
    let half = "data: {\"choices\": [{\"delta\": {\"content\": \"ha\"}}]}\n\n";
    for (bytes, end) in [
        (Vec::new(), End::Silence),
        (b"HTTP/1.1 200 OK\r\ncontent-ty".to_vec(), End::Silence),
        (head("200 OK\r\ncontent-type: text/event-stream", ""), End::Silence),
        (head("200 OK\r\ncontent-type: text/event-stream", ""), End::KeepAlive),
        (head("200 OK\r\ncontent-type: text/event-stream", half), End::Silence),
        (head("200 OK\r\ncontent-type: text/event-stream", half), End::KeepAlive),
        (head("200 OK\r\ncontent-type: application/json", "{"), End::Silence),
        (head("200 OK\r\ncontent-type: text/html", "<html>"), End::Silence),
        (head("500 Oops\r\ncontent-type: application/json", "{"), End::Silence),
        (head("429 Slow\r\ncontent-length: 0\r\nretry-after-ms: 50", ""), End::Close),
    ] {
        let server = Raw::new(bytes.clone(), end).await;
        let mut request = AgentRequest::new("p");
        (request.options.timeout_ms, request.options.retries) = (Some(300), Some(99));
        let child = start_at(Api::OpenAi, &server.url(), request, CancellationToken::new()).await;
        let result = tokio::time::timeout(Duration::from_secs(30), child.result).await.expect("an end");
        let (kind, reason) = failure(result);
        // A pause that the call has no time for is not made.
        let expected =
            if bytes.starts_with(b"HTTP/1.1 429") { FailureKind::RateLimit } else { FailureKind::Timeout };
        assert_eq!(kind, expected, "{}: {reason}", String::from_utf8_lossy(&bytes));
    }
}

#[tokio::test]
async fn a_deadline_after_the_reason_to_stop_takes_no_answer_away() {
    let event = r#"data: {"choices": [{"delta": {"content": "{}"}, "finish_reason": "stop"}]}"#;
    let server = Raw::body("text/event-stream", format!("{event}\n\n").as_bytes(), End::KeepAlive).await;
    for schema in [None, Some(serde_json::json!({"type": "object"}))] {
        let mut request = AgentRequest::new("p");
        request.options.schema = schema;
        // Less than what is waited for usage where there is time.
        request.options.timeout_ms = Some(1900);
        let child = start_at(Api::OpenAi, &server.url(), request, CancellationToken::new()).await;
        child.result.await.unwrap();
    }
}

#[tokio::test]
async fn no_flood_of_keep_alives_holds_an_answer_up() {
    let event = r#"data: {"choices": [{"delta": {"content": "whole"}, "finish_reason": "stop"}]}"#;
    let server = Raw::body("text/event-stream", format!("{event}\n\n").as_bytes(), End::Flood).await;
    let child = start_at(Api::OpenAi, &server.url(), AgentRequest::new("p"), CancellationToken::new()).await;
    let result = tokio::time::timeout(Duration::from_secs(60), child.result).await.expect("an end");
    assert_eq!(result, Ok(Answer::text("whole")));
}

#[tokio::test]
async fn a_pause_between_tries_ends_when_the_child_is_told_to_stop() {
    for api in BOTH {
        let server =
            Server::new([api.error(429, "rate_limit_error", "slow").header("retry-after", "50")]).await;
        let cancel = CancellationToken::new();
        let child = start(api, &server, AgentRequest::new("p"), cancel.clone()).await;
        let result = tokio::spawn(child.result);
        while server.asked().is_empty() {
            tokio::task::yield_now().await;
        }
        cancel.cancel();
        assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled));
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn many_at_once_leave_nothing_behind() {
    for api in BOTH {
        let acts = (0..40).map(|n| silences(api)[n % 2].clone());
        let server = Server::new(acts).await;
        let cancel = CancellationToken::new();
        let mut results = Vec::new();
        for _ in 0..40 {
            let child = start(api, &server, AgentRequest::new("p"), cancel.clone()).await;
            results.push(tokio::spawn(child.result));
        }
        server.waited_for_by(40).await;
        cancel.cancel();
        for result in results {
            assert_eq!(result.await.unwrap(), Err(ChildError::Cancelled));
        }
        server.waited_for_by(0).await;
    }
}

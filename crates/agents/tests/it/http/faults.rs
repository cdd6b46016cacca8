//! Whatever servers do: the kind of failure it is, and how often it is tried.

use fanfold::{AgentRequest, Answer, CancellationToken, ChildError, Subagents as _};
use fanfold_agents::{FailureKind, OpenAi};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use super::raw::{End, Raw};
use super::server::{Act, Api, BOTH, Server};
use super::{ask, failure, run, start, start_at};

fn soon(act: Act) -> Act {
    act.header("retry-after-ms", "1")
}

#[tokio::test]
async fn what_may_pass_is_tried_again() {
    for api in BOTH {
        let overloaded = if api == Api::OpenAi { 503 } else { 529 };
        let faults = [
            soon(api.error(429, "rate_limit_error", "slow down")),
            api.error(429, "rate_limit_error", "slow down").header("retry-after", "0"),
            soon(api.error(500, "api_error", "oops")),
            soon(api.error(overloaded, "overloaded_error", "busy")),
        ];
        for fault in faults {
            let server = Server::new([fault.clone(), fault, Act::Stream(api.says(&["done"]))]).await;
            assert_eq!(ask(api, &server).await, Ok(Answer::text("done")));
            assert_eq!(server.asked().len(), 3);
        }
    }
}

#[tokio::test]
async fn what_does_not_pass_is_tried_only_so_often() {
    for api in BOTH {
        for (retries, tries) in [(None, 3), (Some(0), 1), (Some(4), 5)] {
            let fault = soon(api.error(500, "server_error", "oops"));
            let server = Server::new(vec![fault; 9]).await;
            let mut request = AgentRequest::new("prompt");
            request.options.retries = retries;
            let (kind, reason) = failure(run(api, &server, request).await);
            assert_eq!((kind, server.asked().len()), (FailureKind::Server, tries));
            assert!(reason.ends_with(" answered 500: oops"), "{reason}");
        }
    }
}

#[tokio::test]
async fn a_pause_that_is_too_long_is_not_made() {
    for api in BOTH {
        let server =
            Server::new([api.error(429, "rate_limit_error", "slow down").header("retry-after", "3600")])
                .await;
        let (kind, reason) = failure(ask(api, &server).await);
        assert_eq!(kind, FailureKind::RateLimit);
        assert!(
            reason.ends_with("slow down; it asks to wait 3600 s, longer than 60 s (maxRetryWaitMs)"),
            "{reason}"
        );

        // Nor one that the call has no time for.
        let server =
            Server::new([api.error(429, "rate_limit_error", "slow down").header("retry-after", "50")]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.timeout_ms = Some(20_000);
        assert_eq!(failure(run(api, &server, request).await).0, FailureKind::RateLimit);
    }
}

/// The server's clock is an hour ahead: by ours, it asks for an hour and a second.
#[tokio::test]
async fn a_date_to_wait_for_is_one_of_the_servers_clock() {
    let ahead = |seconds: u64| {
        httpdate::fmt_http_date(std::time::SystemTime::now() + std::time::Duration::from_secs(3600 + seconds))
    };
    for api in BOTH {
        let busy = api.error(429, "rate_limit_error", "slow down");
        let busy = busy.header("date", ahead(0)).header("retry-after", ahead(1));
        let server = Server::new([busy, Act::Stream(api.says(&["done"]))]).await;
        assert_eq!(ask(api, &server).await, Ok(Answer::text("done")));
    }
}

#[tokio::test]
async fn what_cannot_change_is_not_tried_again() {
    for api in BOTH {
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(3);
        for (status, name, kind) in [
            (400, "invalid_request_error", FailureKind::InvalidRequest),
            (404, "not_found_error", FailureKind::InvalidRequest),
            (413, "request_too_large", FailureKind::InvalidRequest),
            (403, "permission_error", FailureKind::Permission),
        ] {
            let server = Server::new([api.error(status, name, "no")]).await;
            assert_eq!(failure(run(api, &server, request.clone()).await).0, kind, "{status}");
            assert_eq!(server.asked().len(), 1);
        }
    }
}

#[tokio::test]
async fn a_refused_key_and_a_used_up_quota_are_fatal() {
    for (api, status, name, kind) in [
        (Api::OpenAi, 401, "invalid_api_key", "authentication"),
        (Api::OpenAi, 429, "insufficient_quota", "quota"),
        (Api::OpenAi, 402, "", "quota"),
        (Api::Anthropic, 401, "authentication_error", "authentication"),
        (Api::Anthropic, 402, "billing_error", "quota"),
    ] {
        let server = Server::new([api.error(status, name, "no")]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(3);
        match run(api, &server, request).await {
            Err(ChildError::Fatal(reason)) => assert_eq!(reason.kind.as_deref(), Some(kind)),
            other => panic!("{other:?}"),
        }
        assert_eq!(server.asked().len(), 1);
    }
}

#[tokio::test]
async fn answers_that_are_none_have_their_kinds_and_are_tried_again_if_the_call_says_so() {
    let event = |json: serde_json::Value| vec![format!("data: {json}\n\n")];
    let delta = |delta: serde_json::Value| {
        [event(json!({"choices": [{"index": 0, "delta": delta}]})), Api::OpenAi.says(&[])].concat()
    };
    let half = |api: Api| {
        let mut events = api.says(&["a", "b"]);
        events.truncate(events.len() / 2);
        events
    };
    use FailureKind::{ContentFilter, CutOff, Length, Protocol, Refusal};
    let cases = [
        (Api::OpenAi, Act::Cut(half(Api::OpenAi)), CutOff),
        (Api::Anthropic, Act::Cut(half(Api::Anthropic)), CutOff),
        (Api::OpenAi, Act::Stream(half(Api::OpenAi)), CutOff),
        (Api::Anthropic, Act::Stream(half(Api::Anthropic)), CutOff),
        (Api::OpenAi, Act::Stream(vec!["data: {\"choices\": [\n\n".into()]), Protocol),
        (Api::Anthropic, Act::Stream(vec!["data: <html>\n\n".into()]), Protocol),
        (Api::OpenAi, Act::Whole(json!({"hello": "world"})), Protocol),
        (Api::OpenAi, Act::Stream(delta(json!({"refusal": "I will not."}))), Refusal),
        (Api::Anthropic, Act::Stream(Api::Anthropic.stops(&["I"], "refusal")), Refusal),
        (Api::OpenAi, Act::Stream(Api::OpenAi.stops(&["I"], "content_filter")), ContentFilter),
        (Api::OpenAi, Api::OpenAi.error(400, "content_filter", "bad words"), ContentFilter),
        (Api::OpenAi, Act::Stream(Api::OpenAi.stops(&["I"], "length")), Length),
        (Api::Anthropic, Act::Stream(Api::Anthropic.stops(&["I"], "max_tokens")), Length),
        (Api::OpenAi, Act::Stream(Api::OpenAi.stops(&[""], "tool_calls")), Protocol),
        (Api::Anthropic, Act::Stream(Api::Anthropic.stops(&[""], "tool_use")), Protocol),
    ];
    for (api, act, kind) in cases {
        let server = Server::new([act.clone(), act.clone()]).await;
        assert_eq!(failure(ask(api, &server).await).0, kind, "{act:?}");
        assert_eq!(server.asked().len(), 1, "{act:?}");

        let server = Server::new([act.clone(), Act::Stream(api.says(&["done"]))]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(1);
        assert_eq!(run(api, &server, request).await, Ok(Answer::text("done")), "{act:?}");
    }
}

#[tokio::test]
async fn an_error_in_the_midst_of_an_answer_is_what_it_says() {
    for (api, name, kind) in [
        (Api::OpenAi, "server_error", FailureKind::Server),
        (Api::OpenAi, "content_filter", FailureKind::ContentFilter),
        (Api::Anthropic, "overloaded_error", FailureKind::Server),
        (Api::Anthropic, "rate_limit_error", FailureKind::RateLimit),
    ] {
        let mut events = api.says(&["a"]);
        // Up to the piece, and no further.
        let piece = events.iter().position(|event| event.contains("\"a\"")).unwrap();
        events.truncate(piece + 1);
        events.push(format!(
            "event: error\ndata: {}\n\n",
            json!({"type": "error", "error": {"type": name, "message": "oops"}})
        ));
        let server = Server::new([Act::Stream(events)]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(0);
        let (found, reason) = failure(run(api, &server, request).await);
        assert_eq!(found, kind);
        assert!(reason.contains(" broke the answer off: oops; it had said: a"), "{reason}");
    }
}

/// Answers in one piece, for a server that does not stream.
#[tokio::test]
async fn an_answer_in_one_piece_is_judged_as_a_stream_is() {
    use FailureKind::{ContentFilter, CutOff, Length, Protocol, Refusal, Server as Broken};
    let chat = |message: serde_json::Value, reason: serde_json::Value| {
        (Api::OpenAi, json!({"choices": [{"message": message, "finish_reason": reason}]}))
    };
    let messages = |content: serde_json::Value, reason: serde_json::Value| {
        let details = json!({"type": "refusal", "category": "cyber", "explanation": "asks for malware"});
        let details = if reason == "refusal" { details } else { json!(null) };
        (
            Api::Anthropic,
            json!({"type": "message", "content": content, "stop_reason": reason, "stop_details": details}),
        )
    };
    let half = json!([{"type": "text", "text": "half"}]);
    for ((api, body), kind, words) in [
        (chat(json!({"content": "half"}), json!("length")), Length, "\"length\""),
        (chat(json!({"content": "half"}), json!("SAFETY")), ContentFilter, "\"SAFETY\""),
        (chat(json!({"content": "half"}), json!("banana")), Protocol, "\"banana\""),
        (chat(json!({"content": "half"}), json!("error")), Broken, "\"error\""),
        (chat(json!({"content": "half"}), json!("")), CutOff, "finish_reason is \"\""),
        (chat(json!({"content": "half"}), json!(null)), CutOff, "finish_reason is null"),
        (chat(json!({"content": null, "reasoning_content": "hm"}), json!("stop")), Protocol, "only thinking"),
        (chat(json!({"content": "", "tool_calls": [{"id": "c"}]}), json!("stop")), Protocol, "called a tool"),
        (chat(json!({"content": null}), json!("stop")), Protocol, "it is empty"),
        (chat(json!({"refusal": "I will not."}), json!("stop")), Refusal, "I will not."),
        ((Api::OpenAi, json!({"error": {"code": 503}})), Broken, r#"{"code":503}"#),
        ((Api::OpenAi, json!({"object": "error", "message": "m", "code": 500})), Broken, "off: m"),
        ((Api::OpenAi, json!({"detail": "m"})), Broken, "off: m"),
        ((Api::OpenAi, json!({"choices": []})), Protocol, r#"holds no answer: {"choices":[]}"#),
        ((Api::OpenAi, json!([])), Protocol, "holds no answer: []"),
        (messages(half.clone(), json!("max_tokens")), Length, "\"max_tokens\""),
        (messages(half.clone(), json!("pause_turn")), Protocol, "\"pause_turn\""),
        (messages(half.clone(), json!("banana")), Protocol, "\"banana\""),
        (messages(half, json!(null)), CutOff, "stop_reason is null"),
        (messages(json!([]), json!("refusal")), Refusal, "the model declined (cyber): asks for malware"),
        (messages(json!([]), json!("end_turn")), Protocol, "it is empty"),
        (
            messages(json!([{"type": "thinking", "thinking": "hm"}]), json!("end_turn")),
            Protocol,
            "only thinking",
        ),
        (
            (Api::Anthropic, json!({"type": "error", "error": {"type": "overloaded_error"}})),
            Broken,
            "overloaded",
        ),
        ((Api::Anthropic, json!({"hello": "world"})), Protocol, r#"holds no answer: {"hello":"world"}"#),
    ] {
        let server = Server::new([Act::Whole(body.clone())]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(0);
        let (found, reason) = failure(run(api, &server, request).await);
        assert_eq!(found, kind, "{body}: {reason}");
        assert!(reason.contains(words), "{body}: {reason}");
    }
}

#[tokio::test]
async fn json_that_breaks_off_is_no_answer() {
    use FailureKind::{Connection, CutOff, Protocol};
    let half = br#"{"choices": [{"message": {"content": "ha"#;
    for (body, end, kind) in [
        (&half[..], End::Close, CutOff),
        (half, End::Reset, CutOff),
        (b"", End::Close, Connection),
        (b"", End::Reset, Connection),
        (b" \n", End::Close, Connection),
        (b"<html>", End::Close, Protocol),
    ] {
        for json in ["application/json; charset=utf-8", "application/problem+json", "Text/JSON"] {
            let server = Raw::body(json, body, end).await;
            let mut request = AgentRequest::new("p");
            request.options.retries = Some(0);
            let child = start_at(Api::OpenAi, &server.url(), request, CancellationToken::new()).await;
            assert_eq!(failure(child.result.await).0, kind, "{body:?} {end:?}");
        }
    }
}

#[tokio::test]
async fn tries_that_failed_are_counted() {
    for api in BOTH {
        let reason = if api == Api::OpenAi { "length" } else { "max_tokens" };
        let server =
            Server::new([Act::Stream(api.stops(&["I"], reason)), Act::Stream(api.says(&["done"]))]).await;
        let mut request = AgentRequest::new("prompt");
        request.options.retries = Some(1);
        let child = start(api, &server, request, CancellationToken::new()).await;
        child.result.await.unwrap();
        assert_eq!(child.meter.total(), Some(api.usage() + api.usage()));
    }
}

#[tokio::test]
async fn what_comes_after_the_model_has_stopped_does_not_matter() {
    for api in BOTH {
        let mut events = api.says(&["done"]);
        events.truncate(events.len() - if api == Api::OpenAi { 2 } else { 1 });
        for act in [Act::Cut(events.clone()), Act::Stream(events)] {
            let server = Server::new([act]).await;
            assert_eq!(ask(api, &server).await, Ok(Answer::text("done")));
        }
    }
}

#[tokio::test]
async fn a_connection_that_breaks_before_the_answer_is_made_again() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serving = tokio::spawn(async move {
        drop(listener.accept().await.unwrap());
        let (mut second, _) = listener.accept().await.unwrap();
        let mut request = vec![0; 10_000];
        assert!(second.read(&mut request).await.unwrap() > 0);
        drop(second);
        let (mut third, _) = listener.accept().await.unwrap();
        assert!(third.read(&mut request).await.unwrap() > 0);
        let body = Api::OpenAi.says(&["done"]).concat();
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        third.write_all(format!("{head}{body}").as_bytes()).await.unwrap();
    });
    let agents = OpenAi::new(&url, None).unwrap().model("m");
    let child = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap();
    assert_eq!(child.result.await, Ok(Answer::text("done")));
    serving.await.unwrap();
}

#[tokio::test]
async fn a_server_that_is_not_there_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let agents = OpenAi::new(&url, None).unwrap().model("m").transient_retries(0);
    let child = agents.start(AgentRequest::new("p"), CancellationToken::new()).await.unwrap();
    let (kind, reason) = failure(child.result.await);
    assert_eq!(kind, FailureKind::Connection);
    assert!(reason.starts_with("connection: openai cannot be reached: "), "{reason}");
}

//! A server that speaks both APIs, and does to each request what it was told.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use fanfold::Usage;
use futures::{StreamExt as _, stream};
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Api {
    OpenAi,
    Anthropic,
}

pub(super) const BOTH: [Api; 2] = [Api::OpenAi, Api::Anthropic];

impl Api {
    /// The events of an answer in these pieces, as the API sends them.
    pub(super) fn says(self, pieces: &[&str]) -> Vec<String> {
        let stop = match self {
            Api::OpenAi => "stop",
            Api::Anthropic => "end_turn",
        };
        self.stops(pieces, stop)
    }

    /// The same, stopped for this reason. 11 tokens are read and 7 written.
    pub(super) fn stops(self, pieces: &[&str], reason: &str) -> Vec<String> {
        match self {
            Api::OpenAi => {
                let mut events =
                    vec![chunk(json!({"role": "assistant", "content": "", "refusal": null}), None)];
                events.extend(pieces.iter().map(|piece| chunk(json!({"content": piece}), None)));
                events.push(chunk(json!({}), Some(reason)));
                let usage = json!({"prompt_tokens": 11, "completion_tokens": 7, "total_tokens": 18});
                events.push(format!("data: {}\n\n", json!({"id": "c", "choices": [], "usage": usage})));
                events.push("data: [DONE]\n\n".into());
                events
            }
            Api::Anthropic => {
                let usage = json!({"input_tokens": 1, "cache_read_input_tokens": 10, "output_tokens": 1});
                let mut events = vec![
                    event("message_start", json!({"message": {"id": "m", "content": [], "usage": usage}})),
                    event(
                        "content_block_start",
                        json!({"index": 0, "content_block": {"type": "thinking", "thinking": ""}}),
                    ),
                    event(
                        "content_block_delta",
                        json!({"index": 0, "delta": {"type": "thinking_delta", "thinking": "hm"}}),
                    ),
                    event("content_block_stop", json!({"index": 0})),
                    event(
                        "content_block_start",
                        json!({"index": 1, "content_block": {"type": "text", "text": ""}}),
                    ),
                    event("ping", json!({})),
                ];
                let delta = |piece| json!({"index": 1, "delta": {"type": "text_delta", "text": piece}});
                events.extend(pieces.iter().map(|piece| event("content_block_delta", delta(piece))));
                events.push(event("content_block_stop", json!({"index": 1})));
                let delta = json!({"delta": {"stop_reason": reason}, "usage": {"output_tokens": 7}});
                events.push(event("message_delta", delta));
                events.push(event("message_stop", json!({})));
                events
            }
        }
    }

    /// What such an answer costs: with Anthropic, 10 of the tokens come from a cache.
    pub(super) fn usage(self) -> Usage {
        Usage::new(11, 7).cached(if self == Api::Anthropic { 10 } else { 0 }, 0)
    }

    /// An error response as the API words it.
    pub(super) fn error(self, status: u16, name: &str, message: &str) -> Act {
        let body = match self {
            Api::OpenAi => json!({"error": {"message": message, "type": name, "param": null, "code": name}}),
            Api::Anthropic => json!({"type": "error", "error": {"type": name, "message": message}}),
        };
        Act::Error {
            status,
            headers: vec![("content-type", "application/json".into())],
            body: body.to_string(),
        }
    }
}

fn chunk(delta: Value, finish: Option<&str>) -> String {
    let choice = json!({"index": 0, "delta": delta, "finish_reason": finish});
    format!("data: {}\n\n", json!({"id": "c", "object": "chat.completion.chunk", "choices": [choice]}))
}

fn event(name: &str, mut data: Value) -> String {
    data["type"] = name.into();
    format!("event: {name}\ndata: {data}\n\n")
}

/// What the server does to a request.
#[derive(Clone, Debug)]
pub(super) enum Act {
    /// Streams these events.
    Stream(Vec<String>),
    /// Streams these events, with a pause before each.
    Slowly(Vec<String>, Duration),
    /// Streams these events and breaks the connection.
    Cut(Vec<String>),
    /// Streams these events and then nothing, for ever.
    Silence(Vec<String>),
    /// Says nothing at all, for ever.
    Hang,
    /// Answers JSON in one piece.
    Whole(Value),
    Error {
        status: u16,
        headers: Vec<(&'static str, String)>,
        body: String,
    },
}

impl Act {
    /// An error response with one more header.
    pub(super) fn header(mut self, name: &'static str, value: impl Into<String>) -> Self {
        if let Act::Error { headers, .. } = &mut self {
            headers.push((name, value.into()));
        }
        self
    }
}

/// What was asked.
#[derive(Clone, Debug)]
pub(super) struct Asked {
    pub(super) path: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Value,
}

#[derive(Default)]
struct Script {
    acts: VecDeque<Act>,
    asked: Vec<Asked>,
}

#[derive(Clone)]
struct Shared {
    script: Arc<Mutex<Script>>,
    /// How many answers that have no end are being waited for.
    waiting: watch::Sender<usize>,
}

pub(super) struct Server {
    address: SocketAddr,
    shared: Shared,
    serving: tokio::task::JoinHandle<()>,
}

impl Server {
    /// A server that does these things to the requests that come, in order; more are refused.
    pub(super) async fn new(acts: impl IntoIterator<Item = Act>) -> Self {
        let script = Script { acts: acts.into_iter().collect(), asked: Vec::new() };
        let shared = Shared { script: Arc::new(Mutex::new(script)), waiting: watch::Sender::new(0) };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let router = Router::new().fallback(answer).with_state(shared.clone());
        let serving = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Self { address, shared, serving }
    }

    pub(super) fn url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) fn asked(&self) -> Vec<Asked> {
        self.shared.script.lock().unwrap().asked.clone()
    }

    /// The prompts that came.
    pub(super) fn prompts(&self) -> Vec<String> {
        let prompt = |asked: &Asked| asked.body["messages"][0]["content"].as_str().unwrap().to_owned();
        self.asked().iter().map(prompt).collect()
    }

    /// Returns once so many requests wait for an answer that has no end.
    pub(super) async fn waited_for_by(&self, count: usize) {
        let mut waiting = self.shared.waiting.subscribe();
        let seen = waiting.wait_for(|waiting| *waiting == count);
        tokio::time::timeout(Duration::from_secs(30), seen).await.expect("the connections change").unwrap();
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

/// Counts a request that waits; dropped with its connection.
struct Waiting(watch::Sender<usize>);

impl Waiting {
    fn new(sender: &watch::Sender<usize>) -> Self {
        sender.send_modify(|waiting| *waiting += 1);
        Self(sender.clone())
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.0.send_modify(|waiting| *waiting -= 1);
    }
}

async fn answer(State(shared): State<Shared>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let body = axum::body::to_bytes(body, usize::MAX).await.unwrap();
    let act = {
        let mut script = shared.script.lock().unwrap();
        script.asked.push(Asked {
            path: parts.uri.to_string(),
            headers: parts.headers,
            body: serde_json::from_slice(&body).unwrap(),
        });
        script.acts.pop_front()
    };
    let bytes = |event: String| Ok::<_, std::io::Error>(Bytes::from(event));
    match act {
        Some(Act::Stream(events)) => sse(Body::from_stream(stream::iter(events.into_iter().map(bytes)))),
        Some(Act::Slowly(events, pause)) => {
            let events = stream::iter(events).then(move |event| async move {
                tokio::time::sleep(pause).await;
                bytes(event)
            });
            sse(Body::from_stream(events))
        }
        Some(Act::Cut(events)) => {
            let broken = stream::once(async {
                // What was sent before must have left.
                tokio::time::sleep(Duration::from_millis(50)).await;
                Err(std::io::Error::other("cut"))
            });
            sse(Body::from_stream(stream::iter(events.into_iter().map(bytes)).chain(broken)))
        }
        Some(Act::Silence(events)) => {
            let waiting = Waiting::new(&shared.waiting);
            let silence = stream::once(async move {
                let _waiting = waiting;
                std::future::pending::<()>().await;
                bytes(String::new())
            });
            sse(Body::from_stream(stream::iter(events.into_iter().map(bytes)).chain(silence)))
        }
        Some(Act::Hang) => {
            let _waiting = Waiting::new(&shared.waiting);
            let never: Infallible = std::future::pending().await;
            match never {}
        }
        Some(Act::Whole(body)) => {
            ([(header::CONTENT_TYPE, "application/json")], body.to_string()).into_response()
        }
        Some(Act::Error { status, headers, body }) => {
            let mut response = (StatusCode::from_u16(status).unwrap(), body).into_response();
            for (name, value) in headers {
                response.headers_mut().insert(name, value.parse().unwrap());
            }
            response
        }
        None => (StatusCode::IM_A_TEAPOT, "the test expects no more requests").into_response(),
    }
}

fn sse(body: Body) -> Response {
    ([(header::CONTENT_TYPE, "text/event-stream; charset=utf-8")], body).into_response()
}

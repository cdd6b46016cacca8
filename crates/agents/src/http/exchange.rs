//! One request and its streamed answer. Dropping it closes the connection, or the stream in it.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Request, Response};
use tokio::time::{Instant, timeout_at};

use super::protocol::{Protocol, Reply};
use super::refusal::{self, Complaint};
use super::said::Said;
use super::sse::{Decoder, Event, TooLarge};
use crate::failure::{Failure, FailureKind, Reason};
use crate::json;

/// How much of a body that is no answer is read, in bytes, and for how long: it is a help, and no more.
const MAX_OTHER_BYTES: usize = 64 * 1024;
const MAX_OTHER_TIME: Duration = Duration::from_secs(10);

/// How long to go on reading once the API has said why the model stopped. The answer is there; what it cost, and that
/// a filter has taken it back, may still follow. Keep-alives must not hold it up.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// How long an answer may be, and until when it is of use.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) answer_bytes: usize,
    /// When the answer has to have been read, and its value found.
    pub(super) deadline: Option<Instant>,
}

impl Bounds {
    /// The most bytes of JSON that an answer may take: escapes make up to six bytes of one.
    fn json_bytes(self) -> usize {
        self.answer_bytes.saturating_mul(6).saturating_add(MAX_OTHER_BYTES)
    }

    /// Until when to go on reading if the API says now why the model stopped. The wait must not take so much of the
    /// time that is left that the answer comes too late.
    fn last_word(self) -> Instant {
        let now = Instant::now();
        let left = self.deadline.map(|deadline| deadline.saturating_duration_since(now) / 2);
        now + left.map_or(AFTER_STOP, |left| left.min(AFTER_STOP))
    }
}

/// Sends a request and reads its answer into `reply`, which holds what came so far whatever happens.
pub(super) async fn exchange<P: Protocol>(
    client: &reqwest::Client,
    request: Request,
    bounds: Bounds,
    said: &mut Said<'_>,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let response = client.execute(request).await.map_err(not_sent::<P>)?;
    said.heard();
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        return Err(refusal::failure(P::NAME, status, &headers, &other(response, said).await));
    }
    match media_type(headers.get(CONTENT_TYPE)).as_str() {
        "" | "text/event-stream" => stream::<P>(response, bounds, said, reply).await,
        json if json.ends_with("/json") || json.ends_with("+json") => {
            let mut body = Vec::new();
            let read = read(response, bounds.json_bytes(), said, &mut body).await;
            reply.alive = !body.is_empty();
            reply.begun = !body.trim_ascii().is_empty();
            match read {
                Ok(true) => whole::<P>(reply, &body, bounds, said),
                Ok(false) => Err(too_large(bounds)),
                Err(error) => Err(broke_off::<P>(reply, error)),
            }
        }
        page => {
            let body = other(response, said).await;
            let body = String::from_utf8_lossy(&body);
            let (body, status) = (body.trim(), status.as_u16());
            let separator = if body.is_empty() { "" } else { ": " };
            let what = "which is neither JSON nor an event stream";
            let message = format!("{} answered {status} with {page}, {what}{separator}{body}", P::NAME);
            Err(Failure::new(FailureKind::Protocol, message))
        }
    }
}

/// Reads an answer that came in one piece. A body that ends within its JSON broke off; an empty one never began, which
/// `reply` tells.
fn whole<P: Protocol>(
    reply: &mut Reply,
    body: &[u8],
    bounds: Bounds,
    said: &mut Said<'_>,
) -> Result<(), Failure> {
    if !reply.begun {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    let json = match json::parse(&text) {
        Ok(json) => json,
        Err(error) if error.is_eof() => {
            return Err(Failure::new(
                FailureKind::CutOff,
                format!("{}'s answer broke off: {error}", P::NAME),
            ));
        }
        Err(error) => return Err(no_json::<P>(&error, &text)),
    };
    reply.read_whole::<P>(&json)?;
    said.follow(reply.text());
    check_size(reply, bounds)
}

async fn stream<P: Protocol>(
    response: Response,
    bounds: Bounds,
    said: &mut Said<'_>,
    reply: &mut Reply,
) -> Result<(), Failure> {
    let mut decoder = Decoder::new(bounds.json_bytes());
    let mut bytes = response.bytes_stream();
    let mut last = None;
    let end = loop {
        let next = if reply.is_told() {
            let last = *last.get_or_insert_with(|| bounds.last_word());
            // A timeout alone never ends what always has something to give.
            if last <= Instant::now() {
                break Ok(());
            }
            timeout_at(last, bytes.next()).await.unwrap_or(None)
        } else {
            bytes.next().await
        };
        let piece = match next {
            None => break Ok(()),
            Some(Ok(piece)) => piece,
            Some(Err(error)) => break Err(error),
        };
        said.heard();
        reply.alive |= !piece.is_empty();
        for event in decoder.push(&piece).map_err(|TooLarge| too_large(bounds))? {
            take::<P>(reply, &event)?;
            said.follow(reply.text());
            check_size(reply, bounds)?;
            if reply.has_ended() {
                return Ok(());
            }
        }
    };
    // What broke off within an event is not to be read; one that lacks its blank line alone is.
    if let Ok(Some(event)) = decoder.finish()
        && (event.name == "error" || is_done(&event) || json::parse(&event.data).is_ok())
    {
        take::<P>(reply, &event)?;
        said.follow(reply.text());
        check_size(reply, bounds)?;
    }
    let stray = decoder.stray().trim_ascii();
    reply.begun |= !stray.is_empty();
    match end {
        // Nothing of the answer is missing, whatever else is.
        _ if reply.is_told() || reply.has_ended() => Ok(()),
        Err(error) => Err(broke_off::<P>(reply, error)),
        // Some say that their JSON is an event stream.
        Ok(()) if !stray.is_empty() => whole::<P>(reply, stray, bounds, said),
        Ok(()) => Ok(()),
    }
}

/// Reads an event.
fn take<P: Protocol>(reply: &mut Reply, event: &Event) -> Result<(), Failure> {
    let data = event.data.trim();
    if is_done(event) {
        reply.begun = true;
        reply.end();
        return Ok(());
    }
    if event.name == "ping" || (data.is_empty() && event.name != "error") {
        return Ok(());
    }
    match json::parse(data) {
        Ok(json) if json.get("type").is_some_and(|name| name == "ping") => Ok(()),
        Ok(json) => reply.read::<P>(&event.name, &json),
        Err(_) if event.name == "error" => {
            let words = if data.is_empty() { "an error without words" } else { data };
            Err(refusal::failure_within(P::NAME, &Complaint::words(words)))
        }
        Err(_) if reply.is_told() => Ok(()),
        Err(error) => Err(no_json::<P>(&error, data)),
    }
}

/// Whether an event is the mark that chat completions end with.
fn is_done(event: &Event) -> bool {
    event.data.trim() == "[DONE]"
}

/// Reads a body, up to its end or more than `most` bytes; whether that is all of it.
async fn read(
    response: Response,
    most: usize,
    said: &Said<'_>,
    body: &mut Vec<u8>,
) -> Result<bool, reqwest::Error> {
    let mut bytes = response.bytes_stream();
    while let Some(piece) = bytes.next().await {
        said.heard();
        body.extend_from_slice(&piece?);
        if body.len() > most {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The beginning of a body that is no answer, as far as it comes.
async fn other(response: Response, said: &Said<'_>) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = read(response, MAX_OTHER_BYTES, said, &mut body);
    // However that ends: what came is what there is.
    let _ = tokio::time::timeout(MAX_OTHER_TIME, reading).await;
    body.truncate(MAX_OTHER_BYTES);
    body
}

fn no_json<P: Protocol>(error: &serde_json::Error, said: &str) -> Failure {
    Failure::new(
        FailureKind::Protocol,
        format!("{} sent what is not JSON ({error}): {}", P::NAME, said.trim()),
    )
}

fn check_size(reply: &Reply, bounds: Bounds) -> Result<(), Failure> {
    if reply.size() > bounds.answer_bytes { Err(too_large(bounds)) } else { Ok(()) }
}

fn too_large(bounds: Bounds) -> Failure {
    Failure::new(FailureKind::AnswerSize, format!("the answer is longer than {} bytes", bounds.answer_bytes))
}

/// A content type without its parameters, in lower case; empty where none is given.
fn media_type(content_type: Option<&HeaderValue>) -> String {
    let text = String::from_utf8_lossy(content_type.map_or(&[], HeaderValue::as_bytes));
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The request got no answer.
fn not_sent<P: Protocol>(error: reqwest::Error) -> Failure {
    let what = if error.is_connect() { "cannot be reached" } else { "closed the connection" };
    failed(FailureKind::Connection, format!("{} {what}: {}", P::NAME, described(&error)), error)
}

/// The connection broke in the midst of the answer, or before anything of it came.
fn broke_off<P: Protocol>(reply: &Reply, error: reqwest::Error) -> Failure {
    let why = described(&error);
    match reply.begun {
        true => failed(FailureKind::CutOff, format!("{}'s answer broke off: {why}", P::NAME), error),
        false => failed(FailureKind::Connection, format!("{}: {why}", reply.unheard(P::NAME)), error),
    }
}

/// A failure of the connection. Its source is without the URL, which may hold a key.
fn failed(kind: FailureKind, message: String, error: reqwest::Error) -> Failure {
    Failure::Failed(Reason::new(kind, message).of(error.without_url()))
}

/// The innermost cause: the outer ones repeat the URL and what was tried.
fn described(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    if std::ptr::eq(cause, error as &dyn std::error::Error) {
        return "the HTTP client gives no reason".into();
    }
    cause.to_string()
}

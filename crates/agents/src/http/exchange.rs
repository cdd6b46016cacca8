//! One request and its streamed answer. Dropping it closes the connection, or the stream in it.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Request, Response};
use tokio::time::{Instant, timeout_at};

use super::protocol::{Protocol, Reply};
use super::refusal::{self, Complaint};
use super::sse::{Decoder, Event, TooLarge};
use crate::failure::{Failure, FailureKind};
use crate::json;

/// How much of a body that is no answer is read, in bytes, and for how long: it is a help, and no more.
const MAX_OTHER_BYTES: usize = 64 * 1024;
const MAX_OTHER_TIME: Duration = Duration::from_secs(10);

/// How long to go on reading once the API has said why the model stopped. The answer is there; what it cost, and that
/// a filter has taken it back, may still follow. Keep-alives must not hold it up.
const AFTER_STOP: Duration = Duration::from_secs(2);

/// How long an answer and its silences may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) answer_bytes: usize,
    /// The longest time without a byte.
    pub(super) stall: Duration,
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
    reply: &mut Reply,
) -> Result<(), Failure> {
    let sent = within(bounds.stall, client.execute(request)).await?;
    let response = sent.map_err(|error| not_sent::<P>(&error))?;
    let (status, headers) = (response.status(), response.headers().clone());
    if !status.is_success() {
        return Err(refusal::failure(P::NAME, status, &headers, &other(response).await));
    }
    match media_type(headers.get(CONTENT_TYPE)).as_str() {
        "" | "text/event-stream" => stream::<P>(response, bounds, reply).await,
        json if json.ends_with("/json") || json.ends_with("+json") => {
            let mut body = Vec::new();
            let broken = read(response, bounds.json_bytes(), bounds.stall, &mut body).await;
            reply.alive = !body.is_empty();
            reply.begun = !body.trim_ascii().is_empty();
            match broken {
                Ok(true) => whole::<P>(reply, &body, bounds),
                Ok(false) => Err(too_large(bounds)),
                Err(Broken::Off(error)) => Err(broke_off::<P>(reply, &error)),
                Err(Broken::Stalled(failure)) => Err(failure),
            }
        }
        page => {
            let said = other(response).await;
            let said = String::from_utf8_lossy(&said);
            let (said, status) = (said.trim(), status.as_u16());
            let separator = if said.is_empty() { "" } else { ": " };
            let what = "which is neither JSON nor an event stream";
            let message = format!("{} answered {status} with {page}, {what}{separator}{said}", P::NAME);
            Err(Failure::new(FailureKind::Protocol, message))
        }
    }
}

/// Reads an answer that came in one piece. A body that ends within its JSON broke off; an empty one never began, which
/// `reply` tells.
fn whole<P: Protocol>(reply: &mut Reply, body: &[u8], bounds: Bounds) -> Result<(), Failure> {
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
    check_size(reply, bounds)
}

async fn stream<P: Protocol>(response: Response, bounds: Bounds, reply: &mut Reply) -> Result<(), Failure> {
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
            timeout_at(last, within(bounds.stall, bytes.next())).await.unwrap_or(Ok(None))
        } else {
            within(bounds.stall, bytes.next()).await
        };
        let piece = match next {
            Ok(None) => break Ok(()),
            Ok(Some(Ok(piece))) => piece,
            Ok(Some(Err(error))) => break Err(Broken::Off(error)),
            Err(stalled) => break Err(Broken::Stalled(stalled)),
        };
        reply.alive |= !piece.is_empty();
        for event in decoder.push(&piece).map_err(|TooLarge| too_large(bounds))? {
            take::<P>(reply, &event)?;
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
        check_size(reply, bounds)?;
    }
    let stray = decoder.stray().trim_ascii();
    reply.begun |= !stray.is_empty();
    match end {
        // Nothing of the answer is missing, whatever else is.
        _ if reply.is_told() || reply.has_ended() => Ok(()),
        Err(Broken::Off(error)) => Err(broke_off::<P>(reply, &error)),
        Err(Broken::Stalled(failure)) => Err(failure),
        // Some say that their JSON is an event stream.
        Ok(()) if !stray.is_empty() => whole::<P>(reply, stray, bounds),
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

/// How reading ended before the end.
enum Broken {
    Off(reqwest::Error),
    Stalled(Failure),
}

/// Reads a body, up to its end or more than `most` bytes; whether that is all of it.
async fn read(response: Response, most: usize, stall: Duration, body: &mut Vec<u8>) -> Result<bool, Broken> {
    let mut bytes = response.bytes_stream();
    while let Some(piece) = within(stall, bytes.next()).await.map_err(Broken::Stalled)? {
        body.extend_from_slice(&piece.map_err(Broken::Off)?);
        if body.len() > most {
            return Ok(false);
        }
    }
    Ok(true)
}

/// The beginning of a body that is no answer, as far as it comes.
async fn other(response: Response) -> Vec<u8> {
    let mut body = Vec::new();
    let reading = read(response, MAX_OTHER_BYTES, MAX_OTHER_TIME, &mut body);
    // However that ends: what came is what there is.
    let _ = tokio::time::timeout(MAX_OTHER_TIME, reading).await;
    body.truncate(MAX_OTHER_BYTES);
    body
}

/// The next thing that comes, unless nothing comes for too long.
async fn within<T>(stall: Duration, next: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(stall, next)
        .await
        .map_err(|_| Failure::new(FailureKind::Stall, format!("nothing came for {} ms", stall.as_millis())))
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
    let most = bounds.answer_bytes;
    Failure::new(FailureKind::AnswerSize, format!("the answer is longer than {most} bytes"))
}

/// A content type without its parameters, in lower case; empty where none is given.
fn media_type(content_type: Option<&HeaderValue>) -> String {
    let text = String::from_utf8_lossy(content_type.map_or(&[], HeaderValue::as_bytes));
    text.split(';').next().unwrap_or_default().trim().to_ascii_lowercase()
}

/// The request got no answer.
fn not_sent<P: Protocol>(error: &reqwest::Error) -> Failure {
    let what = if error.is_connect() { "cannot be reached" } else { "closed the connection" };
    Failure::new(FailureKind::Connection, format!("{} {what}: {}", P::NAME, described(error)))
}

/// The connection broke in the midst of the answer, or before anything of it came.
fn broke_off<P: Protocol>(reply: &Reply, error: &reqwest::Error) -> Failure {
    let error = described(error);
    match reply.begun {
        true => Failure::new(FailureKind::CutOff, format!("{}'s answer broke off: {error}", P::NAME)),
        false => Failure::new(FailureKind::Connection, format!("{}: {error}", reply.unheard(P::NAME))),
    }
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

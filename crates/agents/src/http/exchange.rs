//! One request and its streamed answer. Dropping it closes the connection, or the stream in it.

use std::time::Duration;

use futures::StreamExt as _;
use reqwest::header::{CONTENT_TYPE, HeaderValue};
use reqwest::{Request, Response};

use super::protocol::{Protocol, Reply};
use super::refusal;
use super::sse::{Decoder, TooLarge};
use crate::failure::{Failure, FailureKind};
use crate::json;

/// How much of an error response is read, in bytes.
const MAX_ERROR_BYTES: usize = 64 * 1024;

/// How long an answer and its silences may be.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bounds {
    pub(super) answer_bytes: usize,
    /// The longest time without a byte.
    pub(super) stall: Duration,
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
    let status = response.status();
    if !status.is_success() {
        let headers = response.headers().clone();
        // What is said of the error is a help; the status says enough.
        let body = read(response, MAX_ERROR_BYTES, bounds.stall).await.unwrap_or_default();
        return Err(refusal::failure(P::NAME, status, &headers, &body));
    }
    if is_json(response.headers().get(CONTENT_TYPE)) {
        // JSON escapes make up to six bytes of one.
        let most = bounds.answer_bytes.saturating_mul(6).saturating_add(MAX_ERROR_BYTES);
        let body = read(response, most, bounds.stall).await?;
        let body = parse::<P>(&String::from_utf8_lossy(&body))?;
        reply.read::<P>(&body)?;
        P::whole(reply, &body);
        return check_size(reply, bounds);
    }
    stream::<P>(response, bounds, reply).await
}

async fn stream<P: Protocol>(response: Response, bounds: Bounds, reply: &mut Reply) -> Result<(), Failure> {
    let most = bounds.answer_bytes.saturating_mul(6).saturating_add(MAX_ERROR_BYTES);
    let mut decoder = Decoder::new(most);
    let mut bytes = response.bytes_stream();
    loop {
        let piece = match within(bounds.stall, bytes.next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(piece))) => piece,
            // The model had said why it stopped: what is missing is not part of the answer.
            Ok(Some(Err(_))) | Err(_) if reply.stop.is_some() => return Ok(()),
            Ok(Some(Err(error))) => return Err(cut_off::<P>(&error)),
            Err(stalled) => return Err(stalled),
        };
        for event in decoder.push(&piece).map_err(|TooLarge| too_large(bounds))? {
            if event.data == "[DONE]" {
                reply.complete = true;
            } else if !event.data.is_empty() {
                reply.read::<P>(&parse::<P>(&event.data)?)?;
            }
            check_size(reply, bounds)?;
            if reply.complete {
                return Ok(());
            }
        }
    }
}

/// Reads all of a body.
async fn read(response: Response, most: usize, stall: Duration) -> Result<Vec<u8>, Failure> {
    let mut body = Vec::new();
    let mut bytes = response.bytes_stream();
    while let Some(piece) = within(stall, bytes.next()).await? {
        let broken = |error: reqwest::Error| Failure::new(FailureKind::CutOff, described(&error));
        body.extend_from_slice(&piece.map_err(broken)?);
        if body.len() > most {
            body.truncate(most);
            return Ok(body);
        }
    }
    Ok(body)
}

/// The next thing that comes, unless nothing comes for too long.
async fn within<T>(stall: Duration, next: impl Future<Output = T>) -> Result<T, Failure> {
    tokio::time::timeout(stall, next)
        .await
        .map_err(|_| Failure::new(FailureKind::Stall, format!("nothing came for {} ms", stall.as_millis())))
}

fn parse<P: Protocol>(text: &str) -> Result<serde_json::Value, Failure> {
    json::parse(text).map_err(|error| {
        Failure::new(FailureKind::Protocol, format!("{} sent what is no JSON: {error}", P::NAME))
    })
}

fn check_size(reply: &Reply, bounds: Bounds) -> Result<(), Failure> {
    let size = reply.text.len().max(reply.refusal.len());
    if size > bounds.answer_bytes { Err(too_large(bounds)) } else { Ok(()) }
}

fn too_large(bounds: Bounds) -> Failure {
    let most = bounds.answer_bytes;
    Failure::new(FailureKind::AnswerSize, format!("the answer is longer than {most} bytes"))
}

fn is_json(content_type: Option<&HeaderValue>) -> bool {
    let text = content_type.and_then(|value| value.to_str().ok()).unwrap_or_default();
    text.trim_start().to_ascii_lowercase().starts_with("application/json")
}

/// The request got no answer.
fn not_sent<P: Protocol>(error: &reqwest::Error) -> Failure {
    let what = if error.is_connect() { "cannot be reached" } else { "closed the connection" };
    Failure::new(FailureKind::Connection, format!("{} {what}: {}", P::NAME, described(error)))
}

fn cut_off<P: Protocol>(error: &reqwest::Error) -> Failure {
    Failure::new(FailureKind::CutOff, format!("{}'s answer broke off: {}", P::NAME, described(error)))
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

//! One request and its answer: reads the message before `rmcp` does, and notes whether the answer was read.

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::Response;
use futures::StreamExt as _;
use serde_json::Value;

use super::refusal::{as_json_rpc, refuse, response};
use crate::delivery::Delivery;
use crate::incoming::{self, Fault, MAX_BYTES, Refusal};

pub(super) async fn exchange(request: Request, next: Next) -> Response {
    if request.method() != Method::POST {
        return as_json_rpc(next.run(request).await, Value::Null).await;
    }
    let (mut parts, body) = request.into_parts();
    let bytes = match collect(body).await {
        Ok(bytes) => bytes,
        Err(refused) => return refused,
    };
    let (text, id) = match incoming::read(&bytes) {
        Ok(readable) => (readable.text.into_owned(), readable.id),
        Err(Fault::Refused(refusal)) => return response(StatusCode::BAD_REQUEST, &refusal),
        Err(Fault::Ignored) => return refuse(StatusCode::BAD_REQUEST, "the message is nested too deeply"),
    };
    let delivery = Delivery::default();
    parts.extensions.insert(delivery.clone());
    parts.headers.insert(header::CONTENT_LENGTH, text.len().into());
    parts.headers.remove(header::TRANSFER_ENCODING);
    let answer = next.run(Request::from_parts(parts, Body::from(text))).await;
    followed(as_json_rpc(answer, id).await, delivery)
}

/// A longer body is not read to its end.
const MAX_DISCARDED: usize = 8 * MAX_BYTES;

/// The body, if it is not too long. One that is too long is read and dropped: a client that is still sending when it is
/// answered does not hear why.
async fn collect(body: Body) -> Result<Vec<u8>, Response> {
    let (mut collected, mut length, mut stream) = (Vec::new(), 0, body.into_data_stream());
    while let Some(part) = stream.next().await {
        // A client that goes while it sends hears nothing.
        let part: Bytes = part.map_err(|error| refuse(StatusCode::BAD_REQUEST, &error.to_string()))?;
        length += part.len();
        if length <= MAX_BYTES {
            collected.extend_from_slice(&part);
        } else if length > MAX_DISCARDED {
            break;
        }
    }
    if length > MAX_BYTES {
        let message = format!("the message has more than {MAX_BYTES} bytes; pass less, or where to find it");
        let refusal = Refusal::new(Value::Null, Refusal::PARSE, message);
        return Err(response(StatusCode::PAYLOAD_TOO_LARGE, &refusal));
    }
    Ok(collected)
}

/// Notes whether the body is read to its end.
fn followed(response: Response, delivery: Delivery) -> Response {
    let (parts, body) = response.into_parts();
    let reading = Reading(delivery);
    let body =
        body.into_data_stream().map(Some).chain(futures::stream::iter([None])).filter_map(move |part| {
            if part.is_none() {
                reading.0.delivered();
            }
            std::future::ready(part)
        });
    Response::from_parts(parts, Body::from_stream(body))
}

/// Dropped with the body.
struct Reading(Delivery);

impl Drop for Reading {
    fn drop(&mut self) {
        self.0.lost();
    }
}

//! Answers to requests that are refused, as JSON-RPC has them.

use axum::body::Body;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse as _, Response};
use serde_json::Value;

use crate::incoming::Refusal;

/// The session is not known; clients begin a new one.
const SESSION_NOT_FOUND: i32 = -32001;
/// Refused for another reason.
const REFUSED: i32 = -32000;

/// Longer than any text that is put into JSON here.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// A refusal with this status.
pub(super) fn response(status: StatusCode, refusal: &Refusal) -> Response {
    let content_type = [(header::CONTENT_TYPE, "application/json")];
    (status, content_type, refusal.json().to_string()).into_response()
}

/// A refusal of a request whose id is not known.
pub(super) fn refuse(status: StatusCode, message: &str) -> Response {
    response(status, &Refusal::new(Value::Null, code(status), message))
}

/// The same response with a JSON-RPC error as its body, if it is a refusal in plain text.
pub(super) async fn as_json_rpc(response: Response, id: Value) -> Response {
    let status = response.status();
    let is_json = |value: &HeaderValue| value.as_bytes().starts_with(b"application/json");
    if !(status.is_client_error() || status.is_server_error())
        || response.headers().get(header::CONTENT_TYPE).is_some_and(is_json)
    {
        return response;
    }
    let (mut parts, body) = response.into_parts();
    let text = axum::body::to_bytes(body, MAX_TEXT_BYTES).await.unwrap_or_default();
    let refusal = Refusal::new(id, code(status), String::from_utf8_lossy(&text));
    parts.headers.remove(header::CONTENT_LENGTH);
    parts.headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Response::from_parts(parts, Body::from(refusal.json().to_string()))
}

fn code(status: StatusCode) -> i32 {
    match status {
        StatusCode::NOT_FOUND => SESSION_NOT_FOUND,
        StatusCode::PAYLOAD_TOO_LARGE => Refusal::PARSE,
        _ => REFUSED,
    }
}

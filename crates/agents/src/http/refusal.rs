//! What an error response means: the one place that knows how APIs say no.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::failure::{Failure, FailureKind, Reason};
use crate::json;

/// What an API says of an error, in the shapes that are about:
/// `{"error": {"type", "code", "message"}}`, the same in an array, `{"error": "message"}`, and the fields bare.
pub(super) struct Complaint {
    /// `type` and `code`, as far as they are texts.
    names: Vec<String>,
    message: String,
}

impl Complaint {
    pub(super) fn of(body: &Value) -> Option<Self> {
        let body = body.get(0).unwrap_or(body);
        let error = body.get("error").unwrap_or(body);
        if let Some(message) = error.as_str() {
            return Some(Self { names: Vec::new(), message: message.into() });
        }
        let message = error.get("message").or_else(|| error.get("detail"))?.as_str()?;
        let names = ["type", "code", "status"].into_iter().filter_map(|name| error.get(name)?.as_str());
        Some(Self { names: names.map(str::to_owned).collect(), message: message.into() })
    }

    fn is(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// The kind that its names tell, whatever the status.
    fn kind(&self) -> Option<FailureKind> {
        const QUOTA: &[&str] = &[
            "insufficient_quota",
            "billing_error",
            "billing_hard_limit_reached",
            "billing_not_active",
            "insufficient_balance",
            "insufficient_credits",
        ];
        const FILTER: &[&str] = &["content_filter", "content_policy_violation"];
        if self.is(QUOTA) || self.message.contains("credit balance is too low") {
            return Some(FailureKind::Quota);
        }
        if self.is(FILTER) {
            return Some(FailureKind::ContentFilter);
        }
        if self.is(&["authentication_error", "invalid_api_key"]) {
            return Some(FailureKind::Authentication);
        }
        if self.is(&["rate_limit_error", "rate_limit_exceeded"]) {
            return Some(FailureKind::RateLimit);
        }
        let broken = ["overloaded_error", "api_error", "server_error", "timeout_error", "internal_error"];
        if self.is(&broken) {
            return Some(FailureKind::Server);
        }
        self.is(&["permission_error"]).then_some(FailureKind::Permission)
    }
}

/// The failure that a response with an error status is. Here and below, its message is all that was said: it may hold
/// the key, and be long; `Config::shown` mends both.
pub(super) fn failure(api: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(body);
    let complaint = json::parse(&said).ok().as_ref().and_then(Complaint::of);
    let kind = complaint.as_ref().and_then(Complaint::kind).unwrap_or_else(|| of_status(status));
    let message = complaint.as_ref().map_or(said.trim(), |complaint| complaint.message.as_str());
    let separator = if message.is_empty() { "" } else { ": " };
    let message = format!("{api} answered {}{separator}{message}", status.as_u16());
    Failure::Failed(Reason { kind, message, wait: wait(headers) })
}

/// The failure that an error in the midst of an answer is.
pub(super) fn failure_within(api: &str, complaint: &Complaint) -> Failure {
    let kind = complaint.kind().unwrap_or(FailureKind::Server);
    Failure::new(kind, format!("{api} broke the answer off: {}", complaint.message))
}

fn of_status(status: StatusCode) -> FailureKind {
    match status.as_u16() {
        300..=399 => FailureKind::Protocol,
        401 => FailureKind::Authentication,
        402 => FailureKind::Quota,
        403 => FailureKind::Permission,
        408 | 425 => FailureKind::Server,
        429 => FailureKind::RateLimit,
        501 | 505 => FailureKind::InvalidRequest,
        500.. => FailureKind::Server,
        _ => FailureKind::InvalidRequest,
    }
}

/// How long the other side asks to wait: milliseconds, seconds or a date.
fn wait(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = httpdate::parse_http_date(after).ok()?;
    Some(date.duration_since(SystemTime::now()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fails(status: u16, body: &str) -> (FailureKind, String) {
        let status = StatusCode::from_u16(status).unwrap();
        match failure("api", status, &HeaderMap::new(), body.as_bytes()) {
            Failure::Failed(reason) => (reason.kind, reason.message),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn every_way_to_say_no_has_its_kind() {
        use FailureKind::*;
        for (status, body, kind) in [
            (
                401,
                r#"{"error":{"message":"no","type":"invalid_request_error","code":"invalid_api_key"}}"#,
                Authentication,
            ),
            (
                401,
                r#"{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}"#,
                Authentication,
            ),
            (
                429,
                r#"{"error":{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}}"#,
                Quota,
            ),
            (429, r#"{"error":{"message":"m","type":"requests","code":"rate_limit_exceeded"}}"#, RateLimit),
            (429, r#"{"type":"error","error":{"type":"rate_limit_error","message":"m"}}"#, RateLimit),
            (402, r#"{"error":{"code":402,"message":"Insufficient credits"}}"#, Quota),
            (
                400,
                r#"{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the API"}}"#,
                Quota,
            ),
            (400, r#"{"error":{"message":"m","code":"content_filter"}}"#, ContentFilter),
            (400, r#"[{"error":{"code":400,"message":"m","status":"INVALID_ARGUMENT"}}]"#, InvalidRequest),
            (
                400,
                r#"{"object":"error","message":"too long","type":"BadRequestError","code":400}"#,
                InvalidRequest,
            ),
            (403, r#"{"type":"error","error":{"type":"permission_error","message":"m"}}"#, Permission),
            (404, r#"{"error":"model not found"}"#, InvalidRequest),
            (413, "", InvalidRequest),
            (500, "<html>oops", Server),
            (503, "", Server),
            (529, r#"{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}"#, Server),
            (408, "", Server),
            (307, "", Protocol),
        ] {
            assert_eq!(fails(status, body).0, kind, "{status} {body}");
        }
    }

    #[test]
    fn reasons_repeat_what_was_said() {
        assert_eq!(fails(404, r#"{"error":"no model"}"#).1, "api answered 404: no model");
        assert_eq!(fails(500, " <html>oops\n").1, "api answered 500: <html>oops");
        assert_eq!(fails(500, "").1, "api answered 500");
    }

    #[test]
    fn how_long_to_wait_is_read_in_every_form() {
        let headers = |name: &'static str, value: &str| {
            HeaderMap::from_iter([(reqwest::header::HeaderName::from_static(name), value.parse().unwrap())])
        };
        let soon = httpdate::fmt_http_date(SystemTime::now() + Duration::from_secs(3600));
        for (name, value, least, most) in [
            ("retry-after", "7", 7000, 7000),
            ("retry-after", "0.5", 500, 500),
            ("retry-after-ms", "250", 250, 250),
            ("retry-after", &soon, 3_500_000, 3_600_000),
            ("retry-after", "Wed, 21 Oct 2015 07:28:00 GMT", 0, 0),
        ] {
            let ms = wait(&headers(name, value)).unwrap().as_millis();
            assert!((least..=most).contains(&ms), "{name}: {value} is {ms}");
        }
        for value in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(wait(&headers("retry-after", value)), None, "{value}");
        }
    }
}

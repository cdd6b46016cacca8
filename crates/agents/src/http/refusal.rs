//! What an error means: the one place that knows how APIs say no, in a response of its own or in the midst of an
//! answer.

use std::time::{Duration, SystemTime};

use reqwest::StatusCode;
use reqwest::header::{DATE, HeaderMap, RETRY_AFTER};
use serde_json::Value;

use crate::failure::{Failure, FailureKind, Reason};
use crate::json;

/// What an API says of an error, in the shapes that are about: `{"error": {"type", "code", "message"}}`, the same in an
/// array or in another error, `{"error": "message"}`, and the fields bare.
pub(super) struct Complaint {
    /// `type`, `code` and `status`, as far as they are texts: lower case, without `_` and the like, and without an
    /// `error` at the end.
    names: Vec<String>,
    /// `code` and `status`, as far as they are statuses of HTTP.
    status: Option<StatusCode>,
    /// The API's words; the JSON of the error where there are none.
    message: String,
}

impl Complaint {
    /// What is said in the body of an error response, if it is an object or a text.
    pub(super) fn of(body: &Value) -> Option<Self> {
        let mut error = body.get(0).unwrap_or(body);
        let mut levels = vec![error];
        let speaks = |value: &&Value| value.is_object() || (value.is_string() && tells(value));
        while let Some(inner) = error.get("error").filter(speaks) {
            error = inner;
            levels.push(error);
        }
        if !speaks(&error) {
            return None;
        }
        let field = |level: &&Value, name: &str| level.get(name)?.as_str().map(str::to_owned);
        let words = ["message", "detail", "msg"];
        let said = levels.iter().rev().find_map(|level| {
            let itself = level.as_str().map(str::to_owned);
            itself.or_else(|| words.iter().find_map(|name| field(level, name)))
        });
        let codes = levels.iter().flat_map(|level| ["type", "code", "status"].map(|name| level.get(name)));
        let codes: Vec<_> = codes.flatten().collect();
        Some(Self {
            names: codes.iter().filter_map(|code| code.as_str()).map(normal).collect(),
            status: codes.iter().find_map(|code| status(code)),
            message: said.filter(|said| !said.trim().is_empty()).unwrap_or_else(|| error.to_string()),
        })
    }

    /// The error that an event of a streamed answer is, or a whole answer; `None` if it is none. `event` is the
    /// event's name.
    pub(super) fn within(event: &str, body: &Value) -> Option<Self> {
        let body = body.get(0).unwrap_or(body);
        let named = |name: &str| body.get(name).is_some_and(|name| name == "error");
        // An answer has its choices, and no text for a message.
        let bare = ["message", "detail"].iter().any(|name| body.get(name).is_some_and(Value::is_string));
        if event == "error"
            || named("type")
            || named("object")
            || body.get("error").is_some_and(tells)
            || (bare && body.get("choices").is_none())
        {
            return Some(Self::of(body).unwrap_or_else(|| Self::words(&body.to_string())));
        }
        // OpenRouter and Groq put it there.
        let inner = ["/choices/0/error", "/x_groq/error"].iter().filter_map(|place| body.pointer(place));
        inner.filter(|error| tells(error)).find_map(Self::of)
    }

    /// An error that is words alone.
    pub(super) fn words(message: &str) -> Self {
        Self { names: Vec::new(), status: None, message: message.into() }
    }

    fn is(&self, names: &[&str]) -> bool {
        self.names.iter().any(|name| names.contains(&name.as_str()))
    }

    /// The kind that its names tell, whatever the status.
    fn kind(&self) -> Option<FailureKind> {
        const QUOTA: &[&str] = &[
            "insufficientquota",
            "exceededcurrentquota",
            "billing",
            "billinghardlimitreached",
            "billingnotactive",
            "insufficientbalance",
            "insufficientcredits",
        ];
        const FILTER: &[&str] = &["contentfilter", "contentpolicyviolation", "responsibleaipolicyviolation"];
        const RATE: &[&str] =
            &["ratelimit", "ratelimitexceeded", "ratelimitreached", "toomanyrequests", "resourceexhausted"];
        const BROKEN: &[&str] = &[
            "overloaded",
            "engineoverloaded",
            "serveroverloaded",
            "serverisoverloaded",
            "api",
            "server",
            "internal",
            "internalserver",
            "timeout",
            "unavailable",
            "serviceunavailable",
        ];
        if self.is(QUOTA) || self.message.contains("credit balance is too low") {
            return Some(FailureKind::Quota);
        }
        if self.is(FILTER) {
            return Some(FailureKind::ContentFilter);
        }
        if self.is(&["authentication", "invalidapikey", "invalidauthentication", "unauthenticated"]) {
            return Some(FailureKind::Authentication);
        }
        if self.is(RATE) {
            return Some(FailureKind::RateLimit);
        }
        if self.is(BROKEN) {
            return Some(FailureKind::Server);
        }
        self.is(&["permission", "permissiondenied"]).then_some(FailureKind::Permission)
    }
}

/// Whether an `error` field tells of one: some servers always send the field.
fn tells(error: &Value) -> bool {
    !matches!(error, Value::Null | Value::Bool(false)) && error != ""
}

/// A name as [`Complaint::names`] holds it: `InternalServerError` and `internal_server_error` are one.
fn normal(name: &str) -> String {
    let name: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
    let name = name.to_ascii_lowercase();
    name.strip_suffix("error").map_or(name.clone(), str::to_owned)
}

/// The error status that a code is, as a number or a text.
fn status(code: &Value) -> Option<StatusCode> {
    let number = code.as_u64().or_else(|| code.as_str()?.parse().ok())?;
    let status = StatusCode::from_u16(u16::try_from(number).ok()?).ok()?;
    (status.is_client_error() || status.is_server_error()).then_some(status)
}

/// The failure that a response with an error status is. Here and below, its message is all that was said: it may hold
/// the key, and be long; the agent policy cuts it and has the key hidden.
pub(super) fn failure(api: &str, status: StatusCode, headers: &HeaderMap, body: &[u8]) -> Failure {
    let said = String::from_utf8_lossy(body);
    let complaint = json::parse(&said).ok().as_ref().and_then(Complaint::of);
    let kind = complaint.as_ref().and_then(Complaint::kind).unwrap_or_else(|| of_status(status));
    let message = complaint.as_ref().map_or(said.trim(), |complaint| complaint.message.as_str());
    let separator = if message.is_empty() { "" } else { ": " };
    let message = format!("{api} answered {}{separator}{message}", status.as_u16());
    Failure::Failed(Reason::new(kind, message).wait(wait(headers, SystemTime::now())))
}

/// The failure that an error in the midst of an answer is.
pub(super) fn failure_within(api: &str, complaint: &Complaint) -> Failure {
    const REFUSED: &[&str] =
        &["invalidrequest", "badrequest", "invalidargument", "notfound", "requesttoolarge"];
    let kind = complaint.kind().or_else(|| complaint.status.map(of_status));
    let refused = || complaint.is(REFUSED).then_some(FailureKind::InvalidRequest);
    let kind = kind.or_else(refused).unwrap_or(FailureKind::Server);
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

/// How long the other side asks to wait: milliseconds, seconds or a date. A date is one of its clock, which its `Date`
/// header tells; without that, ours, which says `now`, has to do.
fn wait(headers: &HeaderMap, now: SystemTime) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    if let Some(ms) = text("retry-after-ms").and_then(|ms| ms.parse().ok()) {
        return Some(Duration::from_millis(ms));
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Ok(seconds) = after.parse::<f64>() {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let date = |text: &str| httpdate::parse_http_date(text).ok();
    let now = text(DATE.as_str()).and_then(date).unwrap_or(now);
    Some(date(after)?.duration_since(now).unwrap_or_default())
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
            (503, r#"{"error":{"code":503}}"#, Server),
            (429, r#"{"error":{"message":"m","type":"exceeded_current_quota_error"}}"#, Quota),
            (429, r#"{"error":{"message":"m","type":"engine_overloaded_error"}}"#, Server),
            (401, r#"{"detail":"Unauthorized"}"#, Authentication),
            (422, r#"{"detail":[{"loc":["body"],"msg":"no"}]}"#, InvalidRequest),
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
        const NOW: &str = "Wed, 21 Oct 2015 07:28:00 GMT";
        let now = httpdate::parse_http_date(NOW).unwrap();
        let asks = |headers: &[(&'static str, &str)]| {
            let headers = headers.iter().map(|(name, value)| {
                (reqwest::header::HeaderName::from_static(name), value.parse().unwrap())
            });
            wait(&headers.collect(), now).map(|wait| wait.as_millis())
        };
        for (name, value, ms) in [
            ("retry-after", "7", 7000),
            ("retry-after", "0.5", 500),
            ("retry-after-ms", "250", 250),
            ("retry-after", "Wed, 21 Oct 2015 07:28:03 GMT", 3000),
            ("retry-after", "Wednesday, 21-Oct-15 07:28:03 GMT", 3000),
            ("retry-after", NOW, 0),
            ("retry-after", "Wed, 21 Oct 2015 07:27:59 GMT", 0),
        ] {
            assert_eq!(asks(&[(name, value)]), Some(ms), "{name}: {value}");
        }
        for value in ["-1", "soon", "NaN", "1e300"] {
            assert_eq!(asks(&[("retry-after", value)]), None, "{value}");
        }
    }

    #[test]
    fn a_date_to_wait_for_is_one_of_the_clock_that_the_response_tells() {
        let now = httpdate::parse_http_date("Wed, 21 Oct 2015 07:28:00 GMT").unwrap();
        for (date, ms) in [
            // An hour ahead of us, an hour behind, and none that can be read.
            ("Wed, 21 Oct 2015 08:28:00 GMT", 3000),
            ("Wed, 21 Oct 2015 06:28:00 GMT", 7_203_000),
            ("Wed, 21 Oct 2015 09:28:00 GMT", 0),
            ("yesterday", 3_603_000),
        ] {
            let headers = HeaderMap::from_iter([
                (DATE, date.parse().unwrap()),
                (RETRY_AFTER, "Wed, 21 Oct 2015 08:28:03 GMT".parse().unwrap()),
            ]);
            assert_eq!(wait(&headers, now).map(|wait| wait.as_millis()), Some(ms), "{date}");
        }
    }

    #[test]
    fn an_error_in_an_answer_is_seen_in_every_form_and_has_its_kind() {
        use FailureKind::*;
        for (event, json, kind, words) in [
            ("", r#"{"error":{"code":503}}"#, Server, r#"{"code":503}"#),
            ("", r#"{"error":{"code":"429"},"choices":[]}"#, RateLimit, r#"{"code":"429"}"#),
            (
                "",
                r#"{"error":{"code":502,"message":""},"choices":[{"finish_reason":"error"}]}"#,
                Server,
                r#"{"code":502,"message":""}"#,
            ),
            ("", r#"{"error":{}}"#, Server, "{}"),
            ("", r#"{"error":"busy"}"#, Server, "busy"),
            ("", r#"{"error":true,"message":"busy"}"#, Server, "busy"),
            ("", r#"{"error":"busy","code":429}"#, RateLimit, "busy"),
            ("", r#"{"error":{"message":{"a":1}}}"#, Server, r#"{"message":{"a":1}}"#),
            ("", r#"{"error":{"error":{"type":"rate_limit_error","message":"slow"}}}"#, RateLimit, "slow"),
            ("", r#"[{"error":{"code":503,"message":"busy","status":"UNAVAILABLE"}}]"#, Server, "busy"),
            ("", r#"{"error":{"code":429,"message":"m","status":"RESOURCE_EXHAUSTED"}}"#, RateLimit, "m"),
            ("", r#"{"error":{"code":401,"message":"m"}}"#, Authentication, "m"),
            ("", r#"{"error":{"code":402,"message":"m"}}"#, Quota, "m"),
            ("", r#"{"error":{"type":"invalid_request_error","message":"m"}}"#, InvalidRequest, "m"),
            (
                "",
                r#"{"error":{"type":"invalid_request_error","code":"server_error","message":"m"}}"#,
                Server,
                "m",
            ),
            ("", r#"{"error":{"code":1302,"message":"m"}}"#, Server, "m"),
            ("", r#"{"object":"error","message":"m","type":"InternalServerError","code":500}"#, Server, "m"),
            (
                "",
                r#"{"object":"error","message":"m","type":"BadRequestError","code":400}"#,
                InvalidRequest,
                "m",
            ),
            ("", r#"{"message":"m","type":"RateLimitError"}"#, RateLimit, "m"),
            ("", r#"{"detail":"m"}"#, Server, "m"),
            (
                "",
                r#"{"type":"error","error":{"type":"overloaded_error"}}"#,
                Server,
                r#"{"type":"overloaded_error"}"#,
            ),
            ("", r#"{"type":"error"}"#, Server, r#"{"type":"error"}"#),
            ("error", r#"{"message":"boom"}"#, Server, "boom"),
            ("error", r#"{"choices":[]}"#, Server, r#"{"choices":[]}"#),
            ("error", r#""boom""#, Server, "boom"),
            ("error", "7", Server, "7"),
            ("", r#"{"choices":[{"error":{"code":502,"message":"m"},"finish_reason":"stop"}]}"#, Server, "m"),
            ("", r#"{"choices":[{}],"x_groq":{"error":"over capacity"}}"#, Server, "over capacity"),
        ] {
            let body = json::parse(json).unwrap();
            let complaint = Complaint::within(event, &body).unwrap_or_else(|| panic!("{json} is none"));
            let expected = Failure::new(kind, format!("api broke the answer off: {words}"));
            assert_eq!(failure_within("api", &complaint), expected, "{json}");
        }
    }

    #[test]
    fn what_is_no_error_is_not_taken_for_one() {
        for json in [
            r#"{"choices":[{"delta":{"content":"an error"}}],"error":null}"#,
            r#"{"choices":[],"error":false}"#,
            r#"{"choices":[],"error":"","message":"hello"}"#,
            r#"{"choices":[{"error":null}],"x_groq":{"id":"r"}}"#,
            r#"{"type":"message_start","message":{"id":"m"}}"#,
            r#"{"type":"content_block_delta","delta":{"text":"error"}}"#,
            "{}",
            "[]",
            "1",
        ] {
            assert!(Complaint::within("", &json::parse(json).unwrap()).is_none(), "{json}");
        }
    }
}

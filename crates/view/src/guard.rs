//! Who may ask.
//!
//! The page itself is public: it holds nothing. What it asks for needs the token, in a header that no other site
//! can make a browser send; there is no cookie, so there is nothing for another site to ride on. A name that is
//! not ours is refused, since any name can be made to point to this machine.

use std::net::IpAddr;
use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{self, HeaderMap, HeaderName, HeaderValue};
use axum::http::{StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

#[derive(Debug)]
pub(crate) struct Guard {
    token: Option<Secret>,
    hosts: Vec<String>,
}

/// What is not printed.
struct Secret(String);

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret")
    }
}

impl Guard {
    pub(crate) fn new(token: Option<String>, hosts: Vec<String>) -> Self {
        Self { token: token.map(Secret), hosts }
    }

    pub(crate) fn token(&self) -> Option<&str> {
        self.token.as_ref().map(|secret| secret.0.as_str())
    }

    /// Whether the name that was asked for is one of ours. An address is: only names can be made to point here.
    fn knows_host(&self, authority: &str) -> bool {
        let name = match authority.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            Some((address, _)) => address,
            None => authority.rsplit_once(':').map_or(authority, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || self.hosts.iter().any(|host| host.eq_ignore_ascii_case(name))
    }

    fn knows_bearer(&self, headers: &HeaderMap) -> bool {
        let Some(Secret(token)) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(7));
        given.is_some_and(|(scheme, given)| {
            // How long a comparison takes must not tell how much of the token was right.
            let same = bool::from(given.ct_eq(token.as_bytes()));
            // An empty token is known to everybody, so it opens to nobody.
            scheme.eq_ignore_ascii_case(b"Bearer ") && same && !token.is_empty()
        })
    }
}

/// For everything: refuses foreign names, and tells browsers to be strict.
pub(crate) async fn host(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    let host = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = host.or_else(|| request.uri().authority().map(|authority| authority.as_str()));
    let mut response = match authority {
        Some(authority) if guard.knows_host(authority) => next.run(request).await,
        _ => (StatusCode::MISDIRECTED_REQUEST, "This is not the name of this page.\n").into_response(),
    };
    for (name, value) in [
        (header::CACHE_CONTROL, "no-store"),
        (header::REFERRER_POLICY, "no-referrer"),
        (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
        (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    ] {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// For what tells of runs: asks for the token.
pub(crate) async fn token(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.knows_bearer(request.headers()) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    (StatusCode::UNAUTHORIZED, challenge, "The address of this page ends with a token.\n").into_response()
}

/// Whether a request that changes something comes from the page itself: it says so in a header that other sites
/// cannot send, and what the browser says of its origin does not contradict it.
pub(crate) fn is_from_page(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let same_origin = match (text(header::ORIGIN), text(header::HOST)) {
        (Some(origin), Some(host)) => {
            origin.parse::<Uri>().is_ok_and(|origin| origin.authority().is_some_and(|it| it.as_str() == host))
        }
        (None, _) => true,
        (Some(_), None) => false,
    };
    let site = text(HeaderName::from_static("sec-fetch-site"));
    same_origin
        && site.is_none_or(|site| site == "same-origin")
        && headers.contains_key(HeaderName::from_static("x-fanfold-view"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_and_addresses_are_known() {
        let guard = Guard::new(None, vec!["runs.example.com".into()]);
        for known in
            ["localhost", "LOCALHOST:80", "127.0.0.1:8080", "[::1]:8080", "10.1.2.3", "runs.example.com:443"]
        {
            assert!(guard.knows_host(known), "{known}");
        }
        for foreign in [
            "",
            "evil.example",
            "localhost.evil.example:80",
            "127.0.0.1.evil.example",
            "[evil]:80",
            "a@localhost",
        ] {
            assert!(!guard.knows_host(foreign), "{foreign}");
        }
    }

    #[test]
    fn a_token_is_right_or_wrong_as_a_whole() {
        let guard = Guard::new(Some("secret".into()), Vec::new());
        let empty = Guard::new(Some(String::new()), Vec::new());
        let knows = |given: &str| {
            let mut headers = HeaderMap::new();
            headers.insert(header::AUTHORIZATION, given.parse().unwrap());
            assert!(!empty.knows_bearer(&headers), "an empty token: {given}");
            guard.knows_bearer(&headers)
        };
        assert!(knows("Bearer secret") && knows("bearer secret") && knows("BEARER secret"));
        for wrong in
            ["", "secret", "Bearer ", "Bearer secre", "Bearer secrets", "Bearer Secret", "Basic secret"]
        {
            assert!(!knows(wrong), "{wrong}");
        }
        assert!(!guard.knows_bearer(&HeaderMap::new()) && !empty.knows_bearer(&HeaderMap::new()));
        assert_eq!(format!("{guard:?}").find("secret"), None);
    }

    #[test]
    fn another_site_cannot_pass_for_the_page() {
        let from_page = |given: &[(&'static str, &'static str)]| {
            is_from_page(
                &given
                    .iter()
                    .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
                    .collect(),
            )
        };
        let own = [("x-fanfold-view", "1"), ("host", "localhost:1"), ("origin", "http://localhost:1")];
        assert!(from_page(&own));
        assert!(from_page(&own[..2]));
        assert!(!from_page(&own[1..]));
        assert!(!from_page(&[own[0], own[1], ("origin", "http://localhost:2")]));
        assert!(!from_page(&[own[0], own[1], ("origin", "null")]));
        assert!(!from_page(&[own[0], own[1], ("sec-fetch-site", "cross-site")]));
    }
}

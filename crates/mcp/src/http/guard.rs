//! Who may talk to the server: whoever has the token.
//!
//! Which names the server may be called by (`Host`) and which pages may call it (`Origin`) is checked by `rmcp`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use subtle::ConstantTimeEq as _;

use super::refusal::refuse;

pub(super) struct Guard {
    token: Option<String>,
}

impl Guard {
    pub(super) fn new(token: Option<String>) -> Self {
        Self { token }
    }

    fn admits(&self, headers: &HeaderMap) -> bool {
        let Some(token) = &self.token else { return true };
        let given = headers.get(header::AUTHORIZATION).and_then(|value| value.as_bytes().split_at_checked(7));
        given.is_some_and(|(scheme, given)| {
            // How long a comparison takes must not tell how much of the token was right.
            let same = bool::from(given.ct_eq(token.as_bytes()));
            // An empty token is known to everybody, so it opens to nobody.
            scheme.eq_ignore_ascii_case(b"Bearer ") && same && !token.is_empty()
        })
    }
}

pub(super) async fn check(State(guard): State<Arc<Guard>>, request: Request, next: Next) -> Response {
    if guard.admits(request.headers()) {
        return next.run(request).await;
    }
    let challenge = [(header::WWW_AUTHENTICATE, "Bearer")];
    let advice =
        "send the token that `fanfold mcp` printed when it started, as `Authorization: Bearer <token>`";
    (challenge, refuse(StatusCode::UNAUTHORIZED, advice)).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_opens() {
        let guard = Guard::new(Some("secret".into()));
        for (given, admitted) in [
            (Some("Bearer secret"), true),
            (Some("bearer secret"), true),
            (Some("Bearer secre"), false),
            (Some("Bearer secrets"), false),
            (Some("Bearer "), false),
            (Some("Basic secret"), false),
            (Some("secret"), false),
            (Some(""), false),
            (None, false),
        ] {
            let mut headers = HeaderMap::new();
            if let Some(given) = given {
                headers.insert(header::AUTHORIZATION, given.parse().unwrap());
            }
            assert_eq!(guard.admits(&headers), admitted, "{given:?}");
            assert!(Guard::new(None).admits(&headers));
            assert!(!Guard::new(Some(String::new())).admits(&headers), "an empty token: {given:?}");
        }
    }
}

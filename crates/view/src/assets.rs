//! The page itself, in this library.

use axum::http::StatusCode;
use axum::http::header::{CONTENT_SECURITY_POLICY, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};

const PAGE: &str = include_str!("../page/index.html");

/// Declares the page's files.
macro_rules! files {
    ($($name:literal: $kind:literal = $path:literal,)*) => {
        fn file(name: &str) -> Option<(&'static str, &'static [u8])> {
            match name { $($name => Some(($kind, include_bytes!($path).as_slice())),)* _ => None }
        }
    };
}

files! {
    "view.css": "text/css; charset=utf-8" = "../page/view.css",
    "icon.svg": "image/svg+xml" = "../page/icon.svg",
    "main.js": "text/javascript; charset=utf-8" = "../page/main.js",
    "server.js": "text/javascript; charset=utf-8" = "../page/server.js",
    "follow.js": "text/javascript; charset=utf-8" = "../page/follow.js",
    "run.js": "text/javascript; charset=utf-8" = "../page/run.js",
    "agents.js": "text/javascript; charset=utf-8" = "../page/agents.js",
    "rows.js": "text/javascript; charset=utf-8" = "../page/rows.js",
    "chart.js": "text/javascript; charset=utf-8" = "../page/chart.js",
    "logs.js": "text/javascript; charset=utf-8" = "../page/logs.js",
    "script.js": "text/javascript; charset=utf-8" = "../page/script.js",
    "value.js": "text/javascript; charset=utf-8" = "../page/value.js",
    "history.js": "text/javascript; charset=utf-8" = "../page/history.js",
    "dom.js": "text/javascript; charset=utf-8" = "../page/dom.js",
    "fanfold_types.js": "text/javascript; charset=utf-8" = "../../../web/fanfold_types.js",
    "fanfold_types_bg.wasm": "application/wasm" = "../../../web/fanfold_types_bg.wasm",
}

/// The page. What it may load carries a number that is new each time, and nothing else may be loaded: neither
/// from elsewhere nor from the service that the page is mounted in. `folder` is the last part of the page's address.
pub(crate) fn page(folder: &str) -> Response {
    let nonce = uuid::Uuid::new_v4().simple().to_string();
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}' 'wasm-unsafe-eval'; style-src 'nonce-{nonce}'; \
         connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
         require-trusted-types-for 'script'; trusted-types 'none'"
    );
    let headers = [(CONTENT_SECURITY_POLICY, policy), (CONTENT_TYPE, "text/html; charset=utf-8".to_owned())];
    let place = match folder {
        "" => ".".to_owned(),
        // Behind a dot, or it could be read as something else than a folder.
        folder => format!("./{}", escape(folder)),
    };
    (headers, PAGE.replace("{{nonce}}", &nonce).replace("{{place}}", &place)).into_response()
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('"', "&quot;").replace('<', "&lt;").replace('>', "&gt;")
}

/// A file of the page.
pub(crate) fn asset(name: &str) -> Response {
    match file(name) {
        Some((kind, bytes)) => ([(CONTENT_TYPE, kind)], bytes).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

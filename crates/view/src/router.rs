//! What the page asks for.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use axum::extract::{OriginalUri, Path, Query, State};
use axum::http::StatusCode;
use axum::http::header::{CONTENT_TYPE, HeaderMap, RETRY_AFTER};
use axum::response::{IntoResponse as _, Json, Response};
use axum::routing::{get, post};
use axum::{Router, middleware};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::assets;
use crate::cursor::Cursor;
use crate::guard::{self, is_from_page};
use crate::live::LiveLines;
use crate::runs::{Found, Runs};
use crate::stream::{self, Source};
use crate::summary::Summary;
use crate::tail::FileLines;
use crate::view::View;

pub(crate) fn router(view: View) -> Router {
    let View { runs, guard } = view;
    let told = Router::new()
        .route("/runs", get(list))
        .route("/runs/{key}", get(about))
        .route("/runs/{key}/events", get(events))
        .route("/runs/{key}/value", get(value))
        .route("/runs/{key}/cancel", post(cancel))
        .layer(middleware::from_fn_with_state(guard.clone(), guard::token))
        .with_state(runs);
    Router::new()
        .route("/", get(page))
        .route("/assets/{name}", get(async |Path(name): Path<String>| assets::asset(&name)))
        .nest("/api", told)
        .layer(middleware::from_fn_with_state(guard, guard::host))
}

/// The page asks for what lies below the address it was mounted at, whether that ends with a slash or not.
async fn page(OriginalUri(uri): OriginalUri) -> Response {
    assets::page(uri.path().rsplit('/').next().unwrap_or_default())
}

#[derive(Serialize)]
struct List {
    /// The clock of the events, in milliseconds since 1970.
    now: u64,
    runs: Vec<Summary>,
}

async fn list(State(runs): State<Arc<Runs>>) -> Response {
    let runs = tokio::task::spawn_blocking(move || runs.list()).await;
    match runs {
        Ok(runs) => Json(List { now: now(), runs }).into_response(),
        Err(_) => StatusCode::INTERNAL_SERVER_ERROR.into_response(),
    }
}

/// What a page shows of a run besides what it tells itself.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Details {
    now: u64,
    summary: Summary,
    #[serde(skip_serializing_if = "Option::is_none")]
    script: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_concurrent_agents: Option<usize>,
    can_cancel: bool,
}

async fn about(State(runs): State<Arc<Runs>>, Path(key): Path<u64>) -> Response {
    let may_cancel = runs.may_cancel;
    let details = match runs.find(key) {
        None => return StatusCode::NOT_FOUND.into_response(),
        Some(Found::Live(run)) => Details {
            now: now(),
            summary: run.summary(),
            script: run.about.script.clone(),
            max_concurrent_agents: run.about.max_concurrent_agents,
            can_cancel: may_cancel && run.about.cancel.is_some(),
        },
        Some(Found::File(run)) => {
            let script = tokio::task::spawn_blocking({
                let run = run.clone();
                move || run.script()
            });
            Details {
                now: now(),
                summary: run.summary,
                script: script.await.ok().flatten(),
                max_concurrent_agents: None,
                can_cancel: false,
            }
        }
    };
    Json(details).into_response()
}

/// How long a stream of lines lasts.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Lasting {
    /// Milliseconds after which it ends, as soon as the reader has caught up. Without, it lasts until the run is over.
    for_ms: Option<u64>,
}

async fn events(
    State(runs): State<Arc<Runs>>,
    Path(key): Path<u64>,
    Query(Lasting { for_ms }): Query<Lasting>,
    headers: HeaderMap,
) -> Response {
    let Ok(permit) = runs.streams.clone().try_acquire_owned() else {
        let later = [(RETRY_AFTER, "5")];
        return (StatusCode::SERVICE_UNAVAILABLE, later, "Too many pages look at runs.\n").into_response();
    };
    let seen =
        headers.get("last-event-id").map_or(Cursor::START, |id| Cursor::of_id(id.to_str().unwrap_or("")));
    let source = match runs.find(key) {
        None => return StatusCode::NOT_FOUND.into_response(),
        Some(Found::Live(run)) => Source::Live(LiveLines::new(run, seen)),
        Some(Found::File(run)) => Source::File(Box::new(FileLines::new(*run, seen))),
    };
    let response = stream::follow(source, for_ms.map(Duration::from_millis), permit).await;
    response.unwrap_or_else(|| (StatusCode::GONE, "This run is no longer in its file.\n").into_response())
}

async fn value(State(runs): State<Arc<Runs>>, Path(key): Path<u64>) -> Response {
    let value: Option<Arc<RawValue>> = match runs.find(key) {
        None => None,
        Some(Found::Live(run)) => run.value(),
        Some(Found::File(run)) => match tokio::task::spawn_blocking(move || run.value()).await {
            Ok(Ok(value)) => value,
            _ => return StatusCode::GONE.into_response(),
        },
    };
    match value {
        Some(value) => ([(CONTENT_TYPE, "application/json")], value.get().to_owned()).into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

async fn cancel(State(runs): State<Arc<Runs>>, Path(key): Path<u64>, headers: HeaderMap) -> Response {
    if !is_from_page(&headers) {
        return (StatusCode::FORBIDDEN, "Only the page itself may cancel.\n").into_response();
    }
    match runs.find(key) {
        Some(Found::Live(run)) if runs.may_cancel => match &run.about.cancel {
            Some(token) => {
                token.cancel();
                StatusCode::ACCEPTED.into_response()
            }
            None => StatusCode::FORBIDDEN.into_response(),
        },
        Some(_) => (StatusCode::FORBIDDEN, "Runs cannot be cancelled from here.\n").into_response(),
        None => StatusCode::NOT_FOUND.into_response(),
    }
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

//! The lines of a run as server-sent events.
//!
//! An event's id is the number of its line in the run, so a page that was cut off says which it saw last and
//! gets what follows: nothing is missed, nothing repeated. After the last line comes an event `over`.

use std::convert::Infallible;
use std::sync::Arc;

use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, StreamExt as _};

use crate::live::Live;

/// How many lines are taken from a run at once.
const BATCH: usize = 256;

/// The number of the last line that was seen, by what the request says.
pub(crate) fn seen(headers: &HeaderMap) -> usize {
    let id = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    id.and_then(|id| id.parse().ok()).unwrap_or(0)
}

/// The lines after those that were seen, and those that are still to come.
pub(crate) fn live(run: Arc<Live>, seen: usize) -> Response {
    let changes = run.changes();
    let batches = stream::unfold(Some((run, changes, seen)), async |state| {
        let (run, mut changes, seen) = state?;
        loop {
            // Marked first: what changes after the look wakes us again.
            changes.borrow_and_update();
            let (lines, over) = run.lines(seen, BATCH);
            if over {
                return Some((events(lines, seen, true), None));
            }
            if !lines.is_empty() {
                let next = seen + lines.len();
                return Some((events(lines, seen, false), Some((run, changes, next))));
            }
            changes.changed().await.ok()?;
        }
    });
    respond(batches.flat_map(stream::iter))
}

/// The lines after those that were seen, of a run that is over.
pub(crate) fn stored(lines: Vec<Arc<str>>, seen: usize) -> Response {
    let rest = lines.into_iter().skip(seen).collect();
    respond(stream::iter(events(rest, seen, true)))
}

fn events(lines: Vec<Arc<str>>, seen: usize, over: bool) -> impl Iterator<Item = Event> + Send {
    let line = move |(i, line): (usize, Arc<str>)| Event::default().id((seen + i + 1).to_string()).data(line);
    let end = over.then(|| Event::default().event("over").data(""));
    lines.into_iter().enumerate().map(line).chain(end)
}

fn respond(events: impl stream::Stream<Item = Event> + Send + 'static) -> Response {
    Sse::new(events.map(Ok::<_, Infallible>)).keep_alive(KeepAlive::default()).into_response()
}

//! The lines of a run as server-sent events.
//!
//! An event's id is a [`Cursor`]: a page that was cut off says the last one it saw and gets what follows. Nothing is
//! missed and nothing repeated; where the lines are no longer those that it has seen, it is told to `restart` and
//! gets all of them. `caught-up` says that these are all lines so far, `over` that there will be no more.
//!
//! A stream holds a batch of lines at most, and takes the next one when the reader has taken this one.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use axum::response::sse::{Event, KeepAlive, Sse};
use axum::response::{IntoResponse as _, Response};
use futures::stream::{self, StreamExt as _};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, sleep_until};

use crate::cursor::Cursor;
use crate::live::LiveLines;
use crate::tail::FileLines;

/// How many lines are taken from a run at once.
pub(crate) const BATCH: usize = 256;

/// How long a stream says nothing at most: a reader that hears nothing for longer has lost the server.
const KEEP_ALIVE: Duration = Duration::from_secs(2);

/// Where lines come from.
#[derive(Debug)]
pub(crate) enum Source {
    Live(LiveLines),
    File(Box<FileLines>),
}

/// What a source says next.
#[derive(Debug)]
pub(crate) enum Next {
    /// Lines, each with the place behind it; [`BATCH`] at most.
    Lines(Vec<(Cursor, Arc<str>)>),
    /// What the reader has seen is not what is there: all lines follow.
    Restart,
    /// There are no more lines yet.
    CaughtUp(Cursor),
    /// There will be no more lines.
    Over,
    /// The run is no longer there.
    Gone,
}

impl Source {
    async fn next(&mut self) -> Next {
        match self {
            Self::Live(lines) => lines.next(),
            Self::File(lines) => lines.next().await,
        }
    }

    fn is_live(&self) -> bool {
        matches!(self, Self::Live(_))
    }

    /// Returns when it is worth while to ask for the next again.
    async fn changed(&mut self) {
        match self {
            Self::Live(lines) => lines.changed().await,
            Self::File(lines) => lines.changed().await,
        }
    }
}

/// Answers with the lines of a run, to its end or for a time: after that the stream ends as soon as the reader has
/// caught up. `None` if the run is not there.
pub(crate) async fn follow(
    mut source: Source,
    time: Option<Duration>,
    permit: OwnedSemaphorePermit,
) -> Option<Response> {
    let next = match source.next().await {
        Next::Gone => return None,
        next => Some(next),
    };
    let until = time.and_then(|time| Instant::now().checked_add(time));
    let reader = Reader { source, next, until, caught_up: false, _permit: permit };
    let batches = stream::unfold(Some(reader), async |reader| reader?.batch().await);
    let events = batches.flat_map(stream::iter).map(Ok::<_, Infallible>);
    Some(Sse::new(events).keep_alive(KeepAlive::new().interval(KEEP_ALIVE)).into_response())
}

struct Reader {
    source: Source,
    /// What the source has said already.
    next: Option<Next>,
    until: Option<Instant>,
    /// Whether the reader was told that it has caught up.
    caught_up: bool,
    _permit: OwnedSemaphorePermit,
}

impl Reader {
    /// The next events, and the reader unless the stream ends with them.
    async fn batch(mut self) -> Option<(Events, Option<Self>)> {
        loop {
            let next = match self.next.take() {
                Some(next) => next,
                None => self.source.next().await,
            };
            let at_once = |event: Event| Events { lines: Vec::new().into_iter(), last: Some(event) };
            match next {
                Next::Lines(lines) => {
                    self.caught_up = false;
                    // A busy run has always something to say, but this is all so far.
                    let all = lines.last().filter(|_| self.source.is_live() && lines.len() < BATCH);
                    let last = all.filter(|_| self.is_late()).map(|(behind, _)| caught_up(*behind));
                    let reader = last.is_none().then_some(self);
                    return Some((Events { lines: lines.into_iter(), last }, reader));
                }
                Next::Restart => {
                    let event = Event::default().event("restart").id(Cursor::START.to_string()).data("");
                    return Some((at_once(event), Some(self)));
                }
                Next::CaughtUp(at) if !self.caught_up => {
                    self.caught_up = true;
                    return Some((at_once(caught_up(at)), Some(self)));
                }
                Next::CaughtUp(_) => match self.until {
                    None => self.source.changed().await,
                    Some(until) => tokio::select! {
                        () = self.source.changed() => {}
                        () = sleep_until(until) => return None,
                    },
                },
                Next::Over => return Some((at_once(Event::default().event("over").data("")), None)),
                Next::Gone => return None,
            }
        }
    }

    fn is_late(&self) -> bool {
        self.until.is_some_and(|until| Instant::now() >= until)
    }
}

fn caught_up(at: Cursor) -> Event {
    Event::default().event("caught-up").id(at.to_string()).data("")
}

/// Some lines, then perhaps something else. An event is made when it is sent.
struct Events {
    lines: std::vec::IntoIter<(Cursor, Arc<str>)>,
    last: Option<Event>,
}

impl Iterator for Events {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        match self.lines.next() {
            Some((at, line)) => Some(Event::default().id(at.to_string()).data(line)),
            None => self.last.take(),
        }
    }
}

//! The lines of a run that happens in this process.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use fanfold::{Event, Meta, Observer, Run, RunResult, WorkflowError, text};
use fanfold_types::{Line, ResultLine, RunView};
use serde_json::value::RawValue;
use tokio::sync::watch;

use crate::cursor::Cursor;
use crate::stream::{BATCH, Next};
use crate::summary::Summary;
use crate::view::About;

/// An observer that shows a run; see [`View::watch`](crate::View::watch). It is for one run only. Clones are the
/// same; when all of them are dropped, nothing more is told of the run.
#[derive(Clone, Debug)]
pub struct Watch(Arc<Telling>);

impl Watch {
    pub(crate) fn new(live: Arc<Live>) -> Self {
        Self(Arc::new(Telling(live)))
    }

    /// Shows what became of the run: its value, and why agents failed. Until then the page waits for it.
    pub fn finish(&self, run: &Run, result: &RunResult) {
        let name = &run.meta().name;
        self.0.0.result(ResultLine::new(run.id(), name, result, text::DEFAULT_MAX_RESULT_CHARS));
    }

    /// Shows why the run could not start.
    pub fn refuse(&self, error: &WorkflowError) {
        self.0.0.result(ResultLine::refused(error));
    }
}

impl Observer for Watch {
    fn event(&self, _meta: &Meta, event: &Event) {
        self.0.0.push(&Line::Event(event.clone()), serde_json::to_string(event));
    }
}

/// Those who tell of a run.
#[derive(Debug)]
struct Telling(Arc<Live>);

impl Drop for Telling {
    fn drop(&mut self) {
        self.0.close();
    }
}

/// The lines of a run, as they come.
#[derive(Debug)]
pub(crate) struct Live {
    pub(crate) key: u64,
    pub(crate) about: About,
    told: Mutex<Told>,
    /// How many lines there are, and whether there will be more.
    length: watch::Sender<(usize, bool)>,
}

#[derive(Debug, Default)]
struct Told {
    /// Each with the place behind it.
    lines: Vec<(Cursor, Arc<str>)>,
    view: RunView,
    value: Option<Arc<RawValue>>,
    over: bool,
}

impl Live {
    pub(crate) fn new(key: u64, about: About) -> Self {
        Self { key, about, told: Mutex::default(), length: watch::Sender::new((0, false)) }
    }

    pub(crate) fn summary(&self) -> Summary {
        Summary::new(self.key, self.told().view.run(), None)
    }

    pub(crate) fn value(&self) -> Option<Arc<RawValue>> {
        self.told().value.clone()
    }

    pub(crate) fn is_over(&self) -> bool {
        self.told().over
    }

    /// The lines after so many, at most `limit`, and whether there will be none after these.
    fn lines(&self, after: usize, limit: usize) -> (Vec<(Cursor, Arc<str>)>, bool) {
        let told = self.told();
        let rest = told.lines.get(after..).unwrap_or_default();
        let some = &rest[..rest.len().min(limit)];
        (some.to_vec(), told.over && some.len() == rest.len())
    }

    /// Whether a reader at this place has seen lines of this run.
    fn has(&self, seen: Cursor) -> bool {
        let told = self.told();
        let there = match seen.lines.checked_sub(1) {
            None => Some(Cursor::START),
            Some(last) => told.lines.get(last).map(|(behind, _)| *behind),
        };
        there.is_some_and(|there| seen.is_at(there))
    }

    fn told(&self) -> MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, line: &Line, text: serde_json::Result<String>) {
        let mut told = self.told();
        let (Ok(text), false) = (text, told.over) else { return };
        told.view.line(line);
        let at = told.lines.last().map_or(Cursor::START, |(at, _)| *at);
        told.lines.push((at.after(text.as_bytes()), text.into()));
        self.length.send_replace((told.lines.len(), false));
        let run = told.view.run();
        // Observers may be told of the end after the result is there. A run that could not start has no end.
        let complete = run.has_result && (run.ended.is_some() || run.id.is_none());
        drop(told);
        if complete {
            self.close();
        }
    }

    /// The value is fetched by those who want it; the line goes without.
    fn result(&self, mut result: ResultLine) {
        result.text.clear();
        let value = result.value.take();
        self.told().value = value.map(Arc::from);
        let text = serde_json::to_string(&result);
        self.push(&Line::Result(Box::new(result)), text);
    }

    fn close(&self) {
        let mut told = self.told();
        if !told.over {
            told.over = true;
            told.view.close();
            self.length.send_replace((told.lines.len(), true));
        }
    }
}

/// A reader of a run of this process.
#[derive(Debug)]
pub(crate) struct LiveLines {
    run: Arc<Live>,
    changes: watch::Receiver<(usize, bool)>,
    at: Cursor,
}

impl LiveLines {
    /// A reader that has seen the lines up to `seen`.
    pub(crate) fn new(run: Arc<Live>, seen: Cursor) -> Self {
        Self { changes: run.length.subscribe(), run, at: seen }
    }

    pub(crate) fn next(&mut self) -> Next {
        if !self.run.has(self.at) {
            self.at = Cursor::START;
            return Next::Restart;
        }
        // Marked first: what changes after the look wakes us again.
        self.changes.borrow_and_update();
        let (lines, over) = self.run.lines(self.at.lines, BATCH);
        match lines.last() {
            Some((behind, _)) => {
                self.at = *behind;
                Next::Lines(lines)
            }
            None if over => Next::Over,
            None => Next::CaughtUp(self.at),
        }
    }

    /// Returns when there are more lines, or never will be.
    pub(crate) async fn changed(&mut self) {
        // The run that this reader holds has the other end.
        let _ = self.changes.changed().await;
    }
}

#[cfg(test)]
mod tests {
    use fanfold::{EventKind, RunEnd, RunState, StopReason};

    use super::*;

    #[test]
    fn a_result_that_is_there_before_the_last_event_waits_for_it() {
        let live = Live::new(1, About::default());
        let event = |n, kind| Event { id: "r".into(), n, at: n, kind };
        let push = |event: &Event| live.push(&Line::Event(event.clone()), serde_json::to_string(event));
        push(&event(1, EventKind::Start { meta: Arc::new(Meta::new("demo", "d")) }));
        let result = RunResult::new(StopReason::Completed, None);
        live.result(ResultLine::new("r", "demo", &result, 100));
        assert!(!live.is_over());
        let end = RunEnd { stop_reason: StopReason::Completed, error: None, agents_started: 0 };
        push(&event(2, EventKind::End { result: end }));
        assert!(live.is_over());
        assert_eq!(live.lines(0, 10).0.len(), 3);
        assert_eq!(live.value().map(|value| value.get().to_owned()).as_deref(), Some("null"));
        assert_eq!(live.summary().state, RunState::Completed);
    }

    #[test]
    fn a_run_that_nobody_tells_of_any_more_was_interrupted() {
        let live = Arc::new(Live::new(1, About::default()));
        let watch = Watch::new(live.clone());
        let other = watch.clone();
        drop(watch);
        assert!(!live.is_over());
        drop(other);
        assert!(live.is_over());
        assert_eq!(live.summary().state, RunState::Interrupted);
    }
}

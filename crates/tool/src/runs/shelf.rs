//! What a registry keeps, and the rules by which it makes room. Knows no clock: it is told the time.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use fanfold::{CancellationToken, Run, RunResult};

use super::progress::Progress;
use super::retention::Retention;
use crate::answer::{ListedRun, RunList, RunState, RunStatus};
use crate::error::ToolError;
use crate::words;

/// How many runs are listed at once.
const MAX_LISTED: usize = 50;

/// The runs of a registry.
#[derive(Debug, Default)]
pub(super) struct Shelf {
    closed: bool,
    /// Places given to runs that have not started yet.
    starting: usize,
    runs: BTreeMap<String, Entry>,
}

/// A run and what is known of it.
#[derive(Debug)]
pub(super) struct Entry {
    /// The ids of the agents whose run it is; the first one started it.
    agents: Vec<String>,
    pub(super) run: Arc<Run>,
    pub(super) progress: Arc<Mutex<Progress>>,
    pub(super) started: Duration,
    /// Fires when there is an end.
    pub(super) ended: CancellationToken,
    end: Option<End>,
}

#[derive(Debug)]
struct End {
    result: Arc<RunResult>,
    bytes: u64,
    at: Duration,
    /// When the result was last asked for.
    touched: Duration,
    /// Whether it was read to its end.
    read: bool,
}

impl Shelf {
    /// Runs that run or are kept, and places given to those that will.
    pub(super) fn len(&self) -> usize {
        self.starting + self.runs.len()
    }

    /// Whether a run is here, running or kept.
    pub(super) fn contains(&self, run_id: &str) -> bool {
        self.runs.contains_key(run_id)
    }

    /// Makes room for a run and keeps it.
    ///
    /// # Errors
    /// When the shelf is closed, or full of what must be kept.
    pub(super) fn admit(&mut self, now: Duration, retention: &Retention) -> Result<(), ToolError> {
        if self.closed {
            return Err(ToolError::ShutDown);
        }
        self.expire(now, retention);
        while self.len() >= retention.max_runs || self.bytes() > retention.max_bytes {
            self.drop_one_read().ok_or_else(|| self.full(now, retention))?;
        }
        self.starting += 1;
        Ok(())
    }

    fn bytes(&self) -> u64 {
        self.runs.values().filter_map(|entry| entry.end.as_ref()).map(|end| end.bytes).sum()
    }

    /// Drops the result that was read the longest ago.
    fn drop_one_read(&mut self) -> Option<()> {
        let read = |entry: &Entry| entry.end.as_ref().filter(|end| end.read).map(|end| end.touched);
        let (_, id) = self.runs.iter().filter_map(|(id, entry)| Some((read(entry)?, id.clone()))).min()?;
        self.runs.remove(&id).map(drop)
    }

    fn full(&self, now: Duration, retention: &Retention) -> ToolError {
        let keep = retention.keep();
        let left = |entry: &Entry| Some(keep.saturating_sub(now.saturating_sub(entry.end.as_ref()?.touched)));
        let advice = match self.runs.values().filter_map(left).min() {
            Some(left) => format!(
                "read a result to its end, cancel a run, or wait: the first result expires in {}",
                words::duration(ms(left))
            ),
            None => "cancel a run, or wait until one has ended".to_owned(),
        };
        ToolError::Full { kept: self.len(), advice }
    }

    /// Drops the results whose time is over.
    pub(super) fn expire(&mut self, now: Duration, retention: &Retention) {
        let keep = retention.keep();
        self.runs
            .retain(|_, entry| entry.end.as_ref().is_none_or(|end| now.saturating_sub(end.touched) < keep));
    }

    /// Gives back the place of a run that did not start.
    pub(super) fn give_back(&mut self) {
        self.starting = self.starting.saturating_sub(1);
    }

    /// Puts a run into the place that it was given. Says whether it may go on.
    pub(super) fn put(&mut self, entry: Entry) -> bool {
        self.give_back();
        self.runs.insert(entry.run.id().to_owned(), entry);
        !self.closed
    }

    /// Takes a run out whose result is not to be kept.
    pub(super) fn take(&mut self, run_id: &str) {
        if let Some(entry) = self.runs.remove(run_id) {
            entry.ended.cancel();
        }
    }

    /// A run has ended.
    pub(super) fn end(&mut self, run_id: &str, result: Arc<RunResult>, now: Duration) {
        let Some(entry) = self.runs.get_mut(run_id) else { return };
        let told = result.failures.iter().map(|failure| failure.label.len() + failure.reason.len());
        let bytes = (result.value.get().len() + told.sum::<usize>()) as u64;
        entry.end = Some(End { result, bytes, at: now, touched: now, read: false });
        entry.ended.cancel();
    }

    /// A result was read to its end.
    pub(super) fn mark_read(&mut self, run_id: &str) {
        if let Some(end) = self.runs.get_mut(run_id).and_then(|entry| entry.end.as_mut()) {
            end.read = true;
        }
    }

    /// A run, by its id; `agent` is who asks.
    ///
    /// # Errors
    /// When there is none, with those that the agent has.
    pub(super) fn get(&mut self, agent: &str, run_id: &str) -> Result<&mut Entry, ToolError> {
        if !self.runs.contains_key(run_id) {
            let own = self.runs.iter().filter(|(_, entry)| entry.is_of(agent)).map(|(id, _)| id.clone());
            return Err(ToolError::UnknownRun { run_id: run_id.to_owned(), own: own.collect() });
        }
        let missing = || ToolError::UnknownRun { run_id: run_id.to_owned(), own: Vec::new() };
        self.runs.get_mut(run_id).ok_or_else(missing)
    }

    /// The latest runs of an agent.
    pub(super) fn list(&self, agent: &str, now: Duration) -> RunList {
        let mut own: Vec<_> = self.runs.iter().filter(|(_, entry)| entry.is_of(agent)).collect();
        own.sort_by_key(|(_, entry)| std::cmp::Reverse(entry.started));
        let more = own.len().saturating_sub(MAX_LISTED);
        let runs = own.into_iter().take(MAX_LISTED).map(|(id, entry)| entry.listed(id, now)).collect();
        RunList { runs, more: u32::try_from(more).unwrap_or(u32::MAX) }
    }

    /// Adds another agent to those whose run it is.
    pub(super) fn share(&mut self, run_id: &str, agent: &str) {
        if let Some(entry) = self.runs.get_mut(run_id)
            && !entry.is_of(agent)
        {
            entry.agents.push(agent.to_owned());
        }
    }

    /// Admits no further runs; gives those that run.
    pub(super) fn close(&mut self) -> Vec<Arc<Run>> {
        self.closed = true;
        self.runs.values().filter(|entry| entry.end.is_none()).map(|entry| entry.run.clone()).collect()
    }
}

impl Entry {
    pub(super) fn new(agent: &str, run: Arc<Run>, progress: Arc<Mutex<Progress>>, started: Duration) -> Self {
        Self {
            agents: vec![agent.to_owned()],
            run,
            progress,
            started,
            ended: CancellationToken::new(),
            end: None,
        }
    }

    fn is_of(&self, agent: &str) -> bool {
        self.agents.iter().any(|other| other == agent)
    }

    pub(super) fn name(&self) -> &str {
        &self.run.meta().name
    }

    pub(super) fn state(&self) -> RunState {
        self.end.as_ref().map_or(RunState::Running, |end| end.result.stop_reason.into())
    }

    /// The result, if there is one; asking for it keeps it longer.
    pub(super) fn touch(&mut self, now: Duration) -> Option<Arc<RunResult>> {
        let end = self.end.as_mut()?;
        end.touched = now;
        Some(end.result.clone())
    }

    fn listed(&self, run_id: &str, now: Duration) -> ListedRun {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        ListedRun {
            run_id: run_id.to_owned(),
            name: self.name().to_owned(),
            state: self.state(),
            elapsed_ms: ms(self.end.as_ref().map_or(now, |end| end.at).saturating_sub(self.started)),
            agents: progress.agents,
            read: self.end.as_ref().is_some_and(|end| end.read),
        }
    }

    pub(super) fn status(&self, run_id: &str, now: Duration) -> RunStatus {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let until = self.end.as_ref().map_or(now, |end| end.at);
        RunStatus {
            run_id: run_id.to_owned(),
            name: self.name().to_owned(),
            state: self.state(),
            error: self.end.as_ref().and_then(|end| end.result.error.clone()),
            elapsed_ms: ms(until.saturating_sub(self.started)),
            last_event_age_ms: ms(progress.last_event_age(now)),
            phase: progress.phase.clone(),
            phases: progress.phases(),
            agents: progress.agents,
            last_events: progress.last_events(now),
        }
    }
}

/// A duration in milliseconds.
pub(super) fn ms(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

//! All runs of a view, each under a number.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::Semaphore;

use crate::files::{FileRun, Files};
use crate::live::{Live, Watch};
use crate::summary::Summary;
use crate::view::About;

#[derive(Debug)]
pub(crate) struct Runs {
    /// Those of this process, the newest last.
    live: Mutex<VecDeque<Arc<Live>>>,
    pub(crate) files: Files,
    keys: Arc<Keys>,
    keep: usize,
    pub(crate) may_cancel: bool,
    /// For streams of lines.
    pub(crate) streams: Arc<Semaphore>,
}

/// How many streams of lines there may be at once.
const MAX_STREAMS: usize = 256;

/// Numbers for runs.
#[derive(Debug, Default)]
pub(crate) struct Keys(AtomicU64);

impl Keys {
    pub(crate) fn next(&self) -> u64 {
        self.0.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A run, wherever it is told.
pub(crate) enum Found {
    Live(Arc<Live>),
    File(Box<FileRun>),
}

impl Runs {
    pub(crate) fn new(keep: usize, may_cancel: bool) -> Self {
        let keys = Arc::<Keys>::default();
        Self {
            live: Mutex::default(),
            files: Files::new(keys.clone()),
            keys,
            keep,
            may_cancel,
            streams: Arc::new(Semaphore::new(MAX_STREAMS)),
        }
    }

    pub(crate) fn watch(&self, about: About) -> Watch {
        let run = Arc::new(Live::new(self.keys.next(), about));
        let mut live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        live.push_back(run.clone());
        let mut over = live.iter().filter(|run| run.is_over()).count();
        live.retain(|run| {
            let forget = over > self.keep && run.is_over();
            over -= usize::from(forget);
            !forget
        });
        Watch::new(run)
    }

    /// The newest first. Reads files that have changed, and blocks while it does.
    pub(crate) fn list(&self) -> Vec<Summary> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let mut all: Vec<Summary> = live.iter().map(|run| run.summary()).collect();
        drop(live);
        all.extend(self.files.list());
        all.sort_by_key(|run| std::cmp::Reverse((run.began, run.key)));
        all
    }

    pub(crate) fn find(&self, key: u64) -> Option<Found> {
        let live = self.live.lock().unwrap_or_else(PoisonError::into_inner);
        let found = live.iter().find(|run| run.key == key).cloned();
        drop(live);
        found.map(Found::Live).or_else(|| self.files.find(key).map(|run| Found::File(Box::new(run))))
    }
}

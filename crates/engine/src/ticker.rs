//! The clock that interrupts scripts: a thread that advances the engine's epoch while any script is live.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::{self, Thread};
use std::time::Duration;

use wasmtime::{Engine, EngineWeak};

/// How often a computing script is interrupted, to be stopped or to let others run. Eight scripts that never
/// await, on two processors, delay a timer of the host by about this.
pub(crate) const TICK: Duration = Duration::from_millis(5);

/// Ticks while there are [`Ticking`] guards, sleeps otherwise, and ends with the last ticker of its engine.
#[derive(Clone, Debug)]
pub(crate) struct Ticker(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    live: Arc<AtomicUsize>,
    closed: Arc<AtomicBool>,
    thread: Thread,
}

impl Ticker {
    pub(crate) fn start(engine: &Engine) -> std::io::Result<Self> {
        let live = Arc::new(AtomicUsize::new(0));
        let closed = Arc::new(AtomicBool::new(false));
        let theirs = (engine.weak(), live.clone(), closed.clone());
        let thread = thread::Builder::new().name("fanfold-ticker".into());
        let thread = thread.spawn(move || tick(&theirs.0, &theirs.1, &theirs.2))?.thread().clone();
        Ok(Self(Arc::new(Shared { live, closed, thread })))
    }

    /// Keeps the ticker going until it is dropped.
    pub(crate) fn keep_ticking(&self) -> Ticking {
        if self.0.live.fetch_add(1, Ordering::AcqRel) == 0 {
            self.0.thread.unpark();
        }
        Ticking(self.0.live.clone())
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        self.closed.store(true, Ordering::Release);
        self.thread.unpark();
    }
}

fn tick(engine: &EngineWeak, live: &AtomicUsize, closed: &AtomicBool) {
    while !closed.load(Ordering::Acquire) {
        if live.load(Ordering::Acquire) == 0 {
            thread::park();
            continue;
        }
        thread::sleep(TICK);
        match engine.upgrade() {
            Some(engine) => engine.increment_epoch(),
            None => return,
        }
    }
}

/// A script is live.
#[derive(Debug)]
pub(crate) struct Ticking(Arc<AtomicUsize>);

impl Drop for Ticking {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

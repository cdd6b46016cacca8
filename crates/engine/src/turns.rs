//! Turns at computing, so that scripts which compute for long leave the runtime time for everything else.
//!
//! A script that is interrupted yields, and wants to go on at once. Tokio looks at its timers when no task is ready,
//! or after many polls: eight scripts on one thread would each compute for a tick before a timer is looked at. so
//! of the scripts that were interrupted, only as many go on as the runtime has threads; the others wait. Whoever
//! gets its turn yields first: the thread finds nothing to do but its timers and other tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The turns of every runtime that runs scripts of an engine: one runtime that stands still must not hold up
/// another.
#[derive(Clone, Debug, Default)]
pub(crate) struct Turns(Arc<Mutex<HashMap<Id, Weak<Semaphore>>>>);

impl Turns {
    /// A script's part in the turns of the current runtime.
    pub(crate) fn join(&self) -> Turn {
        let runtime = Handle::current();
        let mut turns = lock(&self.0);
        let known = turns.get(&runtime.id()).and_then(Weak::upgrade);
        let free = known.unwrap_or_else(|| {
            turns.retain(|_, free| free.strong_count() > 0);
            let free = Arc::new(Semaphore::new(runtime.metrics().num_workers()));
            turns.insert(runtime.id(), Arc::downgrade(&free));
            free
        });
        Turn { free, mine: Arc::default() }
    }
}

/// Whether it is a script's turn. A script that was not interrupted yet needs none.
#[derive(Clone, Debug)]
pub(crate) struct Turn {
    /// As many permits as the runtime has threads.
    free: Arc<Semaphore>,
    mine: Arc<Mutex<Option<OwnedSemaphorePermit>>>,
}

impl Turn {
    /// Lets those scripts go on that wait, and returns when it is this one's turn and the runtime has nothing else to
    /// do.
    pub(crate) async fn next(&self) {
        self.end();
        // It is never closed; if it were, nobody would have to wait.
        let turn = self.free.clone().acquire_owned().await.ok();
        *lock(&self.mine) = turn;
        tokio::task::yield_now().await;
    }

    /// The script computes no more, for now.
    pub(crate) fn end(&self) {
        lock(&self.mine).take();
    }
}

/// Nothing that holds a lock here can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

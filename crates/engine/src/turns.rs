//! Turns at computing, so that scripts which compute for long leave the runtime time for everything else.
//!
//! A script that is interrupted yields, and wants to go on at once. Tokio looks at its timers when no task is ready,
//! or after many polls: eight scripts on one thread would each compute for a tick before a timer is looked at. So
//! of the scripts that were interrupted, only as many go on as the runtime has threads; the others wait. Whoever
//! gets its turn yields first: the thread finds nothing to do but its timers and other tasks.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures::StreamExt as _;
use futures::stream::FuturesUnordered;
use tokio::runtime::{Handle, Id};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::yield_now;

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
    /// Lets those scripts go on that wait, and returns when it is this one's turn and the runtime has had a chance to do
    /// everything else.
    pub(crate) async fn next(&self) {
        self.end();
        // It is never closed; if it were, nobody would have to wait.
        let turn = self.free.clone().acquire_owned().await.ok();
        *lock(&self.mine) = turn;
        give_way().await;
    }

    /// The script computes no more, for now.
    pub(crate) fn end(&self) {
        lock(&self.mine).take();
    }
}

/// Waits until the runtime comes back to this. Tokio's own future for that is ready as soon as it is polled again, and a
/// run polls its script again whenever something else of it has changed.
async fn give_way() {
    FuturesUnordered::from_iter([yield_now()]).next().await;
}

/// Nothing that holds a lock here can panic.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn who_gives_way_waits_for_the_runtime_however_often_it_is_polled() {
        let mut gives_way = Box::pin(give_way());
        for _ in 0..3 {
            assert!((&mut gives_way).now_or_never().is_none());
        }
        gives_way.await;
    }
}

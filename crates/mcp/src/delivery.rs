//! Whether the answer of a request has reached its client, as far as a server can tell.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use axum::http::request::Parts;
use fanfold::CancellationToken;
use rmcp::model::Extensions;

/// The way of one answer to its client. HTTP requests carry one; over a pair of streams every answer is delivered.
#[derive(Clone, Default)]
pub(crate) struct Delivery(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    stage: Stage,
    /// What is done once it is delivered.
    then: Vec<Box<dyn FnOnce() + Send>>,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    /// A connection waits for it.
    #[default]
    Open,
    /// The connection was dropped before the answer was read.
    Lost,
    Delivered,
}

impl Delivery {
    /// Of an answer that nothing can be told of.
    pub(crate) fn certain() -> Self {
        let delivery = Self::default();
        delivery.delivered();
        delivery
    }

    /// The one that a request carries.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let carried = extensions.get::<Parts>().and_then(|parts| parts.extensions.get::<Self>());
        carried.cloned().unwrap_or_else(Self::certain)
    }

    /// The answer was read.
    pub(crate) fn delivered(&self) {
        let then = {
            let mut state = self.lock();
            state.stage = Stage::Delivered;
            std::mem::take(&mut state.then)
        };
        then.into_iter().for_each(|then| then());
    }

    /// The connection was dropped.
    pub(crate) fn lost(&self) {
        self.change(Stage::Open, Stage::Lost);
    }

    /// The client came back for the answer.
    pub(crate) fn reopened(&self) {
        self.change(Stage::Lost, Stage::Open);
    }

    pub(crate) fn is_lost(&self) -> bool {
        self.lock().stage == Stage::Lost
    }

    pub(crate) fn is_delivered(&self) -> bool {
        self.lock().stage == Stage::Delivered
    }

    /// Does this once the answer was read.
    pub(crate) fn then(&self, then: impl FnOnce() + Send + 'static) {
        let mut state = self.lock();
        if state.stage != Stage::Delivered {
            return state.then.push(Box::new(then));
        }
        drop(state);
        then();
    }

    fn change(&self, from: Stage, to: Stage) {
        let mut state = self.lock();
        if state.stage == from {
            state.stage = to;
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // Nothing that holds the lock can leave the state half-written.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Delivery").field(&self.lock().stage).finish()
    }
}

/// Fires when the session that a request belongs to has ended. Requests of HTTP sessions carry one.
#[derive(Clone, Debug)]
pub(crate) struct SessionEnd(pub(crate) CancellationToken);

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn an_answer_is_delivered_once_over_any_number_of_connections() {
        let (delivery, done) = (Delivery::default(), Arc::new(AtomicU32::new(0)));
        let count = |done: &Arc<AtomicU32>| {
            let done = done.clone();
            move || {
                done.fetch_add(1, Ordering::Relaxed);
            }
        };
        delivery.then(count(&done));
        delivery.lost();
        assert!(delivery.is_lost());
        delivery.reopened();
        assert!(!delivery.is_lost());
        assert_eq!(done.load(Ordering::Relaxed), 0);
        delivery.delivered();
        delivery.lost();
        delivery.delivered();
        assert!(!delivery.is_lost());
        delivery.then(count(&done));
        assert_eq!(done.load(Ordering::Relaxed), 2);
        Delivery::certain().then(count(&done));
        assert_eq!(done.load(Ordering::Relaxed), 3);
    }
}

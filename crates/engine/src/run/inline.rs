//! Polls a future on at once when it was woken by what it did itself.
//!
//! A run's script, its children and its driver are one task: that the script called an agent, or that an agent has
//! answered, wakes the task which is being polled already. Tokio would put it at the end of its queue, and wake
//! another thread to take it from there: many times what the call itself costs.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use futures::task::AtomicWaker;
use tokio::task::coop::has_budget_remaining;

/// Polls in a row. Then other tasks have their turn, however busy this one is.
const MOST: u32 = 128;

/// See the module.
pub(super) struct Inline<F> {
    future: Pin<Box<F>>,
    state: Arc<State>,
    waker: Waker,
}

/// Whether the future is polled just now, and was woken meanwhile.
#[derive(Default)]
struct State {
    stage: AtomicU8,
    /// Wakes the task that this is in.
    task: AtomicWaker,
}

const IDLE: u8 = 0;
const POLLED: u8 = 1;
const WOKEN: u8 = 2;

impl<F> Inline<F> {
    pub(super) fn new(future: F) -> Self {
        let state = Arc::new(State::default());
        Self { future: Box::pin(future), waker: state.clone().into(), state }
    }
}

impl<F: Future> Future for Inline<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let this = self.get_mut();
        this.state.task.register(cx.waker());
        for _ in 0..MOST {
            this.state.stage.store(POLLED, Ordering::Release);
            if let Poll::Ready(output) = this.future.as_mut().poll(&mut Context::from_waker(&this.waker)) {
                return Poll::Ready(output);
            }
            if this.state.stage.swap(IDLE, Ordering::AcqRel) == POLLED {
                return Poll::Pending;
            }
            if !has_budget_remaining() {
                break;
            }
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

impl Wake for State {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        // While it is polled, the one that polls it looks at the stage afterwards.
        let noted = self
            .stage
            .fetch_update(Ordering::AcqRel, Ordering::Acquire, |stage| (stage != IDLE).then_some(WOKEN));
        if noted.is_err() {
            self.task.wake();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicU32;
    use std::thread;

    use futures::future::poll_fn;
    use tokio::sync::oneshot;

    use super::*;

    /// Counts how often a task is woken.
    #[derive(Default)]
    struct Count(AtomicU32);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    #[test]
    fn what_wakes_itself_does_not_wake_the_task() {
        let count = Arc::new(Count::default());
        let mut left = 10;
        let mut future = Inline::new(poll_fn(|cx| {
            left -= 1;
            if left == 0 {
                return Poll::Ready("done");
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }));
        let ended = Pin::new(&mut future).poll(&mut Context::from_waker(&count.clone().into()));
        assert_eq!(ended, Poll::Ready("done"));
        assert_eq!(count.0.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn what_is_always_busy_leaves_time_for_others() {
        let count = Arc::new(Count::default());
        let mut polls = 0;
        let mut future = Inline::new(poll_fn(|cx| {
            polls += 1;
            cx.waker().wake_by_ref();
            Poll::<()>::Pending
        }));
        let ended = Pin::new(&mut future).poll(&mut Context::from_waker(&count.clone().into()));
        assert_eq!((ended, count.0.load(Ordering::Relaxed)), (Poll::Pending, 1));
        assert_eq!(polls, MOST);
    }

    #[test]
    fn others_wake_the_task() {
        for _ in 0..100 {
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            let (sender, receiver) = oneshot::channel();
            let other = thread::spawn(move || sender.send(7));
            assert_eq!(runtime.block_on(Inline::new(receiver)), Ok(7));
            other.join().unwrap().unwrap();
        }
    }
}

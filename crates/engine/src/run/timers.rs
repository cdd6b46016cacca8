//! The timers of one script, and what time it is for the scripts of a run.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use fanfold_types::{ErrorCode, WorkflowError};
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

/// The longest delay, as everywhere: about 25 days.
const MAX_DELAY_MS: u32 = i32::MAX as u32;

/// What `Date` says to the scripts of a run, in milliseconds since 1970. It moves on when a timer fires, to the time
/// that the timer was set for, so that a script which waits for a time comes to it, and one that is played again
/// sees the same.
#[derive(Debug)]
pub(super) struct ScriptTime(AtomicU64);

impl ScriptTime {
    pub(super) fn new(start_ms: u64) -> Self {
        Self(AtomicU64::new(start_ms))
    }

    pub(super) fn now_ms(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    fn advance(&self, to_ms: u64) -> u64 {
        self.0.fetch_max(to_ms, Ordering::Relaxed).max(to_ms)
    }
}

/// The timers that a script has set.
#[derive(Debug)]
pub(super) struct Timers {
    /// How many it may have set at once.
    most: u32,
    set: Mutex<Set>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct Set {
    last: u32,
    /// The script's time at which each timer is due, by when it fires and its number.
    due: BTreeMap<(Instant, u32), u64>,
    fires_at: HashMap<u32, Instant>,
}

impl Timers {
    pub(super) fn new(most: u32) -> Self {
        Self { most, set: Mutex::default(), changed: Notify::new() }
    }

    /// Sets a timer.
    ///
    /// # Errors
    /// `OUTPUT_LIMIT` when there are too many.
    pub(super) fn set(&self, delay_ms: u32, time: &ScriptTime) -> Result<u32, WorkflowError> {
        let delay_ms = delay_ms.clamp(1, MAX_DELAY_MS);
        let fires_at = Instant::now() + Duration::from_millis(delay_ms.into());
        let mut set = self.lock();
        let most = self.most;
        if set.due.len() >= most as usize {
            return Err(ErrorCode::OutputLimit.error(format!(
                "a script may have {most} timers set at once (maxTimers); wait for some of them first"
            )));
        }
        let timer = set.last.checked_add(1).ok_or_else(|| {
            ErrorCode::OutputLimit.error("a script may set 4 billion timers; wait for longer times")
        })?;
        set.last = timer;
        set.fires_at.insert(timer, fires_at);
        set.due.insert((fires_at, timer), time.now_ms().saturating_add(delay_ms.into()));
        drop(set);
        self.changed.notify_one();
        Ok(timer)
    }

    /// Forgets a timer that has not fired.
    pub(super) fn clear(&self, timer: u32) {
        let mut set = self.lock();
        if let Some(fires_at) = set.fires_at.remove(&timer) {
            set.due.remove(&(fires_at, timer));
        }
    }

    /// The next timer that fires, and the script's time then. For one caller at a time.
    pub(super) async fn next(&self, time: &ScriptTime) -> (u32, u64) {
        loop {
            let first = self.lock().due.first_key_value().map(|((fires_at, _), _)| *fires_at);
            match first {
                Some(fires_at) if fires_at <= Instant::now() => {
                    let mut set = self.lock();
                    if let Some(((_, timer), due_ms)) = set.due.pop_first() {
                        set.fires_at.remove(&timer);
                        return (timer, time.advance(due_ms));
                    }
                }
                Some(fires_at) => tokio::select! {
                    () = sleep_until(fires_at) => {}
                    () = self.changed.notified() => {}
                },
                None => self.changed.notified().await,
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, Set> {
        // Nothing that holds the lock can leave the set half-written.
        self.set.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn timers_fire_in_the_order_of_their_times_and_move_the_time_on() {
        let (timers, time) = (Timers::new(100), ScriptTime::new(1000));
        let set = |delay| timers.set(delay, &time).unwrap();
        let (late, soon, never, same) = (set(40), set(20), set(1), set(40));
        timers.clear(never);
        timers.clear(999);
        assert_eq!(timers.next(&time).await, (soon, 1020));
        assert_eq!(timers.next(&time).await, (late, 1040));
        // Set at a later moment, but before the time has moved on.
        assert_eq!(timers.next(&time).await, (same, 1040));
        assert_eq!(timers.next(&time).now_or_never(), None, "none is left");
        assert_eq!(time.now_ms(), 1040);
    }

    #[tokio::test]
    async fn a_timer_that_is_set_later_may_fire_earlier() {
        let (timers, time) = (Timers::new(100), ScriptTime::new(0));
        timers.set(u32::MAX, &time).unwrap();
        let soon = async {
            tokio::task::yield_now().await;
            timers.set(0, &time).unwrap()
        };
        let ((fired, now), soon) = tokio::join!(timers.next(&time), soon);
        assert_eq!((fired, now), (soon, 1));
    }

    #[tokio::test]
    async fn there_is_an_end_to_timers() {
        let (timers, time) = (Timers::new(100), ScriptTime::new(0));
        for _ in 0..100 {
            timers.set(1000, &time).unwrap();
        }
        assert_eq!(timers.set(1, &time).unwrap_err().code, Some(ErrorCode::OutputLimit));
        timers.clear(1);
        assert!(timers.set(1, &time).is_ok());
    }
}

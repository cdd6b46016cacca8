//! The two clocks of an agent: how long it may take (`timeoutMs`), and how long it may say nothing (`stallMs`).
//!
//! Both sleep in steps and look whether a step took far longer than it should: then this process was stopped (SIGSTOP,
//! Ctrl-Z) or the machine was suspended, and what the agent said meanwhile has not been read yet. Such a step does not
//! count, and the next one gives the time to read it.

use std::time::Duration;

use tokio::time::{Instant, sleep};

use crate::transcript::Transcript;

/// The longest step.
const LONGEST_STEP: Duration = Duration::from_secs(1);

/// A step that takes longer than it should by this, and by its own length, was interrupted.
const LATE: Duration = Duration::from_millis(200);

/// The time that one agent has, over all its attempts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Deadline {
    /// When it is over; never without a time limit, or with one beyond all time.
    end: Option<Instant>,
    step: Duration,
}

impl Deadline {
    /// The deadline of an agent that starts now.
    pub(crate) fn new(timeout: Option<Duration>) -> Self {
        let end = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        Self { end, step: step(timeout.unwrap_or_default()) }
    }

    /// When it is over, if ever, and no pause of this process moves it.
    pub(crate) fn end(&self) -> Option<Instant> {
        self.end
    }

    /// Returns at the deadline, if there is one.
    pub(crate) async fn over(&mut self) {
        let Some(mut end) = self.end else { return std::future::pending().await };
        let mut pauses = Pauses::default();
        loop {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            end += pauses.sleep(left.min(self.step)).await;
            self.end = Some(end);
        }
    }

    /// Whether it is over before so much time has passed.
    pub(crate) fn is_within(&self, time: Duration) -> bool {
        self.end.is_some_and(|end| end < Instant::now() + time)
    }
}

/// Returns once nothing was heard for so long; without a time never.
pub(crate) async fn silence(transcript: &Transcript, longest: Option<Duration>) {
    let Some(longest) = longest else { return std::future::pending().await };
    let mut pauses = Pauses::default();
    let (mut last, mut paused) = (transcript.last_heard(), Duration::ZERO);
    loop {
        let Some(end) = last.checked_add(longest.saturating_add(paused)) else {
            return std::future::pending().await;
        };
        let left = end.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return;
        }
        let lost = pauses.sleep(left.min(step(longest))).await;
        let heard = transcript.last_heard();
        if heard != last {
            (last, paused) = (heard, Duration::ZERO);
        }
        // What was heard in the step itself ends the time that could be lost in it.
        paused = paused.saturating_add(lost.min(last.elapsed()));
    }
}

fn step(whole: Duration) -> Duration {
    (whole / 4).clamp(Duration::from_millis(10), LONGEST_STEP)
}

/// Finds the steps in which this process did not run.
#[derive(Default)]
struct Pauses {
    /// The last step was interrupted. On a machine that is too busy for every step the clocks still go on.
    interrupted: bool,
}

impl Pauses {
    /// Sleeps, and returns how much time does not count: all of it if the step was interrupted, so that at least one
    /// more step follows.
    async fn sleep(&mut self, step: Duration) -> Duration {
        let begin = Instant::now();
        sleep(step).await;
        let passed = begin.elapsed();
        let late = passed > step + step.max(LATE);
        self.interrupted = late && !self.interrupted;
        if self.interrupted { passed } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use futures::poll;
    use tokio::time::advance;

    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_is_over_when_its_time_is() {
        for timeout in [1, 50, 1000, 1001, 3_600_000] {
            let (begin, mut deadline) = (Instant::now(), Deadline::new(Some(ms(timeout))));
            assert!(deadline.is_within(ms(timeout + 1)) && !deadline.is_within(ms(timeout)));
            deadline.over().await;
            // The timers of the runtime are exact to a millisecond.
            assert!(begin.elapsed() - ms(timeout) <= ms(1), "{timeout}: {:?}", begin.elapsed());
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_deadline_that_is_asked_again_and_again_is_over_at_the_same_time() {
        let (begin, mut deadline) = (Instant::now(), Deadline::new(Some(ms(1000))));
        while tokio::time::timeout(ms(70), deadline.over()).await.is_err() {}
        assert!(begin.elapsed() - ms(1000) <= ms(1), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn without_a_time_there_is_no_end() {
        let transcript = Transcript::default();
        for timeout in [None, Some(ms(u64::MAX))] {
            let mut deadline = Deadline::new(timeout);
            tokio::select! {
                () = deadline.over() => panic!("{timeout:?}"),
                () = silence(&transcript, timeout) => panic!("{timeout:?}"),
                () = sleep(ms(1_000_000_000)) => {}
            }
            assert!(!deadline.is_within(ms(1_000_000_000)));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silence_begins_anew_with_all_that_is_heard() {
        let transcript = Transcript::default();
        let begin = Instant::now();
        let talk = async {
            for _ in 0..10 {
                sleep(ms(900)).await;
                transcript.heard();
            }
        };
        tokio::join!(talk, silence(&transcript, Some(ms(1000))));
        assert!(begin.elapsed() - ms(10_000) <= ms(2), "{:?}", begin.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_came_while_the_process_was_stopped_is_read_before_its_time_is_over() {
        let transcript = Transcript::default();
        let mut deadline = Deadline::new(Some(ms(1000)));
        let mut silence = Box::pin(silence(&transcript, Some(ms(1000))));
        let mut over = Box::pin(deadline.over());
        assert!(poll!(&mut silence).is_pending() && poll!(&mut over).is_pending());
        // All timers go off at once when the process goes on.
        advance(ms(2500)).await;
        assert!(poll!(&mut silence).is_pending() && poll!(&mut over).is_pending());
        let rest = Instant::now();
        over.await;
        assert!(rest.elapsed() <= ms(1001), "{:?}", rest.elapsed());
        silence.await;
        assert!(rest.elapsed() <= ms(1001), "{:?}", rest.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_heard_right_before_the_process_was_stopped_does_not_hide_that_it_was() {
        let transcript = Transcript::default();
        let mut silence = Box::pin(silence(&transcript, Some(ms(1000))));
        assert!(poll!(&mut silence).is_pending());
        advance(ms(100)).await;
        transcript.heard();
        assert!(poll!(&mut silence).is_pending());
        advance(ms(2500)).await;
        assert!(poll!(&mut silence).is_pending());
        let rest = Instant::now();
        silence.await;
        assert!(rest.elapsed() <= ms(1001), "{:?}", rest.elapsed());
    }

    #[tokio::test(start_paused = true)]
    async fn a_machine_that_is_always_late_does_not_stop_the_clocks() {
        let transcript = Transcript::default();
        let mut silence = Box::pin(silence(&transcript, Some(ms(1000))));
        for _ in 0..20 {
            if poll!(&mut silence).is_ready() {
                return;
            }
            advance(ms(600)).await;
        }
        panic!("no end after 12 s");
    }
}

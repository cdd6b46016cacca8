//! Trying again: which failures, how often, after how long.

use std::time::Duration;

use crate::failure::{Failure, Reason};

/// The first pause before another try, and the longest that is chosen here.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(16);

/// How to try again.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RetryPolicy {
    /// How often failures that may pass are tried again, where the call does not say how often.
    pub(crate) transient: u32,
    /// The longest pause that the other side may ask for.
    pub(crate) longest_wait: Duration,
}

impl RetryPolicy {
    /// How long to pause before the next try.
    ///
    /// # Errors
    /// There is none; and if that is because the other side wants too long a pause, a failure that says so.
    pub(crate) fn pause(
        self,
        reason: &Reason,
        asked_for: Option<u32>,
        tries: u32,
    ) -> Result<Duration, Option<Failure>> {
        let most = match asked_for {
            Some(retries) if reason.kind.can_pass() => retries,
            None if reason.kind.is_transient() => self.transient,
            _ => 0,
        };
        if tries >= most {
            return Err(None);
        }
        let Some(wait) = reason.wait else { return Ok(jittered(backoff(tries))) };
        if wait > self.longest_wait {
            return Err(Some(Failure::new(
                reason.kind,
                format!(
                    "{}; it asks to wait {} s, longer than {} s (maxRetryWaitMs)",
                    reason.message,
                    wait.as_secs(),
                    self.longest_wait.as_secs()
                ),
            )));
        }
        // Those who were told to wait together should not come back together.
        Ok(wait + FIRST_PAUSE.mul_f64(fastrand::f64()))
    }
}

fn backoff(tries: u32) -> Duration {
    FIRST_PAUSE.saturating_mul(1 << tries.min(16)).min(LONGEST_PAUSE)
}

/// From half of it to all of it.
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::failure::FailureKind;

    const RETRIES: RetryPolicy = RetryPolicy { transient: 2, longest_wait: Duration::from_secs(60) };

    fn reason(kind: FailureKind, wait: Option<u64>) -> Reason {
        Reason::new(kind, "m").wait(wait.map(Duration::from_secs))
    }

    #[test]
    fn what_may_pass_is_tried_again_and_the_call_says_how_often() {
        use FailureKind::*;
        for (kind, asked_for, tries, expected) in [
            (RateLimit, None, 0, true),
            (Server, None, 1, true),
            (Connection, None, 2, false),
            (Connection, Some(0), 0, false),
            (Server, Some(3), 2, true),
            (Refusal, None, 0, false),
            (CutOff, None, 0, false),
            (CutOff, Some(1), 0, true),
            (Schema, Some(1), 0, true),
            (InvalidRequest, Some(9), 0, false),
            (Authentication, Some(9), 0, false),
            (Quota, Some(9), 0, false),
            (Timeout, Some(9), 0, false),
        ] {
            let again = RETRIES.pause(&reason(kind, None), asked_for, tries).is_ok();
            assert_eq!(again, expected, "{kind} {asked_for:?} {tries}");
        }
    }

    #[test]
    fn pauses_grow_are_jittered_and_bounded() {
        for (tries, longest) in [(0, 500), (1, 1000), (2, 2000), (10, 16_000), (u32::MAX - 1, 16_000)] {
            for _ in 0..100 {
                let pause = RETRIES.pause(&reason(FailureKind::Server, None), Some(u32::MAX), tries).unwrap();
                let longest = Duration::from_millis(longest);
                assert!(pause >= longest / 2 && pause <= longest, "{tries}: {pause:?}");
            }
        }
    }

    #[test]
    fn a_pause_that_was_asked_for_is_kept_unless_it_is_too_long() {
        let kind = FailureKind::RateLimit;
        for _ in 0..100 {
            let pause = RETRIES.pause(&reason(kind, Some(7)), None, 0).unwrap();
            assert!(pause >= Duration::from_secs(7) && pause < Duration::from_secs(8), "{pause:?}");
        }
        let message = "m; it asks to wait 61 s, longer than 60 s (maxRetryWaitMs)";
        let expected = Failure::new(kind, message);
        assert_eq!(RETRIES.pause(&reason(kind, Some(61)), None, 0), Err(Some(expected)));
    }
}

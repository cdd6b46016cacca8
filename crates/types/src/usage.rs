//! What children cost, in tokens.

use core::iter::Sum;
use core::ops::{Add, AddAssign};

use serde::{Deserialize, Serialize};

/// Tokens that models read and wrote, as their providers report them.
///
/// ```
/// use fanfold_types::Usage;
/// let all: Usage = [Usage::new(100, 20), Usage::new(50, 5)].into_iter().sum();
/// assert_eq!(all, Usage::new(150, 25));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// What models read, whether from a cache or not.
    pub input_tokens: u64,
    /// What models wrote, their thinking included.
    pub output_tokens: u64,
}

impl Usage {
    /// So many tokens.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens }
    }
}

/// Providers may say anything: sums stay at the largest number.
impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

impl AddAssign for Usage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Usage {
    fn sum<I: Iterator<Item = Self>>(usages: I) -> Self {
        usages.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_that_is_too_large_stays_at_the_largest() {
        assert_eq!(Usage::new(u64::MAX, 1) + Usage::new(1, 1), Usage::new(u64::MAX, 2));
    }

    #[test]
    fn what_is_absent_is_nothing() {
        let usage: Usage = serde_json::from_str(r#"{"outputTokens": 3}"#).unwrap();
        assert_eq!(usage, Usage::new(0, 3));
    }
}

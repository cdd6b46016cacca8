//! What agents cost, in tokens and money.

use core::fmt;
use core::iter::Sum;
use core::ops::{Add, AddAssign};

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Tokens that models read and wrote and what that cost, as their providers report it.
///
/// ```
/// use fanfold_types::Usage;
/// let all: Usage = [Usage::new(100, 20).cached(80, 0), Usage::new(50, 5)].into_iter().sum();
/// assert_eq!(all, Usage::new(150, 25).cached(80, 0));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[serde(rename_all = "camelCase", default)]
#[non_exhaustive]
pub struct Usage {
    /// What models read, whether from a cache or not.
    pub input_tokens: u64,
    /// What models wrote, their thinking included.
    pub output_tokens: u64,
    /// How much of `input_tokens` was read from a cache. Missing in JSON for 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_read_tokens: u64,
    /// How much of `input_tokens` was written to a cache. Missing in JSON for 0.
    #[serde(skip_serializing_if = "is_zero")]
    pub cache_creation_tokens: u64,
    /// What it cost, where a provider says so: in JSON a number of US dollars.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "typescript", tsify(type = "number"))]
    pub cost_usd: Option<Usd>,
}

impl Usage {
    /// So many tokens.
    pub const fn new(input_tokens: u64, output_tokens: u64) -> Self {
        Self { input_tokens, output_tokens, cache_read_tokens: 0, cache_creation_tokens: 0, cost_usd: None }
    }

    /// The same, of which so many input tokens were read from a cache and written to one.
    #[must_use]
    pub const fn cached(self, read: u64, creation: u64) -> Self {
        Self { cache_read_tokens: read, cache_creation_tokens: creation, ..self }
    }

    /// The same, at this cost.
    #[must_use]
    pub const fn costing(self, cost: Usd) -> Self {
        Self { cost_usd: Some(cost), ..self }
    }
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes fields by reference")]
fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// Providers may say anything: sums stay at the largest number.
impl Add for Usage {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
            cache_read_tokens: self.cache_read_tokens.saturating_add(other.cache_read_tokens),
            cache_creation_tokens: self.cache_creation_tokens.saturating_add(other.cache_creation_tokens),
            cost_usd: match (self.cost_usd, other.cost_usd) {
                (Some(one), Some(other)) => Some(one + other),
                (one, other) => one.or(other),
            },
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

/// US dollars, in whole billionths, so that sums are exact. In JSON a number of dollars, which is exact below a
/// million dollars.
///
/// ```
/// use fanfold_types::Usd;
/// let cost = Usd::from_dollars(0.1).unwrap() + Usd::from_dollars(0.2).unwrap();
/// assert_eq!(cost, Usd::from_billionths(300_000_000));
/// assert_eq!(cost.to_string(), "$0.30");
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Usd(u64);

impl Usd {
    /// Billionths of a dollar in one.
    const UNIT: u64 = 1_000_000_000;

    /// So many billionths of a dollar.
    pub const fn from_billionths(billionths: u64) -> Self {
        Self(billionths)
    }

    /// So many dollars, to the nearest billionth; what is too large stays at the largest. `None` for a number that is
    /// negative or not finite.
    pub fn from_dollars(dollars: f64) -> Option<Self> {
        // The conversion keeps to the largest number. `f64::round` is not in `core`.
        (dollars.is_finite() && dollars >= 0.0).then_some(Self((dollars * Self::UNIT as f64 + 0.5) as u64))
    }

    /// In billionths of a dollar.
    pub const fn billionths(self) -> u64 {
        self.0
    }

    /// In dollars, as near as the number can be.
    pub const fn dollars(self) -> f64 {
        self.0 as f64 / Self::UNIT as f64
    }
}

/// Sums stay at the largest amount.
impl Add for Usd {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

/// Exact: `$0.000012`, with two digits after the point at least.
impl fmt::Display for Usd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mut digits, mut rest) = (9, self.0 % Self::UNIT);
        while digits > 2 && rest % 10 == 0 {
            (digits, rest) = (digits - 1, rest / 10);
        }
        write!(f, "${}.{rest:0digits$}", self.0 / Self::UNIT)
    }
}

impl Serialize for Usd {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_f64(self.dollars())
    }
}

impl<'de> Deserialize<'de> for Usd {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Self::from_dollars(f64::deserialize(deserializer)?)
            .ok_or_else(|| D::Error::custom("an amount of dollars must not be negative"))
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString as _;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_sum_that_is_too_large_stays_at_the_largest() {
        let (most, one) = (Usd::from_billionths(u64::MAX), Usd::from_billionths(1));
        assert_eq!(
            Usage::new(u64::MAX, 1).cached(u64::MAX, 2).costing(most)
                + Usage::new(1, 1).cached(1, 1).costing(one),
            Usage::new(u64::MAX, 2).cached(u64::MAX, 3).costing(most)
        );
    }

    #[test]
    fn a_cost_that_one_provider_tells_is_that_of_all() {
        let cost = Usd::from_billionths(7);
        for usages in [
            [Usage::new(1, 1), Usage::new(1, 1).costing(cost)],
            [Usage::new(2, 2).costing(cost), Usage::default()],
        ] {
            assert_eq!(usages.into_iter().sum::<Usage>(), Usage::new(2, 2).costing(cost));
        }
        assert_eq!((Usage::new(1, 1) + Usage::new(1, 1)).cost_usd, None);
    }

    #[test]
    fn what_is_absent_is_nothing() {
        let usage: Usage = serde_json::from_str(r#"{"outputTokens": 3}"#).unwrap();
        assert_eq!(usage, Usage::new(0, 3));
    }

    #[test]
    fn json_has_caches_and_cost_only_where_there_are_any() {
        for (usage, json) in [
            (Usage::new(1, 2), r#"{"inputTokens":1,"outputTokens":2}"#),
            (
                Usage::new(9, 2).cached(7, 1).costing(Usd::from_billionths(1_230)),
                r#"{"inputTokens":9,"outputTokens":2,"cacheReadTokens":7,"cacheCreationTokens":1,"costUsd":1.23e-6}"#,
            ),
            (Usage::new(1, 2).costing(Usd::default()), r#"{"inputTokens":1,"outputTokens":2,"costUsd":0.0}"#),
        ] {
            assert_eq!(serde_json::to_string(&usage).unwrap(), json);
            assert_eq!(serde_json::from_str::<Usage>(json).unwrap(), usage);
        }
        assert_eq!(
            serde_json::from_str::<Usage>(r#"{"costUsd": 2}"#).unwrap().cost_usd,
            Usd::from_dollars(2.0)
        );
        serde_json::from_str::<Usage>(r#"{"costUsd": -0.1}"#).unwrap_err();
    }

    #[test]
    fn dollars_are_shown_as_they_are() {
        for (billionths, shown) in [
            (0, "$0.00"),
            (1, "$0.000000001"),
            (15_500, "$0.0000155"),
            (300_000_000, "$0.30"),
            (12_000_000_000, "$12.00"),
            (1_234_567_890, "$1.23456789"),
        ] {
            assert_eq!(Usd::from_billionths(billionths).to_string(), shown);
        }
    }

    #[test]
    fn only_amounts_are_dollars() {
        for none in [-0.1, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
            assert_eq!(Usd::from_dollars(none), None, "{none}");
        }
        assert_eq!(Usd::from_dollars(1e300), Some(Usd::from_billionths(u64::MAX)));
        assert_eq!(Usd::from_dollars(-0.0), Some(Usd::default()));
    }

    proptest! {
        #[test]
        fn amounts_below_a_million_dollars_survive_json(billionths in 0..1_000_000_000_000_000_u64) {
            let cost = Usd::from_billionths(billionths);
            let json = serde_json::to_string(&cost).unwrap();
            prop_assert_eq!(serde_json::from_str::<Usd>(&json).unwrap(), cost);
        }
    }
}

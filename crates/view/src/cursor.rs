//! How far a reader of a run's lines is.

use std::fmt;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::str::FromStr;

/// The lines that a reader has seen: how many, and a digest of what they said. A run whose lines have become others
/// (a log that was replaced or cut, another process under the same address) is told by the digest.
///
/// As text it is the id of a server-sent event: `17-5f0c33aa90d1b2e4`, and for logs on disk `-` and the stamp of the
/// file behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cursor {
    /// How many lines.
    pub(crate) lines: usize,
    /// Missing if a reader gives the number alone; it is believed then.
    digest: Option<u64>,
    /// What [`stamp`](crate::files::stamp) said of the file that these are all lines of.
    pub(crate) stamp: Option<u64>,
}

impl Cursor {
    /// Before the first line.
    pub(crate) const START: Self = Self { lines: 0, digest: Some(0), stamp: None };

    /// What the header `Last-Event-ID` says. What cannot be read is a place that no run has.
    pub(crate) fn of_id(id: &str) -> Self {
        id.parse().unwrap_or(Self { lines: usize::MAX, digest: None, stamp: None })
    }

    /// Behind one more line.
    #[must_use]
    pub(crate) fn after(self, line: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (self.digest, line).hash(&mut hasher);
        Self { lines: self.lines.saturating_add(1), digest: Some(hasher.finish()), stamp: None }
    }

    /// Whether a reader at `self` has seen the lines that end at `there`.
    pub(crate) fn is_at(self, there: Self) -> bool {
        self.lines == there.lines && (self.digest.is_none() || self.digest == there.digest)
    }
}

impl fmt::Display for Cursor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.lines)?;
        for part in [self.digest, self.stamp].into_iter().flatten() {
            write!(f, "-{part:016x}")?;
        }
        Ok(())
    }
}

impl FromStr for Cursor {
    type Err = std::num::ParseIntError;

    fn from_str(id: &str) -> Result<Self, Self::Err> {
        let mut parts = id.splitn(3, '-');
        let lines = parts.next().unwrap_or_default().parse()?;
        let mut part = || parts.next().map(|part| u64::from_str_radix(part, 16)).transpose();
        Ok(Self { lines, digest: part()?, stamp: part()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_says_the_cursor_it_was_made_of() {
        let mut cursor = Cursor::START;
        for line in ["one", "", "two"] {
            assert_eq!(Cursor::of_id(&cursor.to_string()), cursor);
            cursor = cursor.after(line.as_bytes());
            let stamped = Cursor { stamp: Some(7), ..cursor };
            assert_eq!(Cursor::of_id(&stamped.to_string()), stamped);
        }
        assert_eq!(cursor.lines, 3);
    }

    #[test]
    fn only_the_same_lines_are_the_same_place() {
        let at = |lines: &[&str]| lines.iter().fold(Cursor::START, |at, line| at.after(line.as_bytes()));
        assert!(at(&["a", "b"]).is_at(at(&["a", "b"])));
        for other in [&["a"][..], &["b", "a"], &["a", "c"], &["ab", ""], &["a", "b", ""]] {
            assert!(!at(other).is_at(at(&["a", "b"])), "{other:?}");
        }
        assert!(Cursor::of_id("2").is_at(at(&["a", "b"])));
        for nowhere in ["", "x", "-1", "2-", "2-xyz", "99999999999999999999999", "1-0-0-0"] {
            let cursor = Cursor::of_id(nowhere);
            assert!(!(0..3).any(|n| cursor.is_at(at(&["a", "b"][..n.min(2)]))), "{nowhere}");
        }
    }
}

//! Failures by their reasons: a dozen agents that fail alike are one thing to know.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use crate::AgentFailure;

/// Agents that failed for the same reason.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
#[non_exhaustive]
pub struct FailureGroup {
    /// Why the first one failed, as the provider says it.
    pub reason: String,
    /// The label of the first one.
    pub label: String,
    /// The numbers of their `agent()` calls, in the order in which they failed.
    pub seqs: Vec<u32>,
}

impl FailureGroup {
    /// The group in a sentence. `shown` makes of its label, then of its reason, what the reader is to see.
    ///
    /// ```
    /// use fanfold_types::{AgentFailure, group_failures};
    /// let failure = |seq| AgentFailure::new(seq, "check", "exit status 1: not signed in");
    /// let groups = group_failures(&[failure(3), failure(5)]);
    /// let sentence = groups[0].sentence(|text| text.to_uppercase());
    /// assert_eq!(sentence, "2 agents failed: EXIT STATUS 1: NOT SIGNED IN (first: #3 CHECK)");
    /// ```
    pub fn sentence(&self, mut shown: impl FnMut(&str) -> String) -> String {
        let seq = self.seqs.first().copied().unwrap_or_default();
        let first = match self.label.trim() {
            "" => format!("#{seq}"),
            label => format!("#{seq} {}", shown(label)),
        };
        let why = match self.reason.trim() {
            "" => String::new(),
            reason => format!(": {}", shown(reason)),
        };
        match self.seqs.len() {
            1 => format!("{first} failed{why}"),
            count => format!("{count} agents failed{why} (first: {first})"),
        }
    }
}

/// The failures by their reasons: the reason that most agents have first, of equally many the one that was told
/// first.
///
/// Reasons are the same if their texts are, but for the number of an agent in them (`agent 12`), which the engine puts
/// there itself. Other numbers count: exit status 1 is not exit status 2.
pub fn group_failures(failures: &[AgentFailure]) -> Vec<FailureGroup> {
    let mut groups: Vec<FailureGroup> = Vec::new();
    let mut by_reason = BTreeMap::<Cow<'_, str>, usize>::new();
    for AgentFailure { seq, label, reason, .. } in failures {
        let index = *by_reason.entry(without_agents(reason.trim())).or_insert(groups.len());
        match groups.get_mut(index) {
            Some(group) => group.seqs.push(*seq),
            None => groups.push(FailureGroup {
                reason: reason.to_string(),
                label: label.to_string(),
                seqs: Vec::from([*seq]),
            }),
        }
    }
    groups.sort_by_key(|group| core::cmp::Reverse(group.seqs.len()));
    groups
}

/// The text without the numbers of agents.
fn without_agents(text: &str) -> Cow<'_, str> {
    const AGENT: &str = "agent ";
    let mut shorter = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(AGENT) {
        let (before, after) = rest.split_at(at + AGENT.len());
        shorter.push_str(before);
        rest = after.trim_start_matches(|c: char| c.is_ascii_digit());
    }
    if shorter.is_empty() {
        return Cow::Borrowed(text);
    }
    shorter.push_str(rest);
    Cow::Owned(shorter)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn grouped(reasons: &[&str]) -> Vec<Vec<u32>> {
        let failures: Vec<_> = (1..)
            .zip(reasons)
            .map(|(seq, reason)| AgentFailure::new(seq, format!("l{seq}"), *reason))
            .collect();
        group_failures(&failures).into_iter().map(|group| group.seqs).collect()
    }

    #[test]
    fn reasons_are_the_same_but_for_the_numbers_of_agents() {
        let cases: &[(&[&str], &[&[u32]])] = &[
            (&[], &[]),
            (&["a"], &[&[1]]),
            (&["a", "a", "a"], &[&[1, 2, 3]]),
            (&["a", "b", "a"], &[&[1, 3], &[2]]),
            // The largest group is first, then the one that was told first.
            (&["a", "b", "c", "c"], &[&[3, 4], &[1], &[2]]),
            (&["a\n", " a", "a"], &[&[1, 2, 3]]),
            (&["exit status 1", "exit status 2"], &[&[1], &[2]]),
            (&["since agent 3 found: x", "since agent 14 found: x"], &[&[1, 2]]),
            (&["since agent 3 found: x", "since agent 3 found: y"], &[&[1], &[2]]),
            (&["agent 1", "agent 22"], &[&[1, 2]]),
            (&["agent x1", "agent x2"], &[&[1], &[2]]),
            (&["issue #12 is closed", "issue #13 is closed"], &[&[1], &[2]]),
            (&["", ""], &[&[1, 2]]),
            (&["A", "a"], &[&[1], &[2]]),
        ];
        for (reasons, expected) in cases {
            assert_eq!(grouped(reasons), *expected, "{reasons:?}");
        }
    }

    #[test]
    fn a_group_is_a_sentence() {
        let cases = [
            ("why", "label", 1, "#7 label failed: why"),
            ("why", "label", 3, "3 agents failed: why (first: #7 label)"),
            ("why\n", " ", 1, "#7 failed: why"),
            (" ", "label", 2, "2 agents failed (first: #7 label)"),
            ("", "", 1, "#7 failed"),
        ];
        for (reason, label, count, expected) in cases {
            let group = FailureGroup {
                reason: reason.into(),
                label: label.into(),
                seqs: core::iter::repeat_n(7, count).collect(),
            };
            assert_eq!(group.sentence(|text| text.into()), expected);
        }
    }
}

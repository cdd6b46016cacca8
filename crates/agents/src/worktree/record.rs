//! What is known of a worktree, and what its folder, its branch and the files beside it are called.

use fanfold::AgentRequest;
use serde::{Deserialize, Serialize};

use super::config::Baseline;

/// Longest part of a name that comes from a label, in characters.
const SLUG_CHARS: usize = 24;

/// What is known of a worktree. Its place and its branch follow from its name, so that whoever can write a record
/// cannot point it at anything else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) stage: Stage,
    /// The process that made it, by the name of its lock.
    pub(super) host: String,
    pub(super) base: String,
    pub(super) run_id: String,
    pub(super) seq: u32,
    pub(super) label: String,
    /// The process group of the agent at work in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<i32>,
    /// Whether its branch is beside a branch `fanfold`, which leaves no room for others below it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) beside: bool,
    /// What its files are compared by. Older records have none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) baseline: Option<Baseline>,
}

/// How far a worktree is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) enum Stage {
    /// It is being made. No agent was in it yet.
    Making,
    /// An agent was or is in it.
    Ready,
    /// It held no changes and is being removed.
    Removing,
}

/// The branches that could be in the way of a new one.
#[derive(Debug, Default)]
pub(super) struct Branches(Vec<String>);

impl Branches {
    /// What `for-each-ref` is asked for, without regard to case: where files have none, branches have none either.
    pub(super) const PATTERNS: [&str; 3] =
        ["refs/heads/fanfold", "refs/heads/fanfold-*", "refs/heads/fanfold/**"];

    /// Those with these full names.
    pub(super) fn new(references: Vec<String>) -> Self {
        let names = references.iter().filter_map(|reference| reference.strip_prefix("refs/heads/"));
        Self(names.map(str::to_ascii_lowercase).collect())
    }

    pub(super) fn has(&self, branch: &str) -> bool {
        self.0.iter().any(|name| name.eq_ignore_ascii_case(branch))
    }

    pub(super) fn has_below(&self, branch: &str) -> bool {
        let below = format!("{branch}/").to_ascii_lowercase();
        self.0.iter().any(|name| name.starts_with(&below))
    }
}

impl Record {
    /// The same worktree, at another stage.
    pub(super) fn at(&self, stage: Stage) -> Self {
        Self { stage, ..self.clone() }
    }

    pub(super) fn branch(&self) -> String {
        let separator = if self.beside { '-' } else { '/' };
        format!("fanfold{separator}{}", self.name)
    }
}

/// What a child's worktree and branch are called: the run, the call and what people call it.
pub(super) fn name(request: &AgentRequest) -> String {
    let run: String = request.run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let run = if run.is_empty() { "run".to_owned() } else { run.to_ascii_lowercase() };
    let words = request.label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(SLUG_CHARS);
    let slug = slug.trim_end_matches('-');
    let dash = if slug.is_empty() { "" } else { "-" };
    format!("{run}-{}{dash}{slug}", request.seq)
}

/// The file with the record of a worktree.
pub(super) fn record_of(name: &str) -> String {
    format!("{name}.json")
}

/// The file with the index of a worktree when it was filled.
pub(super) fn index_of(name: &str) -> String {
    format!("{name}.index")
}

/// What a worktree's folder is called while it is deleted.
pub(super) fn gone(record: &Record) -> String {
    format!("{}.gone", record.name)
}

/// Whether a name is one of those that [`name`] makes: no path, no option, no other branch.
pub(super) fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Whether a name is one of those that [`Folder::enter`] gives: `host-<process>-<count>`.
pub(super) fn is_host(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix("host-").and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, count)| number(process) && number(count))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_fit_for_paths_and_branches_whatever_the_label() {
        for (label, expected) in [
            ("Fix the parser", "run-1-fix-the-parser"),
            ("../../etc", "run-1-etc"),
            ("--force", "run-1-force"),
            ("日本語", "run-1"),
            ("", "run-1"),
            ("a.lock", "run-1-a-lock"),
            ("one two three four five six seven", "run-1-one-two-three-four-five"),
        ] {
            let mut request = AgentRequest::new("p");
            request.label = label.into();
            assert_eq!(name(&request), expected);
            assert!(is_name(expected));
        }
        let mut request = AgentRequest::new("p");
        (request.run_id, request.seq) = ("0f8fad5b-d9cb-469f-a165-70867728950e".into(), 12);
        assert_eq!(name(&request), "0f8fad5b-12-p");
    }
}

//! What a worktree holds.
//!
//! Whether a worktree is removed is decided by its files, and by its commits. The files are compared with the commit
//! that is checked out and with what was written when the worktree was filled ([`View`]); the index, the settings and
//! the attributes that an agent may have changed have no say in it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use fanfold::Worktree;

use super::WorktreeError;
use super::folder::blocking;
use super::git::{Git, GitError, path};
use super::record::Record;
use super::repository::Repository;
use super::view::Difference;

/// Most commits that are reported.
const MAX_COMMITS: usize = 100;

/// Most names that are listed.
const MAX_NAMES: usize = 3;

/// What is in a worktree's own directory while something is under way, and what that is.
const UNDER_WAY: [(&str, &str); 7] = [
    ("MERGE_HEAD", "a merge"),
    ("rebase-merge", "a rebase"),
    ("rebase-apply", "a rebase"),
    ("CHERRY_PICK_HEAD", "a cherry-pick"),
    ("REVERT_HEAD", "a revert"),
    ("sequencer", "a series of picks or reverts"),
    ("BISECT_LOG", "a bisection"),
];

/// What a worktree holds.
pub(super) struct Changes {
    /// What its base does not have; none if there is nothing.
    pub(super) worktree: Option<Worktree>,
    /// Whether commits are all that its base does not have, and other branches or tags have them too.
    pub(super) elsewhere: bool,
}

/// The commits that are known from a worktree.
struct Commits {
    /// Where its branch, its head, and their histories are or were, and what is marked for this worktree alone.
    tips: Vec<String>,
    /// Those that its base does not have, the oldest first; the last [`MAX_COMMITS`] of them.
    added: Vec<String>,
    /// When it was made, in seconds since 1970.
    since: u64,
    /// The branches that were checked out in it.
    visited: BTreeSet<String>,
}

/// Looks at a worktree.
pub(super) async fn changes(repository: &Repository, record: &Record) -> Result<Changes, WorktreeError> {
    let unclear = |why: &str| WorktreeError::Unclear(why.to_owned());
    let place = repository.folder.worktree(record);
    let admin = repository.admin(record).await?;
    let admin = admin.ok_or_else(|| unclear("git does not know it any more"))?;
    if !leads_to(&place, &admin).await? {
        return Err(unclear("its .git does not lead to the repository; another one may be in it"));
    }
    let git = repository.git_of(record, &admin);
    let head = git.lines(&["rev-parse", "--verify", "--quiet", "HEAD^{commit}"]).await;
    let head = head.map_err(|_| unclear("no commit is checked out in it"))?.concat();
    let commits = commits(repository, record, Some(&admin)).await?;
    let difference = repository.view(record).await?.difference(&head).await?;
    let staged =
        ["diff-index", "--cached", "--raw", "--no-renames", "--ignore-submodules=none", "-z", "HEAD"];
    let staged = !git.ask(&staged).await?.is_empty();
    let uncommitted = staged || !difference.is_empty();

    let mut notes = under_way(&admin).await?;
    notes.extend(hidden(&git, &difference).await?);
    let submodules = difference.submodules.iter().map(|name| name.display().to_string());
    notes.extend(listed("files of submodules in", &submodules.collect::<Vec<_>>()));
    notes.extend(stashes(repository, &commits).await?);
    let nothing_else = !uncommitted && notes.is_empty();
    if nothing_else && commits.added.is_empty() {
        return Ok(Changes { worktree: None, elsewhere: true });
    }
    let elsewhere = nothing_else && repository.are_elsewhere(record, &commits.tips).await?;
    notes.extend(astray(repository, record, &commits, &head).await?);
    let mut worktree = report(repository, record, (!notes.is_empty()).then(|| notes.join("; ")));
    // An agent may have made a branch of its own; a detached head has none.
    if let Ok(branch) = git.lines(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await {
        worktree.branch = branch.concat();
    }
    (worktree.commits, worktree.uncommitted) = (commits.added, uncommitted);
    Ok(Changes { worktree: Some(worktree), elsewhere })
}

/// Looks at what is left of a worktree whose folder was deleted by another hand.
pub(super) async fn without_folder(
    repository: &Repository,
    record: &Record,
) -> Result<Changes, WorktreeError> {
    let admin = repository.admin(record).await?;
    let commits = commits(repository, record, admin.as_deref()).await?;
    let elsewhere = repository.are_elsewhere(record, &commits.tips).await?;
    let mut worktree = report(repository, record, Some("its folder is gone".to_owned()));
    worktree.commits = commits.added;
    Ok(Changes { worktree: (!worktree.commits.is_empty()).then_some(worktree), elsewhere })
}

/// Says what is under way in a worktree, whether it is locked, and whether its own directory holds more than that of
/// others.
async fn under_way(admin: &Path) -> Result<Vec<String>, WorktreeError> {
    let admin = admin.to_owned();
    blocking(move || {
        let there = |name: &str| admin.join(name).exists();
        let under_way = UNDER_WAY.iter().find(|(name, _)| there(name));
        let mut notes: Vec<_> =
            under_way.map(|(_, what)| format!("{what} is under way")).into_iter().collect();
        if there("locked") {
            notes.push("it is locked".to_owned());
        }
        if fs::read_dir(admin.join("modules")).is_ok_and(|mut all| all.next().is_some()) {
            notes.push("the repositories of its submodules are in it".to_owned());
        }
        Ok(notes)
    })
    .await
}

/// Whether `.git` in a worktree leads to the directory that git keeps for it.
async fn leads_to(place: &Path, admin: &Path) -> Result<bool, WorktreeError> {
    let (place, admin) = (place.to_owned(), admin.to_owned());
    blocking(move || {
        let link = place.join(".git");
        let is_file = fs::symlink_metadata(&link).is_ok_and(|found| found.is_file());
        let text = if is_file { fs::read(&link).unwrap_or_default() } else { Vec::new() };
        let target = text.strip_prefix(b"gitdir: ").map(|target| path(target.trim_ascii_end()));
        let found = target.and_then(|target| fs::canonicalize(place.join(target)).ok());
        Ok(found.is_some() && found == fs::canonicalize(&admin).ok())
    })
    .await
}

/// The commits that a worktree's branch and head have or had.
async fn commits(
    repository: &Repository,
    record: &Record,
    admin: Option<&Path>,
) -> Result<Commits, WorktreeError> {
    let (mut tips, mut since, mut visited) = (Vec::new(), 0, BTreeSet::from([record.branch()]));
    if let Some(tip) = repository.tip(record).await? {
        tips.push(tip);
        let own = format!("refs/heads/{}", record.branch());
        tips.extend(repository.git.lines(&["rev-list", "--walk-reflogs", &own, "--"]).await?);
    }
    if let Some(admin) = admin {
        let git = repository.git_of(record, admin);
        let history = history(&git, "HEAD").await?;
        match history.last() {
            Some(first) if first.commit == record.base => since = first.moment,
            _ => {
                let why = "the history of its head was shortened, so it may have commits that no branch has";
                return Err(WorktreeError::Unclear(why.to_owned()));
            }
        }
        for entry in history {
            let way =
                entry.what.strip_prefix("checkout: moving from ").and_then(|way| way.split_once(" to "));
            visited.extend(way.into_iter().flat_map(|(from, to)| [from.to_owned(), to.to_owned()]));
            tips.push(entry.commit);
        }
        let alone =
            ["for-each-ref", "--format=%(objectname)", "refs/bisect", "refs/rewritten", "refs/worktree"];
        tips.extend(git.lines(&alone).await?);
    }
    tips.sort();
    tips.dedup();
    let count = format!("--max-count={MAX_COMMITS}");
    let added =
        repository.rev_list(&["--topo-order", "--reverse", &count], &tips, &[&record.base], &[]).await?;
    Ok(Commits { tips, added, since, visited })
}

/// What happened to a reference.
struct Entry {
    /// Where it was then.
    commit: String,
    /// When, in seconds since 1970.
    moment: u64,
    /// The parent of the commit, if it has one.
    parent: String,
    /// What was done.
    what: String,
}

/// What happened to a reference, the last first.
async fn history(git: &Git, reference: &str) -> Result<Vec<Entry>, GitError> {
    let format = "--format=%H%x00%gd%x00%P%x00%gs";
    let log = ["log", "--walk-reflogs", "--no-patch", "--no-mailmap", "--date=unix", format, reference, "--"];
    let entry = |line: String| {
        let mut parts = line.split('\0').map(str::to_owned);
        let (commit, selector) = (parts.next()?, parts.next()?);
        let (parents, what) = (parts.next()?, parts.next()?);
        // Such as `HEAD@{1700000000}`.
        let moment = selector.rsplit_once("@{")?.1.trim_end_matches('}').parse().ok()?;
        let parent = parents.split(' ').next().unwrap_or_default().to_owned();
        Some(Entry { commit, moment, parent, what })
    };
    Ok(git.lines(&log).await?.into_iter().filter_map(entry).collect())
}

/// Says which files `git status` does not show in a worktree although they have changed.
async fn hidden(git: &Git, difference: &Difference) -> Result<Option<String>, GitError> {
    if difference.changed.is_empty() {
        return Ok(None);
    }
    let entries = git.ask(&["ls-files", "-v", "-z"]).await?;
    let hidden = entries.split(|byte| *byte == 0).filter_map(|entry| match entry {
        [tag, b' ', name @ ..] if tag.is_ascii_lowercase() || *tag == b'S' => Some(path(name)),
        _ => None,
    });
    let hidden: BTreeSet<_> = hidden.collect();
    let changed = difference.changed.iter().filter(|name| hidden.contains(*name));
    let names: Vec<_> = changed.map(|name| name.display().to_string()).collect();
    Ok(listed("changes that `git status` does not show, in", &names))
}

/// Says which stashes were made in a worktree. They are kept by the repository, not by the worktree.
async fn stashes(repository: &Repository, commits: &Commits) -> Result<Option<String>, GitError> {
    if repository.git.lines(&["for-each-ref", "refs/stash"]).await?.is_empty() {
        return Ok(None);
    }
    let stashes = history(&repository.git, "refs/stash").await?.into_iter().enumerate();
    let made_here = |entry: &Entry| {
        // Such as `WIP on main: c0ffee a commit` or `On main: a message`.
        let rest = entry.what.strip_prefix("WIP on ").or_else(|| entry.what.strip_prefix("On "));
        let branch = rest.and_then(|rest| Some(rest.split_once(':')?.0));
        let here = branch.is_some_and(|branch| branch == "(no branch)" || commits.visited.contains(branch));
        here && entry.moment >= commits.since && commits.tips.binary_search(&entry.parent).is_ok()
    };
    let names =
        stashes.filter(|(_, entry)| made_here(entry)).map(|(number, _)| format!("stash@{{{number}}}"));
    Ok(listed("stashed changes in", &names.collect::<Vec<_>>()))
}

/// Says which commits are where one would not look for them: on no branch, or on others than the one that is checked
/// out and the worktree's own.
async fn astray(
    repository: &Repository,
    record: &Record,
    commits: &Commits,
    head: &str,
) -> Result<Vec<String>, GitError> {
    let count = format!("--max-count={MAX_COMMITS}");
    let base = &*record.base;
    let anywhere = ["--branches", "--tags", "--remotes"];
    let nowhere = repository.rev_list(&[&count], &commits.tips, &[base], &anywhere).await?;
    let own = repository.tip(record).await?;
    let known: Vec<_> = [base, head].into_iter().chain(own.as_deref()).collect();
    let other = repository.rev_list(&[&count], &commits.tips, &known, &[]).await?;
    let mut notes = Vec::new();
    let short = |commit: &String| commit.chars().take(12).collect::<String>();
    notes.extend(listed("commits on no branch:", &nowhere.iter().map(short).collect::<Vec<_>>()));
    if let Some(commit) = other.iter().find(|commit| !nowhere.contains(commit)) {
        let contains = format!("--contains={commit}");
        let names = [
            "for-each-ref",
            "--format=%(refname:short)",
            &contains,
            "refs/heads",
            "refs/tags",
            "refs/remotes",
        ];
        notes.extend(listed("commits on", &repository.git.lines(&names).await?));
    }
    Ok(notes)
}

/// A few names in a row, after what they are; nothing if there are none.
fn listed(what: &str, names: &[String]) -> Option<String> {
    let more = names.len().saturating_sub(MAX_NAMES);
    let names = names.get(..MAX_NAMES).unwrap_or(names).join(", ");
    match (names.is_empty(), more) {
        (true, _) => None,
        (false, 0) => Some(format!("{what} {names}")),
        (false, more) => Some(format!("{what} {names} and {more} more")),
    }
}

/// What is known of a worktree without a look at it.
pub(super) fn report(repository: &Repository, record: &Record, problem: Option<String>) -> Worktree {
    let mut worktree = Worktree::default();
    worktree.seq = record.seq;
    worktree.label.clone_from(&record.label);
    worktree.path = repository.folder.worktree(record).display().to_string();
    worktree.branch = record.branch();
    worktree.base.clone_from(&record.base);
    worktree.problem = problem;
    worktree
}

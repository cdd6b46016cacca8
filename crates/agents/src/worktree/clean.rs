//! Tidying up after processes that are gone.

use std::path::{Path, PathBuf};

use fanfold::Worktree;

use super::folder::{Record, Stage, blocking};
use super::git::{Git, GitError};
use super::place::{STATUS, changes, report};
use super::{Repository, WorktreeError};

/// A worktree that [`clean`] looked at.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cleaned {
    /// Its folder.
    pub path: PathBuf,
    /// What its child was called.
    pub label: String,
    /// What was done.
    pub outcome: Outcome,
}

/// What [`clean`] did with a worktree.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// It held no changes, or other branches have its commits: it was removed, with its branch.
    Removed,
    /// It holds changes and was left alone.
    Kept(Box<Worktree>),
    /// Its run goes on, or its agent does although the run is gone, or some other process is in it. It was left
    /// alone.
    InUse,
    /// It could not be tidied, and why.
    Failed(String),
}

/// Removes what [`Worktrees`](super::Worktrees) of processes that are gone have left in the repository of a folder,
/// and says what was kept.
///
/// A worktree is removed if it holds no changes, or none but commits that other branches or tags have too. What is
/// not in the folder of the worktrees, or has no record there, is not looked at.
///
/// # Errors
/// What keeps it from looking at all, as for [`Worktrees::open`](super::Worktrees::open).
pub async fn clean(directory: &Path) -> Result<Vec<Cleaned>, WorktreeError> {
    let repository = Repository::of(directory).await?;
    let folder = repository.folder.clone();
    let found = blocking(move || {
        let Some(folder) = folder.checked()? else { return Ok(None) };
        // The records first: whoever wrote one was at work before.
        let records = folder.records()?;
        let hosts = folder.hosts()?;
        folder.sweep(&hosts)?;
        Ok(Some((records, hosts, working_directories())))
    })
    .await?;
    let Some((records, hosts, occupied)) = found else { return Ok(Vec::new()) };
    let mut all = Vec::new();
    for record in records {
        all.push(match record {
            Ok(record) => {
                let path = repository.folder.worktree(&record);
                let in_it = || occupied.iter().any(|directory| directory.starts_with(&path));
                let outcome = if hosts.is_alive(&record) || works(&record) || in_it() {
                    Outcome::InUse
                } else {
                    tidy(&repository, &record)
                        .await
                        .unwrap_or_else(|error| Outcome::Failed(error.to_string()))
                };
                Cleaned { path, label: record.label, outcome }
            }
            Err(error) => {
                let path = match &error {
                    WorktreeError::Folder { path, .. } => path.clone(),
                    _ => PathBuf::new(),
                };
                Cleaned { path, label: String::new(), outcome: Outcome::Failed(error.to_string()) }
            }
        });
    }
    Ok(all)
}

async fn tidy(repository: &Repository, record: &Record) -> Result<Outcome, WorktreeError> {
    let path = repository.folder.worktree(record);
    if record.stage == Stage::Making
        || (record.stage == Stage::Removing && is_half_removed(&repository.git, &path).await?)
    {
        repository.sweep_away(record).await?;
        return Ok(Outcome::Removed);
    }
    if !path.exists() {
        return without_folder(repository, record).await;
    }
    let changes = match changes(repository, record).await {
        Ok(changes) => changes,
        Err(error @ GitError::Refused { .. }) => {
            return Ok(kept(report(repository, record, Some(error.to_string()))));
        }
        Err(error) => return Err(error.into()),
    };
    if let Some(worktree) = changes.worktree {
        let git = repository.git.in_worktree(&path);
        let elsewhere =
            !worktree.uncommitted && is_elsewhere(&git, record, &["HEAD"], changes.tip.as_deref()).await?;
        if !elsewhere {
            return Ok(kept(worktree));
        }
    }
    repository.remove(record, changes.tip.as_deref()).await?;
    Ok(Outcome::Removed)
}

/// Whether git has begun to remove a worktree, which it does to none with changes.
async fn is_half_removed(git: &Git, path: &Path) -> Result<bool, GitError> {
    if !path.join(".git").exists() {
        return Ok(true);
    }
    let status = git.in_worktree(path).run(&STATUS).await?;
    // Tracked files, unchanged but for being gone.
    let mut entries = status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty());
    Ok(entries.all(|entry| entry.starts_with(b"1 .D ")))
}

/// Somebody has deleted the folder. Its branch may hold commits.
async fn without_folder(repository: &Repository, record: &Record) -> Result<Outcome, WorktreeError> {
    let tip = repository.tip(record).await?;
    let tip = tip.as_deref();
    let safe =
        tip.is_none_or(|tip| tip == record.base) || is_elsewhere(&repository.git, record, &[], tip).await?;
    if safe {
        repository.remove(record, tip).await?;
        return Ok(Outcome::Removed);
    }
    let gone = "its folder is gone, its branch is not; delete that, and clean again".to_owned();
    Ok(kept(report(repository, record, Some(gone))))
}

/// Whether other references than the worktree's branch have these commits.
async fn is_elsewhere(
    git: &Git,
    record: &Record,
    heads: &[&str],
    tip: Option<&str>,
) -> Result<bool, GitError> {
    let own = format!("refs/heads/{}", record.branch());
    for commit in heads.iter().copied().chain(tip) {
        let contains = format!("--contains={commit}");
        let references =
            ["for-each-ref", "--format=%(refname)", &contains, "refs/heads", "refs/tags", "refs/remotes"];
        if git.lines(&references).await?.iter().all(|reference| *reference == own) {
            return Ok(false);
        }
    }
    Ok(true)
}

fn kept(worktree: Worktree) -> Outcome {
    Outcome::Kept(Box::new(worktree))
}

/// The folders that processes are in, where the system tells: on Linux. An agent that has just started may not have
/// been noted, and people may have gone there to look.
fn working_directories() -> Vec<PathBuf> {
    let Ok(processes) = std::fs::read_dir("/proc") else { return Vec::new() };
    processes.filter_map(|process| std::fs::read_link(process.ok()?.path().join("cwd")).ok()).collect()
}

/// Whether the agent that was last in a worktree is there still.
#[cfg(unix)]
fn works(record: &Record) -> bool {
    use rustix::io::Errno;
    use rustix::process::{Pid, test_kill_process_group};
    let group = record.group.and_then(Pid::from_raw);
    group.is_some_and(|group| !matches!(test_kill_process_group(group), Err(Errno::SRCH)))
}

#[cfg(not(unix))]
fn works(_record: &Record) -> bool {
    false
}

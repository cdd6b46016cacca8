//! Tidying up after processes that are gone.

use std::io;
use std::path::{Path, PathBuf};

use fanfold::Worktree;

use super::WorktreeError;
use super::folder::{Folder, Site, blocking};
use super::look::{Changes, changes, report, without_folder};
use super::record::{Record, Stage};
use super::repository::{Location, Repository};

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
    let (location, ..) = Location::find(directory).await?;
    let root = location.root.clone();
    let Some(folder) = blocking(move || Folder::find(&root)).await? else { return Ok(Vec::new()) };
    let repository = location.repository(folder.clone(), None);
    let guard = folder.guard().await?;
    let found = blocking(move || {
        // The records first: whoever wrote one was at work before.
        let records = folder.records()?;
        let hosts = folder.hosts(guard)?;
        folder.sweep(&hosts)?;
        Ok((records, hosts, working_directories()))
    })
    .await?;
    let (records, hosts, occupied) = found;
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

/// Whether the folder of a worktree that was being made holds something that the making cannot have put there.
async fn is_foreign(repository: &Repository, record: &Record) -> Result<bool, WorktreeError> {
    if repository.admin(record).await?.is_some() {
        return Ok(false);
    }
    let path = repository.folder.worktree(record);
    blocking(move || Ok(std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some()))).await
}

async fn tidy(repository: &Repository, record: &Record) -> Result<Outcome, WorktreeError> {
    let site = {
        let (folder, record) = (repository.folder.clone(), record.clone());
        blocking(move || folder.site(&record)).await?
    };
    let looked = match (site, record.stage) {
        (Site::Other, _) => {
            let path = repository.folder.worktree(record);
            let error = io::Error::other("it is a link or a file; remove it");
            return Err(WorktreeError::Folder { path, error });
        }
        (Site::Folder, Stage::Making) if is_foreign(repository, record).await? => {
            let why = "git does not know it, and there is something in it".to_owned();
            return Ok(Outcome::Kept(Box::new(report(repository, record, Some(why)))));
        }
        // No agent was in it, or its removal had begun, which it does for none with changes.
        (_, Stage::Making) | (Site::Gone, Stage::Removing) => {
            repository.remove_all(record).await?;
            return Ok(Outcome::Removed);
        }
        (Site::Gone, Stage::Ready) => without_folder(repository, record).await,
        (Site::Folder, _) => changes(repository, record).await,
    };
    match looked {
        Ok(Changes { worktree: Some(worktree), elsewhere: false }) => Ok(Outcome::Kept(Box::new(worktree))),
        Ok(_) => {
            repository.remove(record).await?;
            Ok(Outcome::Removed)
        }
        Err(error) => Ok(Outcome::Kept(Box::new(report(repository, record, Some(error.to_string()))))),
    }
}

/// The folders that processes are in, where the system tells: on Linux. An agent that has just started may not have
/// been noted, and people may have gone there to look.
pub(super) fn working_directories() -> Vec<PathBuf> {
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

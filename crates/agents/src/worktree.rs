//! Worktrees of their own for children that ask for `isolation: "worktree"`; the documentation is that of
//! [`Worktrees`].
//!
//! # Layout
//! - `git`: runs the `git` program
//! - `config`: what a repository's configuration says about its files
//! - `view`: a repository directory of our own, to look at files without that configuration
//! - `folder`: what is written down beside the worktrees, so that nothing of it is lost in a crash
//! - `record`: what is written down of one, and the names that follow from it
//! - `repository`: where worktrees are registered, and how one is taken away
//! - `place`: one worktree, from its making to its removal or its report
//! - `look`: what a worktree holds
//! - `clean`: tidying up after processes that are gone

mod clean;
mod config;
mod folder;
mod git;
mod look;
mod place;
mod record;
mod repository;
mod view;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use fanfold::AgentRequest;
use tokio::sync::Mutex;

pub use self::clean::{Cleaned, Outcome, clean};
use self::config::{Baseline, Config};
use self::folder::Host;
use self::git::Git;
pub use self::git::GitError;
pub(crate) use self::place::{NotMade, Place};
use self::repository::Location;
use crate::policy::Attempt;

/// Makes git worktrees for children, each with a branch of its own.
///
/// # What a child gets
/// The worktree `.fanfold/worktrees/<run>-<seq>-<label>` of the repository, with the branch `fanfold/<the same>`
/// checked out, made from the base commit: the one that was stated, or `HEAD` when this was opened. Where there is a
/// branch `fanfold`, which leaves no room for others below it, the branch is `fanfold-<the same>`. What is not
/// committed there is not in it, nor are submodules. A child works at the same place within its worktree as its host
/// does within the repository.
///
/// # What becomes of it
/// When the child has ended, whether well or badly, a worktree without changes is removed with its branch. One
/// with changes is kept and reported, see [`fanfold::Worktree`]. Changes are
/// - commits that the base does not have, be they checked out, on the worktree's branch, or left again,
/// - files that differ from the commit that is checked out or are not in it, also those that git was told not to look
///   at, and what is staged,
/// - files in submodules, stashes that were made in it, and a merge, rebase, pick or bisection that is under way.
///
/// Files that the repository ignores are none: those that `.gitignore` files name, the agent's own among them, and those that `info/exclude`
/// and `core.excludesFile` named when this was opened. Nothing that holds changes is ever removed here, nor anything
/// that cannot be told.
///
/// # Many at once, and crashes
/// Worktrees are registered and removed one at a time, and filled at the same time. All that is known of one is
/// written down before it is made. So whatever a process leaves that is killed, [`clean`] finds it.
///
/// # What git runs
/// Hooks and the file system monitor never. Filters (`filter.<driver>`), and what a partial clone fetches with, while
/// a worktree is filled, as they were configured when this was opened, and neither
/// [`without_filters`](Self::without_filters). Nothing when it is looked at what a worktree holds.
#[derive(Clone)]
pub struct Worktrees {
    shared: Arc<Shared>,
    filters: bool,
}

struct Shared {
    location: Location,
    /// Where in the repository the children work.
    prefix: PathBuf,
    base: String,
    /// The configuration, before a child could change it.
    config: Config,
    baseline: Baseline,
    /// Held while git changes which worktrees there are. Tells of this process once it has made one.
    making: Mutex<Option<Arc<Host>>>,
}

/// Why there are no worktrees.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum WorktreeError {
    /// Not within a repository.
    #[error("{} is not in the working tree of a git repository; run `git init` and commit, or work in one", .directory.display())]
    NoRepository {
        /// The folder.
        directory: PathBuf,
    },
    /// Nothing to make worktrees from.
    #[error(
        "there is no commit {revision:?} in the git repository to make worktrees from; commit something, or name another"
    )]
    NoBase {
        /// What was to be the base.
        revision: String,
    },
    /// Git would write elsewhere than in the worktree.
    #[error(
        "git takes {} for the working tree of {}; remove core.worktree from the repository's configuration, or set it \
         with `git config --worktree`",
        .top.display(), .worktree.display()
    )]
    Elsewhere {
        /// The worktree.
        worktree: PathBuf,
        /// What git takes for it.
        top: PathBuf,
    },
    /// A filter is another one than at the beginning, and is not run.
    #[error(
        "the git filter {filter:?} was given a process since the run began; remove filter.{filter}.process"
    )]
    FilterChanged {
        /// The filter's name.
        filter: String,
    },
    /// It cannot be told what a worktree holds, for this reason.
    #[error("{0}")]
    Unclear(String),
    /// Git refused.
    #[error(transparent)]
    Git(#[from] GitError),
    /// The folder of the worktrees cannot be used.
    #[error("cannot use {}: {error}", .path.display())]
    Folder {
        /// The file or folder in question.
        path: PathBuf,
        /// Why not.
        #[source]
        error: std::io::Error,
    },
}

impl Worktrees {
    /// Finds the repository of a folder and the commit that all worktrees are made from: `HEAD` unless a
    /// revision is given. Changes nothing.
    ///
    /// # Errors
    /// [`WorktreeError::NoRepository`], [`WorktreeError::NoBase`], [`WorktreeError::Git`].
    pub async fn open(directory: &Path, base: Option<&str>) -> Result<Self, WorktreeError> {
        let (location, git, prefix) = Location::find(directory).await?;
        let revision = base.unwrap_or("HEAD");
        let commit = format!("{revision}^{{commit}}");
        let base = git.lines(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
        let base = base.map_err(|_| WorktreeError::NoBase { revision: revision.to_owned() })?.concat();
        let git = Git::new(&location.common, &location.root);
        let config = Config::of(&git).await?;
        let baseline = Baseline::of(&git, &config, &location).await?;
        let shared = Shared { location, prefix, base, config, baseline, making: Mutex::new(None) };
        Ok(Self { shared: Arc::new(shared), filters: true })
    }

    /// Fills worktrees without running filters, such as those of Git LFS, and without fetching what a partial clone
    /// lacks: files are as they were committed.
    #[must_use]
    pub fn without_filters(self) -> Self {
        Self { filters: false, ..self }
    }

    /// The commit that worktrees are made from, in full.
    pub fn base(&self) -> &str {
        &self.shared.base
    }

    /// Makes a worktree for an agent, unless its attempt is stopped first; then git has `grace` to end.
    pub(crate) async fn make(
        &self,
        request: &AgentRequest,
        attempt: &Attempt,
        grace: Duration,
    ) -> Result<Place, NotMade> {
        Place::make(self, request, attempt, grace).await
    }
}

impl fmt::Debug for Worktrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { location, base, .. } = &*self.shared;
        let (root, filters) = (&location.root, self.filters);
        f.debug_struct("Worktrees")
            .field("root", root)
            .field("base", base)
            .field("filters", &filters)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn outside_a_repository_and_without_a_commit_there_are_none() {
        let folder = tempfile::tempdir().unwrap();
        let error = Worktrees::open(folder.path(), None).await.unwrap_err();
        assert!(matches!(error, WorktreeError::NoRepository { .. }), "{error}");
        let git = Git::new(&folder.path().join(".git"), folder.path());
        std::fs::create_dir(folder.path().join(".git")).unwrap();
        git.change(&["init", "--quiet"]).await.unwrap();
        let error = Worktrees::open(folder.path(), None).await.unwrap_err();
        assert!(matches!(&error, WorktreeError::NoBase { revision } if revision == "HEAD"), "{error}");
    }
}

//! Worktrees of their own for children that ask for `isolation: "worktree"`; the documentation is that of
//! [`Worktrees`].
//!
//! # Layout
//! - `git`: runs the `git` program
//! - `folder`: what is written down beside the worktrees, so that nothing of it is lost in a crash
//! - `place`: one worktree, from its making to its removal or its report
//! - `clean`: tidying up after processes that are gone

mod clean;
mod folder;
mod git;
mod place;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanfold::AgentRequest;
use tokio::sync::Mutex;

pub use self::clean::{Cleaned, Outcome, clean};
use self::folder::{Folder, Host};
use self::git::Git;
pub use self::git::GitError;
pub(crate) use self::place::Place;

/// Makes git worktrees for children, each with a branch of its own.
///
/// # What a child gets
/// The worktree `.fanfold/worktrees/<run>-<seq>-<label>` of the repository, with the branch `fanfold/<the same>`
/// checked out, made from the base commit: the one that was stated, or `HEAD` when this was opened. What is not
/// committed there is not in it. A child works at the same place within its worktree as its host does within the
/// repository.
///
/// # What becomes of it
/// When the child has ended, whether well or badly, a worktree without changes is removed with its branch. One
/// with changes is kept and reported, see [`fanfold::Worktree`]. Changes are commits that the base does not have,
/// on its branch or checked out, and files that are not committed; files that the repository ignores are none.
/// Nothing that holds changes is ever removed here.
///
/// # Many at once, and crashes
/// Worktrees are registered and removed one at a time, and filled at the same time. All that is known of one is
/// written down before it is made. So whatever a process leaves that is killed, [`clean`] finds it.
///
/// Git runs with the configuration of the repository, but without its hooks and its file system monitor: a child
/// could have written these.
#[derive(Clone)]
pub struct Worktrees {
    shared: Arc<Shared>,
}

struct Shared {
    repository: Repository,
    /// Where in the repository the children work.
    prefix: PathBuf,
    base: String,
    /// Held while git changes which worktrees there are. Tells of this process once it has made one.
    making: Mutex<Option<Arc<Host>>>,
}

/// A repository, and the folder with its worktrees.
#[derive(Clone, Debug)]
struct Repository {
    git: Git,
    folder: Folder,
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
    /// The branch of a new worktree is there already, and is somebody's.
    #[error("there is already a branch {branch:?}; delete it if it is not needed")]
    BranchExists {
        /// The branch.
        branch: String,
    },
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
        let repository = Repository::of(directory).await?;
        let revision = base.unwrap_or("HEAD");
        let commit = format!("{revision}^{{commit}}");
        let git = Git::at(directory);
        let base = git.line(&["rev-parse", "--verify", "--quiet", "--end-of-options", &commit]).await;
        let base = base.map_err(|_| WorktreeError::NoBase { revision: revision.to_owned() })?;
        let prefix = git.path(&["rev-parse", "--show-prefix"]).await?;
        let shared = Shared { repository, prefix, base, making: Mutex::new(None) };
        Ok(Self { shared: Arc::new(shared) })
    }

    /// The commit that worktrees are made from, in full.
    pub fn base(&self) -> &str {
        &self.shared.base
    }

    /// Makes a worktree for a child.
    pub(crate) async fn make(&self, request: &AgentRequest) -> Result<Place, WorktreeError> {
        Place::make(self.shared.clone(), request).await
    }
}

impl Repository {
    async fn of(directory: &Path) -> Result<Self, WorktreeError> {
        let root = match Git::at(directory).path(&["rev-parse", "--show-toplevel"]).await {
            Ok(root) if root.is_absolute() => root,
            Err(error @ GitError::NotInstalled(_)) => return Err(error.into()),
            _ => return Err(WorktreeError::NoRepository { directory: directory.to_owned() }),
        };
        let root = main_worktree(directory).await.unwrap_or(root);
        let folder = Folder::of(&root);
        Ok(Self { git: Git::at(&root), folder })
    }
}

/// The working tree that all worktrees of a repository belong to, if there is one. Those of an agent that runs Fanfold
/// itself must not lie in its own worktree, which is removed when it seems unchanged.
async fn main_worktree(directory: &Path) -> Option<PathBuf> {
    let common = ["rev-parse", "--path-format=absolute", "--git-common-dir"];
    let common = Git::at(directory).path(&common).await.ok()?;
    let root = common.parent().filter(|_| common.ends_with(".git"))?;
    Some(root.to_owned())
}

impl fmt::Debug for Worktrees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shared { repository, base, .. } = &*self.shared;
        f.debug_struct("Worktrees").field("repository", repository).field("base", base).finish()
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
        Git::at(folder.path()).run(&["init", "--quiet"]).await.unwrap();
        let error = Worktrees::open(folder.path(), None).await.unwrap_err();
        assert!(matches!(&error, WorktreeError::NoBase { revision } if revision == "HEAD"), "{error}");
    }
}

//! A repository with worktrees: where they are registered, and how one is taken away.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::WorktreeError;
use super::config::{Baseline, Config};
use super::folder::{Folder, blocking};
use super::git::{Git, GitError, discover, path};
use super::record::{Record, Stage};
use super::view::View;

/// Where a repository is.
#[derive(Clone, Debug)]
pub(super) struct Location {
    /// The folder that `.fanfold` is in.
    pub(super) root: PathBuf,
    /// The directory that all its worktrees share.
    pub(super) common: PathBuf,
}

/// A repository, and the folder with its worktrees.
#[derive(Clone, Debug)]
pub(super) struct Repository {
    pub(super) location: Location,
    pub(super) folder: Folder,
    /// In the shared directory. The working tree that it is given is the folder of the worktrees: nothing is to be
    /// written in any, and least of all in the user's.
    pub(super) git: Git,
}

impl Location {
    /// That of the repository that a folder is in, with git there and the way from its working tree to the folder.
    pub(super) async fn find(directory: &Path) -> Result<(Self, Git, PathBuf), WorktreeError> {
        let found = match discover(directory, None).await {
            Ok(found) if found.top.is_absolute() => found,
            // In the C locale.
            Err(GitError::Refused { complaint, .. })
                if !["not a git repository", "must be run in a work tree", "there is no folder"]
                    .iter()
                    .any(|known| complaint.contains(known)) =>
            {
                return Err(GitError::Refused { command: "rev-parse".to_owned(), complaint }.into());
            }
            Ok(_) | Err(GitError::Refused { .. }) => {
                return Err(WorktreeError::NoRepository { directory: directory.to_owned() });
            }
            Err(error) => return Err(error.into()),
        };
        let git = Git::new(&found.git_dir, &found.top);
        let root = main_worktree(&found.top, &found.common).await;
        Ok((Self { root, common: found.common }, git, found.prefix))
    }

    /// The repository with its folder, with git on behalf of a process with this lock.
    pub(super) fn repository(&self, folder: Folder, lock: Option<Arc<File>>) -> Repository {
        let git = Git::new(&self.common, folder.path()).holding(lock);
        Repository { location: self.clone(), folder, git }
    }
}

/// The working tree that all worktrees of a repository belong to. Those of an agent that runs Fanfold itself must not
/// lie in its own worktree, which is removed when it seems unchanged.
async fn main_worktree(top: &Path, common: &Path) -> PathBuf {
    if common.ends_with(".git")
        && let Some(root) = common.parent()
    {
        return root.to_owned();
    }
    // That of a submodule, or a bare repository. Neither says where its worktrees are.
    let mut root = top;
    while let Some(outer) = Folder::root_of(root)
        && discover(outer, None).await.is_ok_and(|found| found.common == common && found.top == outer)
    {
        root = outer;
    }
    root.to_owned()
}

impl Repository {
    /// The directory in which git keeps what belongs to a worktree alone, if it knows the worktree.
    pub(super) async fn admin(&self, record: &Record) -> Result<Option<PathBuf>, WorktreeError> {
        let (all, place) = (self.location.common.join("worktrees"), self.folder.worktree(record));
        blocking(move || {
            let canonical =
                |path: &Path| Some((fs::canonicalize(path.parent()?).ok()?, path.file_name()?.to_owned()));
            let place = canonical(&place);
            // There are none.
            let Ok(entries) = fs::read_dir(all) else { return Ok(None) };
            Ok(entries.filter_map(|entry| Some(entry.ok()?.path())).find(|admin| {
                // It holds the path of the worktree's `.git`, from here if it is relative.
                let link = fs::read(admin.join("gitdir")).unwrap_or_default();
                let link = admin.join(path(link.trim_ascii_end()));
                place.is_some() && link.ends_with(".git") && link.parent().and_then(canonical) == place
            }))
        })
        .await
    }

    /// Git in the directory of a worktree.
    pub(super) fn git_of(&self, record: &Record, admin: &Path) -> Git {
        Git::new(admin, &self.folder.worktree(record)).holding(self.git.lock())
    }

    /// A view of a worktree, with its index of when it was filled if there is one.
    pub(super) async fn view(&self, record: &Record) -> Result<View, WorktreeError> {
        let baseline = match &record.baseline {
            Some(baseline) => baseline.clone(),
            None => Baseline::of(&self.git, &Config::of(&self.git).await?, &self.location).await?,
        };
        let (folder, common, record) = (self.folder.clone(), self.location.common.clone(), record.clone());
        blocking(move || {
            let index = folder.index(&record)?;
            let view = View::new(&common, &folder.worktree(&record), &baseline, index);
            Ok(view.map_err(GitError::View)?)
        })
        .await
    }

    /// Removes a worktree that holds no changes, its branch if no commit is on that alone, and its record.
    pub(super) async fn remove(&self, record: &Record) -> Result<(), WorktreeError> {
        self.write(&record.at(Stage::Removing)).await?;
        self.remove_all(record).await
    }

    /// Removes whatever there is of a worktree that no agent has been in, or that was being removed.
    pub(super) async fn remove_all(&self, record: &Record) -> Result<(), WorktreeError> {
        let (folder, deleted) = (self.folder.clone(), record.clone());
        blocking(move || {
            // Git is given its path.
            folder.check()?;
            folder.delete(&deleted)
        })
        .await?;
        if self.admin(record).await?.is_some() {
            let path = self.folder.worktree(record);
            let force = ["worktree", "remove", "--force", "--force"].map(AsRef::as_ref);
            self.git.change(&[&force[..], &[path.as_os_str()]].concat()).await?;
        }
        if let Some(tip) = self.tip(record).await?
            && !self.is_checked_out(record).await?
            && self.are_elsewhere(record, std::slice::from_ref(&tip)).await?
        {
            let reference = format!("refs/heads/{}", record.branch());
            // Git deletes it only if it is there still.
            self.git.change(&["update-ref", "-d", &reference, &tip]).await?;
        }
        let (folder, record) = (self.folder.clone(), record.clone());
        blocking(move || folder.forget(&record)).await
    }

    pub(super) async fn write(&self, record: &Record) -> Result<(), WorktreeError> {
        let (folder, record) = (self.folder.clone(), record.clone());
        blocking(move || folder.write(&record)).await
    }

    /// Where the branch of a worktree is; none if it is gone.
    pub(super) async fn tip(&self, record: &Record) -> Result<Option<String>, GitError> {
        let reference = format!("refs/heads/{}", record.branch());
        let tips = self.git.lines(&["for-each-ref", "--format=%(objectname) %(refname)", &reference]).await?;
        // Branches below it would be listed too.
        let end = format!(" {reference}");
        Ok(tips.iter().find_map(|line| line.strip_suffix(&end)).map(str::to_owned))
    }

    /// Whether the branch of a worktree is checked out somewhere: the user may have moved the worktree, or taken its branch.
    async fn is_checked_out(&self, record: &Record) -> Result<bool, GitError> {
        let reference = format!("refs/heads/{}", record.branch());
        let places =
            self.git.lines(&["for-each-ref", "--format=%(refname) %(worktreepath)", &reference]).await?;
        // Branches below it would be listed too.
        Ok(places.iter().any(|line| {
            line.strip_prefix(&reference)
                .and_then(|rest| rest.strip_prefix(' '))
                .is_some_and(|at| !at.is_empty())
        }))
    }

    /// The commits that can be reached from these, but from none of the others and none of the references that
    /// options such as `--branches` name.
    pub(super) async fn rev_list(
        &self,
        options: &[&str],
        commits: &[String],
        others: &[&str],
        references: &[&str],
    ) -> Result<Vec<String>, GitError> {
        if commits.is_empty() {
            return Ok(Vec::new());
        }
        let arguments = [&["rev-list"], options, &["--stdin", "--not"], others, references].concat();
        let printed = self.git.ask_with(&arguments, commits.join("\n").as_bytes()).await?;
        Ok(super::git::lines(&printed))
    }

    /// Whether the base of a worktree or other references than its branch have all these commits.
    pub(super) async fn are_elsewhere(&self, record: &Record, commits: &[String]) -> Result<bool, GitError> {
        let own = format!("--exclude={}", record.branch());
        let others = [&*own, "--branches", "--tags", "--remotes"];
        Ok(self.rev_list(&["--max-count=1"], commits, &[&record.base], &others).await?.is_empty())
    }
}

//! One worktree, from its making to its removal or its report.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanfold::{AgentRequest, Worktree};

use super::folder::{Record, Stage, blocking};
use super::git::GitError;
use super::{Repository, Shared, WorktreeError};

/// Most commits that are reported.
const MAX_COMMITS: usize = 100;

/// A child's worktree. One that is dropped stays where it is, for [`clean`](super::clean).
pub(crate) struct Place {
    shared: Arc<Shared>,
    /// With git on behalf of this process.
    repository: Repository,
    record: Record,
}

/// Waits until no other process changes which worktrees there are.
async fn turn(repository: &Repository) -> Result<std::fs::File, WorktreeError> {
    let folder = repository.folder.clone();
    blocking(move || folder.guard()).await
}

impl Place {
    /// Makes one. Not to be dropped half-way without need: what is there by then is left for
    /// [`clean`](super::clean).
    pub(super) async fn make(shared: Arc<Shared>, request: &AgentRequest) -> Result<Self, WorktreeError> {
        let Repository { git, folder } = &shared.repository;
        let mut making = shared.making.lock().await;
        let host = match &*making {
            Some(host) => host.clone(),
            None => {
                let folder = folder.clone();
                making.insert(Arc::new(blocking(move || folder.enter()).await?)).clone()
            }
        };
        let git = git.holding(host.lock());
        let repository = Repository { git: git.clone(), folder: folder.clone() };
        let record = {
            let (folder, base, request) = (folder.clone(), shared.base.clone(), request.clone());
            blocking(move || folder.register(&host, &base, &request)).await?
        };
        let path = folder.worktree(&record);
        let branch = record.branch();
        let guard = turn(&repository).await?;
        if repository.tip(&record).await?.is_some() {
            let folder = folder.clone();
            blocking(move || folder.forget(&record)).await?;
            return Err(WorktreeError::BranchExists { branch });
        }
        let add = [
            "worktree".as_ref(),
            "add".as_ref(),
            // Filling it takes long in a large repository, and needs no turn.
            "--no-checkout".as_ref(),
            "--no-track".as_ref(),
            "--quiet".as_ref(),
            "-b".as_ref(),
            branch.as_ref(),
            path.as_os_str(),
            shared.base.as_ref(),
        ];
        let added = git.run(&add).await;
        drop((guard, making));
        let place = Self { shared: shared.clone(), repository, record };
        let filled = match added {
            Ok(_) => {
                git.in_worktree(&path).run(&["reset", "--hard", "--quiet", "--no-recurse-submodules"]).await
            }
            Err(error) => Err(error),
        };
        match filled {
            Ok(_) => place.ready().await,
            Err(error) => {
                // What it could not make it may not be able to remove; then it is found later.
                let _making = shared.making.lock().await;
                let _guard = turn(&place.repository).await;
                let _ = place.repository.sweep_away(&place.record).await;
                Err(error.into())
            }
        }
    }

    async fn ready(mut self) -> Result<Self, WorktreeError> {
        let directory = self.directory();
        // A folder that is not in the base.
        blocking(move || match std::fs::create_dir_all(&directory) {
            Ok(()) => Ok(()),
            Err(error) => Err(WorktreeError::Folder { path: directory, error }),
        })
        .await?;
        self.note(Stage::Ready, None).await?;
        Ok(self)
    }

    /// Where the child works.
    pub(crate) fn directory(&self) -> PathBuf {
        self.path().join(&self.shared.prefix)
    }

    /// What the child is told of it, as environment variables.
    pub(crate) fn variables(&self) -> [(&'static str, OsString); 4] {
        [
            ("FANFOLD_WORKTREE", self.path().into()),
            ("FANFOLD_BRANCH", self.record.branch().into()),
            ("FANFOLD_BASE", self.shared.base.clone().into()),
            // Without its worktree's own .git a child must not take the repository around it for its own.
            ("GIT_CEILING_DIRECTORIES", self.path().parent().unwrap_or(Path::new("")).into()),
        ]
    }

    /// Notes the process group of the agent that works here: it may outlive this process.
    pub(crate) async fn occupied_by(&mut self, group: Option<u32>) -> Result<(), WorktreeError> {
        self.note(Stage::Ready, group.and_then(|group| group.try_into().ok())).await
    }

    /// The child has ended, and all its processes: removes the worktree if nothing changed in it, else says what
    /// did.
    pub(crate) async fn leave(mut self) -> Option<Worktree> {
        let left = match changes(&self.repository, &self.record).await {
            Ok(Changes { worktree: None, tip }) => {
                self.record.group = None;
                let removed = {
                    let _making = self.shared.making.lock().await;
                    match turn(&self.repository).await {
                        Ok(_guard) => self.repository.remove(&self.record, tip.as_deref()).await,
                        Err(error) => Err(error),
                    }
                };
                match removed {
                    Ok(()) => return None,
                    Err(error) => report(&self.repository, &self.record, Some(error.to_string())),
                }
            }
            Ok(Changes { worktree: Some(worktree), .. }) => worktree,
            Err(error) => report(&self.repository, &self.record, Some(error.to_string())),
        };
        // The record says already what matters: that it may hold changes.
        let _ = self.note(Stage::Ready, None).await;
        Some(left)
    }

    async fn note(&mut self, stage: Stage, group: Option<i32>) -> Result<(), WorktreeError> {
        (self.record.stage, self.record.group) = (stage, group);
        self.repository.write(&self.record).await
    }

    fn path(&self) -> PathBuf {
        self.repository.folder.worktree(&self.record)
    }
}

impl Repository {
    /// Removes a worktree that holds no changes, its branch if that is at `tip` or, without one, at the base, and
    /// its record. Git looks once more whether there are changes, and refuses if so.
    pub(super) async fn remove(&self, record: &Record, tip: Option<&str>) -> Result<(), WorktreeError> {
        self.write(&record.at(Stage::Removing)).await?;
        let path = self.folder.worktree(record);
        let remove = ["worktree".as_ref(), "remove".as_ref(), path.as_os_str()];
        if let Err(error) = self.git.run(&remove).await {
            self.write(record).await?;
            return Err(error.into());
        }
        self.forget(record, tip).await
    }

    /// Removes whatever there is of a worktree that no agent has been in, or that was being removed.
    pub(super) async fn sweep_away(&self, record: &Record) -> Result<(), WorktreeError> {
        let path = self.folder.worktree(record);
        let force = ["--force".as_ref(), "--force".as_ref()];
        let remove = ["worktree".as_ref(), "remove".as_ref(), force[0], force[1], path.as_os_str()];
        if self.git.run(&remove).await.is_err() {
            // Half of it may be there, and git may not know of it.
            let folder = path.clone();
            blocking(move || match std::fs::remove_dir_all(&folder) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    Err(WorktreeError::Folder { path: folder, error })
                }
                _ => Ok(()),
            })
            .await?;
            if self.knows(&path).await? {
                self.git.run(&remove).await?;
            }
        }
        self.forget(record, None).await
    }

    /// Deletes the branch of a worktree that is gone, then its record.
    async fn forget(&self, record: &Record, tip: Option<&str>) -> Result<(), WorktreeError> {
        if let Some(found) = self.tip(record).await? {
            let tip = tip.unwrap_or(&record.base);
            let reference = format!("refs/heads/{}", record.branch());
            if found == *tip {
                // Git deletes it only if it is there still.
                self.git.run(&["update-ref", "-d", &reference, tip]).await?;
            }
        }
        let (folder, record) = (self.folder.clone(), record.clone());
        blocking(move || folder.forget(&record)).await
    }

    async fn write(&self, record: &Record) -> Result<(), WorktreeError> {
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

    /// Whether git has a worktree at this place.
    async fn knows(&self, path: &Path) -> Result<bool, GitError> {
        let list = self.git.run(&["worktree", "list", "--porcelain", "-z"]).await?;
        let line = format!("worktree {}", path.display());
        Ok(list.split(|byte| *byte == 0).any(|attribute| attribute == line.as_bytes()))
    }
}

/// Lists what is not committed.
pub(super) const STATUS: [&str; 4] = ["status", "--porcelain=v2", "-z", "--ignore-submodules=none"];

/// What a worktree holds.
pub(super) struct Changes {
    /// What its base does not have; none if there is nothing.
    pub(super) worktree: Option<Worktree>,
    /// Where its branch is; none if it is gone.
    pub(super) tip: Option<String>,
}

/// Looks at a worktree.
pub(super) async fn changes(repository: &Repository, record: &Record) -> Result<Changes, GitError> {
    let git = repository.git.in_worktree(&repository.folder.worktree(record));
    let tip = repository.tip(record).await?;
    let status = git.run(&STATUS).await?;
    let count = format!("--max-count={MAX_COMMITS}");
    let mut list = vec!["rev-list", "--reverse", &count, "HEAD"];
    list.extend(tip.as_deref());
    list.extend(["--not", &record.base]);
    let commits = git.lines(&list).await?;
    if status.is_empty() && commits.is_empty() {
        return Ok(Changes { worktree: None, tip });
    }
    let mut worktree = report(repository, record, None);
    // A child may have made a branch of its own; a detached head has none.
    if let Ok(branch) = git.line(&["symbolic-ref", "--quiet", "--short", "HEAD"]).await {
        worktree.branch = branch;
    }
    (worktree.commits, worktree.uncommitted) = (commits, !status.is_empty());
    Ok(Changes { worktree: Some(worktree), tip })
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

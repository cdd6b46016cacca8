//! One worktree, from its making to its removal or its report.

use std::ffi::{OsStr, OsString};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use fanfold::{AgentRequest, Worktree};
use tokio::sync::MutexGuard;
use tokio::time::{sleep, timeout};

use super::clean::working_directories;
use super::config::Config;
use super::folder::{Folder, Host, blocking};
use super::git::{Git, GitError, discover};
use super::look::{Changes, changes, report};
use super::record::{Branches, Record, Stage};
use super::repository::Repository;
use super::{Shared, WorktreeError, Worktrees};
use crate::policy::Attempt;

/// The longest look at a worktree: an answer waits for it.
const LONGEST_LOOK: Duration = Duration::from_secs(120);
/// How often, and how long apart, it is looked whether processes that were ended have left a worktree.
const DEPARTURES: u32 = 20;
const DEPARTURE: Duration = Duration::from_millis(50);

/// How far the times of files may be behind the clock.
const CLOCK_TICK: Duration = Duration::from_millis(20);

/// An agent's worktree. One that is dropped stays where it is, for [`clean`](super::clean).
pub(crate) struct Place {
    shared: Arc<Shared>,
    /// With git on behalf of this process.
    repository: Repository,
    record: Record,
}

/// Why there is no worktree for an agent.
pub(crate) enum NotMade {
    /// The attempt was stopped.
    Stopped,
    /// It cannot be made.
    Failed(WorktreeError),
}

/// The turn of an agent to change which worktrees there are.
struct Turn<'a> {
    host: Arc<Host>,
    /// Among the agents of this process.
    _making: MutexGuard<'a, Option<Arc<Host>>>,
    /// Among processes.
    _guard: File,
}

impl Turn<'_> {
    /// Waits until neither this process nor another one changes which worktrees there are.
    async fn take(shared: &Shared) -> Result<Turn<'_>, WorktreeError> {
        let mut making = shared.making.lock().await;
        let folder = match &*making {
            Some(host) => host.folder().clone(),
            None => {
                let root = shared.location.root.clone();
                blocking(move || Folder::make(&root)).await?
            }
        };
        let guard = folder.guard().await?;
        if let Some(host) = &*making {
            return Ok(Turn { host: host.clone(), _making: making, _guard: guard });
        }
        let (host, guard) = blocking(move || Ok((Arc::new(folder.enter(&guard)?), guard))).await?;
        *making = Some(host.clone());
        Ok(Turn { host, _making: making, _guard: guard })
    }
}

impl Place {
    /// Makes one, unless the attempt is stopped first. Git is then told to end, with all that it started, and has `grace` to do
    /// so; what there is by then is removed.
    pub(super) async fn make(
        worktrees: &Worktrees,
        request: &AgentRequest,
        attempt: &Attempt,
        grace: Duration,
    ) -> Result<Self, NotMade> {
        let shared = worktrees.shared.clone();
        let turn = unless_stopped(attempt, Turn::take(&shared)).await??;
        let repository = shared.location.repository(turn.host.folder().clone(), Some(turn.host.lock()));
        let mut place = Self::add(shared.clone(), repository, request, turn.host.clone()).await?;
        drop(turn);
        match place.fill(worktrees.filters, attempt, grace).await {
            Ok(()) => Ok(place),
            Err(why) => {
                // What is not removed now is found later.
                if let Ok(Ok(_turn)) = timeout(grace, Turn::take(&shared)).await {
                    let _ = place.repository.remove_all(&place.record).await;
                }
                Err(why)
            }
        }
    }

    /// Adds a worktree without files. Only with a [`Turn`].
    async fn add(
        shared: Arc<Shared>,
        repository: Repository,
        request: &AgentRequest,
        host: Arc<Host>,
    ) -> Result<Self, WorktreeError> {
        let patterns = ["for-each-ref", "--ignore-case", "--format=%(refname)"];
        let branches = [&patterns[..], &Branches::PATTERNS].concat();
        let branches = Branches::new(repository.git.lines(&branches).await?);
        let (folder, request, with) = (repository.folder.clone(), request.clone(), shared.clone());
        let register = move || {
            // A link could have taken its place since.
            folder.check()?;
            folder.register(&host, &with.base, &with.baseline, &branches, &request)
        };
        let record = blocking(register).await?;
        let (path, branch) = (repository.folder.worktree(&record), record.branch());
        // Filling it takes long in a large repository, and needs no turn.
        let add = ["worktree", "add", "--no-checkout", "--no-track", "--quiet", "-b", &branch];
        let place = [path.as_os_str(), shared.base.as_ref()];
        let added = repository.git.change(&[&add.map(OsStr::new)[..], &place].concat()).await;
        if let Err(error) = added {
            // What is not removed now is found later.
            let _ = repository.remove_all(&record).await;
            return Err(error.into());
        }
        Ok(Self { shared, repository, record })
    }

    /// Fills a worktree, and notes with what.
    async fn fill(&mut self, filters: bool, attempt: &Attempt, grace: Duration) -> Result<(), NotMade> {
        let shared = self.shared.clone();
        let admin = self.repository.admin(&self.record).await?;
        let admin = admin.ok_or_else(|| WorktreeError::Unclear("git does not know it".to_owned()))?;
        let git = self.repository.git_of(&self.record, &admin);
        let now = Config::of(&git).await?;
        self.lead_to_itself(&git, &admin, &now).await?;
        if shared.config.is_sparse()
            && let Some(baseline) = &mut self.record.baseline
        {
            let patterns = admin.join("info").join("sparse-checkout");
            baseline.sparse = blocking(move || Ok(fs::read_to_string(patterns).ok())).await?;
        }
        let fill = ["read-tree", "--reset", "-u", "--no-recurse-submodules", &*shared.base];
        let index = admin.join("index");
        if filters {
            let settings = shared.config.filters(&now);
            let git = git.with(settings.map_err(|filter| WorktreeError::FilterChanged { filter })?);
            let as_before = shared.config.fetches_like(&Config::of(&self.repository.git).await?);
            let git = if as_before { git.fetching() } else { git };
            let filled = git.fill(&fill, attempt.stopped(), grace).await?;
            filled.map_err(|()| NotMade::Stopped)?;
            if shared.config.has_filters() {
                unless_stopped(attempt, next_second()).await?;
            }
        } else {
            let view = self.repository.view(&self.record).await?;
            let git = view.git().clone().variable("GIT_INDEX_FILE", &index).holding(git.lock());
            let filled = git.fill(&fill, attempt.stopped(), grace).await?;
            filled.map_err(|()| NotMade::Stopped)?;
        }
        let (folder, record, prefix) =
            (self.repository.folder.clone(), self.record.clone(), shared.prefix.clone());
        let finish = move || {
            folder.keep_index(&record, &index)?;
            // A folder that is not in the base.
            folder.make_within(&record, &prefix)
        };
        blocking(finish).await?;
        Ok(self.note(Stage::Ready, None).await?)
    }

    /// Makes sure that the agent's git takes a worktree for what it is. With settings of its own for each worktree, one
    /// that all share can lead to the files of another.
    async fn lead_to_itself(&self, git: &Git, admin: &Path, now: &Config) -> Result<(), WorktreeError> {
        let (path, ceiling) = (self.path(), self.repository.folder.path());
        let found = async || discover(&path, Some(ceiling)).await.map(|found| found.top);
        if same(&path, found().await.ok()).await? {
            return Ok(());
        }
        if now.is_per_worktree() {
            let settings = admin.join("config.worktree");
            for (name, value) in [("core.worktree", path.as_os_str()), ("core.bare", "false".as_ref())] {
                let set = ["config".as_ref(), "--file".as_ref(), settings.as_os_str(), name.as_ref(), value];
                git.change(&set).await?;
            }
        }
        let found = found().await?;
        if same(&path, Some(found.clone())).await? {
            return Ok(());
        }
        Err(WorktreeError::Elsewhere { worktree: path, top: found })
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
        let shared = self.shared.clone();
        let look = async {
            let Changes { worktree, .. } = changes(&self.repository, &self.record).await?;
            // Others may change which worktrees there are: that they do not yet is a part of the look.
            let turn = if worktree.is_none() { Some(Turn::take(&shared).await?) } else { None };
            Ok((worktree, turn))
        };
        let looked = timeout(LONGEST_LOOK, look).await.unwrap_or_else(|_| {
            let why = format!("a look at it took longer than {} s", LONGEST_LOOK.as_secs());
            Err(WorktreeError::Unclear(why))
        });
        let problem = |error: WorktreeError| report(&self.repository, &self.record, Some(error.to_string()));
        let left = match looked {
            Ok((None, _turn)) if self.is_occupied().await => {
                problem(WorktreeError::Unclear("a process that its agent started is still in it".to_owned()))
            }
            Ok((None, _turn)) => {
                let removed = self.repository.remove(&self.record).await;
                // Its record says that it holds no changes, and to go on there.
                return removed.err().map(problem);
            }
            Ok((Some(worktree), _)) => worktree,
            Err(error) => problem(error),
        };
        // The record says already what matters: that it may hold changes.
        let _ = self.note(Stage::Ready, None).await;
        Some(left)
    }

    /// Whether a process is in the worktree that may still write there: one that its agent has left behind. Those that
    /// were ended with the agent get a moment to be gone.
    async fn is_occupied(&self) -> bool {
        for _ in 0..DEPARTURES {
            let path = self.path();
            let occupied = blocking(move || {
                Ok(working_directories().iter().any(|directory| directory.starts_with(&path)))
            });
            if !matches!(occupied.await, Ok(true)) {
                return false;
            }
            sleep(DEPARTURE).await;
        }
        true
    }

    async fn note(&mut self, stage: Stage, group: Option<i32>) -> Result<(), WorktreeError> {
        (self.record.stage, self.record.group) = (stage, group);
        self.repository.write(&self.record).await
    }

    fn path(&self) -> PathBuf {
        self.repository.folder.worktree(&self.record)
    }
}

/// What the work gives, unless the attempt is stopped first.
async fn unless_stopped<T>(attempt: &Attempt, work: impl Future<Output = T>) -> Result<T, NotMade> {
    attempt.unless_stopped(work).await.map_err(|_| NotMade::Stopped)
}

/// Waits until what is written has another time, in whole seconds, than what was written before. Git tells files by that,
/// and into those that a filter has made it cannot look without running the filter.
async fn next_second() {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let rest = Duration::from_secs(1) - Duration::from_nanos(now.subsec_nanos().into());
    tokio::time::sleep(rest + CLOCK_TICK).await;
}

/// Whether a path that git found is this one.
async fn same(path: &Path, found: Option<PathBuf>) -> Result<bool, WorktreeError> {
    let path = path.to_owned();
    blocking(move || {
        let found = found.and_then(|found| fs::canonicalize(found).ok());
        Ok(found.is_some() && found == fs::canonicalize(path).ok())
    })
    .await
}

impl From<WorktreeError> for NotMade {
    fn from(error: WorktreeError) -> Self {
        Self::Failed(error)
    }
}

impl From<GitError> for NotMade {
    fn from(error: GitError) -> Self {
        Self::Failed(error.into())
    }
}

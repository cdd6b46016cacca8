//! The folder with the worktrees, and what is written down there: a record beside each worktree, and a locked
//! file for each process that makes them.
//!
//! A lock ends with its process, however that ends, so it tells who is gone.
//!
//! Files are reached through a handle of the folder, by names that this module makes or checks, and the handle leads to
//! nothing outside of the folder whatever links there are. So nothing else can be written or deleted here.
//! Everything here blocks but [`Folder::guard`].

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use fanfold::AgentRequest;

use super::WorktreeError;
use super::config::Baseline;
use super::record::{Branches, Record, Stage, gone, index_of, is_host, is_name, name, record_of};

/// How long to wait between two looks at whether another process holds the guard.
const GUARD_PAUSE: Duration = Duration::from_millis(10);

/// The folders on the way, from the repository.
const STEPS: [&str; 2] = [".fanfold", "worktrees"];

#[derive(Clone, Debug)]
pub(super) struct Folder {
    path: PathBuf,
    /// The same, opened.
    dir: Arc<Dir>,
}

/// What is at a worktree's place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Site {
    /// Nothing.
    Gone,
    /// A folder.
    Folder,
    /// Something that was not made here: a link or a file.
    Other,
}

/// This process, among those that make worktrees, until it is dropped.
pub(super) struct Host {
    name: String,
    folder: Folder,
    lock: String,
    /// Locked.
    file: Arc<File>,
}

/// Processes that are at work.
pub(super) struct Hosts {
    alive: Vec<String>,
    /// The locks of those that are gone, held so that nobody else tidies them up.
    gone: Vec<(PathBuf, File)>,
    folder: Folder,
    /// Held while they are looked at.
    _guard: File,
}

impl Folder {
    /// That of a repository, if it is there.
    pub(super) fn find(root: &Path) -> Result<Option<Self>, WorktreeError> {
        for step in steps(root) {
            match fs::symlink_metadata(&step) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                _ => continue,
            }
        }
        Self::open(root).map(Some)
    }

    /// That of a repository, which is made unless it is there.
    pub(super) fn make(root: &Path) -> Result<Self, WorktreeError> {
        for step in steps(root) {
            match fs::create_dir(&step) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(fault(&step)(error));
                }
                _ => check(root, &step)?,
            }
        }
        let folder = Self::open(root)?;
        // The repository around it need not know of it.
        match folder.create(".gitignore").and_then(|mut file| file.write_all(b"*\n")) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(folder.fault(".gitignore".as_ref())(error))
            }
            _ => Ok(folder),
        }
    }

    fn open(root: &Path) -> Result<Self, WorktreeError> {
        for step in steps(root) {
            check(root, &step)?;
        }
        let path = root.join(STEPS[0]).join(STEPS[1]);
        let dir = Dir::open_ambient_dir(root, ambient_authority())
            .and_then(|root| root.open_dir(STEPS[0]))
            .and_then(|first| first.open_dir(STEPS[1]));
        let dir = Arc::new(dir.map_err(fault(&path))?);
        Ok(Self { path, dir })
    }

    /// Checks that its path leads to it still, for programs that are given paths.
    pub(super) fn check(&self) -> Result<(), WorktreeError> {
        let root = self.path.ancestors().nth(STEPS.len()).unwrap_or(&self.path);
        steps(root).iter().try_for_each(|step| check(root, step))
    }

    /// The repository whose folder of worktrees a folder lies in, if it does.
    pub(super) fn root_of(worktree: &Path) -> Option<&Path> {
        let folder = worktree.parent()?;
        folder
            .ends_with(Path::new(STEPS[0]).join(STEPS[1]))
            .then(|| folder.ancestors().nth(STEPS.len()))
            .flatten()
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    pub(super) fn worktree(&self, record: &Record) -> PathBuf {
        self.path.join(&record.name)
    }

    /// What is at the place of a worktree.
    pub(super) fn site(&self, record: &Record) -> Result<Site, WorktreeError> {
        self.look(&record.name)
    }

    fn look(&self, name: &str) -> Result<Site, WorktreeError> {
        match self.dir.symlink_metadata(name) {
            Ok(found) if found.is_dir() => Ok(Site::Folder),
            Ok(_) => Ok(Site::Other),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Site::Gone),
            Err(error) => Err(self.fault(name.as_ref())(error)),
        }
    }

    /// Creates a folder within a worktree, unless it is there.
    pub(super) fn make_within(&self, record: &Record, prefix: &Path) -> Result<(), WorktreeError> {
        let path = Path::new(&record.name).join(prefix);
        let made = self.dir.open_dir(&record.name).and_then(|worktree| {
            worktree.create_dir_all(prefix)?;
            // Links lead nowhere else.
            worktree.open_dir(Path::new(".").join(prefix)).map(drop)
        });
        made.map_err(self.fault(&path))
    }

    /// Deletes a worktree's folder, or what is left of it. From the moment on in which that begins it has another name, so
    /// that it can be told from one that may hold changes.
    pub(super) fn delete(&self, record: &Record) -> Result<(), WorktreeError> {
        let (name, gone) = (&record.name, gone(record));
        let delete_rest = || {
            let there = self.is_folder(&gone)?;
            if there { self.dir.remove_dir_all(&gone).map_err(self.fault(gone.as_ref())) } else { Ok(()) }
        };
        delete_rest()?;
        if self.is_folder(name)? {
            self.dir.rename(name, &self.dir, &gone).map_err(self.fault(name.as_ref()))?;
        }
        delete_rest()
    }

    /// Whether a folder is there.
    ///
    /// # Errors
    /// Something else is.
    fn is_folder(&self, name: &str) -> Result<bool, WorktreeError> {
        match self.look(name)? {
            Site::Gone => Ok(false),
            Site::Folder => Ok(true),
            Site::Other => Err(self.fault(name.as_ref())(io::Error::other("it is no folder; remove it"))),
        }
    }

    /// Keeps the index of a worktree that was just filled, before an agent is in it.
    pub(super) fn keep_index(&self, record: &Record, index: &Path) -> Result<(), WorktreeError> {
        let name = index_of(&record.name);
        let second = |time: SystemTime| time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        let keep = || {
            let (mut from, mut kept) = (File::open(index)?, self.create(&name)?);
            let filled = from.metadata()?.modified()?;
            io::copy(&mut from, &mut kept)?;
            // What an agent writes is not older than this file. In a later second than that in which git wrote, git can
            // tell the two; else it looks into the files that are not older than their index.
            if second(kept.metadata()?.modified()?) <= second(filled) {
                kept.set_modified(filled)?;
            }
            Ok(())
        };
        keep().map_err(self.fault(name.as_ref()))
    }

    /// The index of a worktree when it was filled. Older records have none.
    pub(super) fn index(&self, record: &Record) -> Result<Option<File>, WorktreeError> {
        let name = index_of(&record.name);
        match self.dir.open(&name) {
            Ok(file) => Ok(Some(file.into_std())),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(self.fault(name.as_ref())(error)),
        }
    }

    /// Enters this process, while the guard is held.
    pub(super) fn enter(&self, _guard: &File) -> Result<Host, WorktreeError> {
        let mut count = 0;
        loop {
            let name = format!("host-{}-{count}", std::process::id());
            let lock = format!("{name}.lock");
            match self.create(&lock) {
                // Left by another process that had our number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => count += 1,
                Err(error) => return Err(self.fault(lock.as_ref())(error)),
                Ok(file) => {
                    file.lock().map_err(self.fault(lock.as_ref()))?;
                    return Ok(Host { name, lock, folder: self.clone(), file: Arc::new(file) });
                }
            }
        }
    }

    /// Looks who is at work. No process enters as long as the guard is held.
    pub(super) fn hosts(&self, guard: File) -> Result<Hosts, WorktreeError> {
        let mut hosts = Hosts { alive: Vec::new(), gone: Vec::new(), folder: self.clone(), _guard: guard };
        for path in self.files("lock")? {
            let Some(name) = stem(&path).filter(|name| is_host(name)).map(str::to_owned) else { continue };
            let Ok(file) = self.dir.open(&path) else { continue };
            let file = file.into_std();
            match file.try_lock() {
                Ok(()) => hosts.gone.push((path, file)),
                Err(TryLockError::WouldBlock) => hosts.alive.push(name),
                Err(error) => return Err(self.fault(&path)(error.into())),
            }
        }
        Ok(hosts)
    }

    /// Writes down a worktree that is to be made. Its name is one that no other has, and for whose branch there is room
    /// among these.
    pub(super) fn register(
        &self,
        host: &Host,
        base: &str,
        baseline: &Baseline,
        branches: &Branches,
        request: &AgentRequest,
    ) -> Result<Record, WorktreeError> {
        let mut record = Record {
            name: String::new(),
            stage: Stage::Making,
            host: host.name.clone(),
            base: base.to_owned(),
            run_id: request.run_id.to_string(),
            seq: request.seq,
            label: request.label.to_string(),
            group: None,
            beside: branches.has("fanfold"),
            baseline: Some(baseline.clone()),
        };
        let name = name(request);
        for count in 1_u32.. {
            record.name = if count == 1 { name.clone() } else { format!("{name}-{count}") };
            let names = [record.name.clone(), record_of(&record.name), index_of(&record.name), gone(&record)];
            let there = |name: &String| Ok::<_, WorktreeError>(self.look(name)? != Site::Gone);
            let taken = names.iter().map(there).collect::<Result<Vec<_>, _>>()?.contains(&true);
            if !taken && !branches.has(&record.branch()) && !branches.has_below(&record.branch()) {
                break;
            }
        }
        self.write(&record)?;
        Ok(record)
    }

    /// Writes a record, whole or not at all.
    pub(super) fn write(&self, record: &Record) -> Result<(), WorktreeError> {
        let (name, new) = (record_of(&record.name), format!("{}.{}.tmp", record.host, record.name));
        let text =
            serde_json::to_string_pretty(record).map_err(|error| self.fault(name.as_ref())(error.into()))?;
        // Not through a link that has its name.
        let _ = self.dir.remove_file(&new);
        let written = self.create(&new).and_then(|mut file| file.write_all((text + "\n").as_bytes()));
        written.map_err(self.fault(new.as_ref()))?;
        self.dir.rename(&new, &self.dir, &name).map_err(self.fault(name.as_ref()))
    }

    /// Forgets a worktree that is gone.
    pub(super) fn forget(&self, record: &Record) -> Result<(), WorktreeError> {
        // The record last: without it the rest would not be found.
        for name in [index_of(&record.name), record_of(&record.name)] {
            match self.dir.remove_file(&name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(self.fault(name.as_ref())(error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// All records, and what is wrong with those that cannot be read.
    pub(super) fn records(&self) -> Result<Vec<Result<Record, WorktreeError>>, WorktreeError> {
        let read = |path: &PathBuf| {
            let text = self.dir.read_to_string(path)?;
            let ours = |record: &Record| {
                let named = Path::new(&record_of(&record.name)) == path;
                // It is handed to git.
                let commit =
                    !record.base.is_empty() && record.base.bytes().all(|byte| byte.is_ascii_hexdigit());
                is_name(&record.name) && is_host(&record.host) && named && commit
            };
            let record = serde_json::from_str(&text).ok().filter(ours);
            record.ok_or_else(|| io::Error::other("it is not the record of a worktree; remove it"))
        };
        let records = self.files("json")?;
        Ok(records.iter().map(|path| read(path).map_err(self.fault(path))).collect())
    }

    /// Removes what records that were never finished have left.
    pub(super) fn sweep(&self, hosts: &Hosts) -> Result<(), WorktreeError> {
        for path in self.files("tmp")? {
            let Some((host, name)) = stem(&path).and_then(|stem| stem.split_once('.')) else { continue };
            if is_host(host) && is_name(name) && !hosts.alive.iter().any(|alive| alive == host) {
                // It may have been finished meanwhile.
                let _ = self.dir.remove_file(&path);
            }
        }
        Ok(())
    }

    /// The lock that is held for as long as it takes to see or change who is at work, or which worktrees git has: git
    /// fails at one that another process has half made.
    pub(super) async fn guard(&self) -> Result<File, WorktreeError> {
        let folder = self.clone();
        let file = blocking(move || {
            if folder.dir.symlink_metadata("guard").is_ok_and(|file| file.is_symlink()) {
                return Err(folder.fault("guard".as_ref())(io::Error::other(
                    "it is a symbolic link; remove it",
                )));
            }
            let options = OpenOptions::new().create(true).append(true).clone();
            Ok(folder.dir.open_with("guard", &options).map_err(folder.fault("guard".as_ref()))?.into_std())
        })
        .await?;
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(file),
                // A thread that waits for the lock could not be told to stop.
                Err(TryLockError::WouldBlock) => tokio::time::sleep(GUARD_PAUSE).await,
                Err(error) => return Err(self.fault("guard".as_ref())(error.into())),
            }
        }
    }

    /// Creates a file that is not there.
    fn create(&self, name: &str) -> io::Result<File> {
        let options = OpenOptions::new().write(true).create_new(true).clone();
        Ok(self.dir.open_with(name, &options)?.into_std())
    }

    /// The names of the files with this extension, in order.
    fn files(&self, extension: &str) -> Result<Vec<PathBuf>, WorktreeError> {
        let list = || {
            let mut files = Vec::new();
            for entry in self.dir.entries()? {
                let entry = entry?;
                let name = PathBuf::from(entry.file_name());
                // Not a link to one.
                let is_file = entry.file_type()?.is_file();
                if is_file && name.extension().is_some_and(|found| found == extension) {
                    files.push(name);
                }
            }
            files.sort();
            Ok(files)
        };
        list().map_err(fault(&self.path))
    }

    fn fault(&self, name: &Path) -> impl FnOnce(io::Error) -> WorktreeError + use<> {
        fault(&self.path.join(name))
    }
}

/// The folders on the way to that of the worktrees.
fn steps(root: &Path) -> [PathBuf; 2] {
    let first = root.join(STEPS[0]);
    let second = first.join(STEPS[1]);
    [first, second]
}

/// Checks that a step is a folder in the repository. Through one that leads elsewhere git could write anything.
fn check(root: &Path, step: &Path) -> Result<(), WorktreeError> {
    let canonical = |path: &Path| fs::canonicalize(path).map_err(fault(step));
    let expected = step.strip_prefix(root).map(|rest| Ok(canonical(root)?.join(rest)));
    if expected.is_ok_and(|expected: Result<_, WorktreeError>| expected.ok() == canonical(step).ok()) {
        return Ok(());
    }
    canonical(step)?;
    Err(fault(step)(io::Error::other("it is a symbolic link; remove it")))
}

fn fault(path: &Path) -> impl FnOnce(io::Error) -> WorktreeError + use<> {
    let path = path.to_owned();
    move |error| WorktreeError::Folder { path, error }
}

impl Hosts {
    /// Whether the process that made a worktree is at work.
    pub(super) fn is_alive(&self, record: &Record) -> bool {
        self.alive.contains(&record.host)
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for (path, _) in &self.gone {
            // The next one that looks finds it again.
            let _ = self.folder.dir.remove_file(path);
        }
    }
}

impl Host {
    /// What is locked as long as this process is at work.
    pub(super) fn lock(&self) -> Arc<File> {
        self.file.clone()
    }

    pub(super) fn folder(&self) -> &Folder {
        &self.folder
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The lock goes with the file; see `Hosts` for what is left.
        let _ = self.folder.dir.remove_file(&self.lock);
    }
}

/// Does work that blocks, off the executor.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorktreeError> {
    let lost = |error| Err(WorktreeError::Folder { path: PathBuf::new(), error: io::Error::other(error) });
    tokio::task::spawn_blocking(work).await.unwrap_or_else(lost)
}

/// The name of a file without its extension.
fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
}

#[cfg(test)]
mod tests;

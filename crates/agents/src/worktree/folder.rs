//! The folder with the worktrees, and what is written down there: a record beside each worktree, and a locked
//! file for each process that makes them.
//!
//! A lock ends with its process, however that ends, so it tells who is gone. Everything here blocks.

use std::fs::{self, File, TryLockError};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanfold::AgentRequest;
use serde::{Deserialize, Serialize};

use super::WorktreeError;

/// Longest part of a name that comes from a label, in characters.
const SLUG_CHARS: usize = 24;

#[derive(Clone, Debug)]
pub(super) struct Folder {
    root: PathBuf,
    path: PathBuf,
}

/// What is known of a worktree. Its place and its branch follow from its name, so that whoever can write a record
/// cannot point it at anything else.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Record {
    pub(super) name: String,
    pub(super) stage: Stage,
    /// The process that made it, by the name of its lock.
    host: String,
    pub(super) base: String,
    pub(super) run_id: String,
    pub(super) seq: u32,
    pub(super) label: String,
    /// The process group of the agent at work in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) group: Option<i32>,
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

/// This process, among those that make worktrees, until it is dropped.
pub(super) struct Host {
    name: String,
    lock: PathBuf,
    /// Locked.
    file: Arc<File>,
}

/// Processes that are at work.
pub(super) struct Hosts {
    alive: Vec<String>,
    /// The locks of those that are gone, held so that nobody else tidies them up.
    gone: Vec<(PathBuf, File)>,
    /// Held while they are looked at.
    _guard: File,
}

impl Folder {
    /// That of a repository.
    pub(super) fn of(root: &Path) -> Self {
        Self { root: root.to_owned(), path: root.join(".fanfold").join("worktrees") }
    }

    /// The folders on the way, from the repository.
    fn steps() -> [PathBuf; 2] {
        let first = PathBuf::from(".fanfold");
        let second = first.join("worktrees");
        [first, second]
    }

    /// The folder, if it is there.
    pub(super) fn checked(&self) -> Result<Option<&Self>, WorktreeError> {
        for step in Self::steps() {
            match fs::symlink_metadata(self.root.join(&step)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
                _ => self.check(&step)?,
            }
        }
        Ok(Some(self))
    }

    /// Checks that a step is a folder, and in the repository. One that leads elsewhere, as symbolic links in a
    /// repository may, could have us write and delete anything.
    fn check(&self, step: &Path) -> Result<(), WorktreeError> {
        let path = self.root.join(step);
        let found = fs::canonicalize(&path).and_then(|found| Ok((found, fs::canonicalize(&self.root)?)));
        let (found, root) = found.map_err(self.fault(&path))?;
        if found != root.join(step) {
            return Err(self.fault(&path)(io::Error::other("it is a symbolic link; remove it")));
        }
        Ok(())
    }

    pub(super) fn worktree(&self, record: &Record) -> PathBuf {
        self.path.join(&record.name)
    }

    /// Enters this process.
    pub(super) fn enter(&self) -> Result<Host, WorktreeError> {
        for step in Self::steps() {
            let path = self.root.join(&step);
            match fs::create_dir(&path) {
                Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                    return Err(self.fault(&path)(error));
                }
                _ => self.check(&step)?,
            }
        }
        // The repository around it need not know of it.
        let ignore = self.path.join(".gitignore");
        match File::create_new(&ignore).and_then(|mut file| file.write_all(b"*\n")) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                return Err(self.fault(&ignore)(error));
            }
            _ => {}
        }
        let _guard = self.guard()?;
        let mut count = 0;
        loop {
            let name = format!("host-{}-{count}", std::process::id());
            let lock = self.path.join(format!("{name}.lock"));
            match File::create_new(&lock) {
                // Left by another process that had our number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => count += 1,
                Err(error) => return Err(self.fault(&lock)(error)),
                Ok(file) => {
                    file.lock().map_err(self.fault(&lock))?;
                    return Ok(Host { name, lock, file: Arc::new(file) });
                }
            }
        }
    }

    /// Looks who is at work. Nobody enters meanwhile.
    pub(super) fn hosts(&self) -> Result<Hosts, WorktreeError> {
        let mut hosts = Hosts { alive: Vec::new(), gone: Vec::new(), _guard: self.guard()? };
        for path in self.files("lock")? {
            let Some(name) = stem(&path).filter(|name| is_host(name)).map(str::to_owned) else { continue };
            let Ok(file) = File::open(&path) else { continue };
            match file.try_lock() {
                Ok(()) => hosts.gone.push((path, file)),
                Err(TryLockError::WouldBlock) => hosts.alive.push(name),
                Err(error) => return Err(self.fault(&path)(error.into())),
            }
        }
        Ok(hosts)
    }

    /// Writes down a worktree that is to be made. Its name is one that no other has.
    pub(super) fn register(
        &self,
        host: &Host,
        base: &str,
        request: &AgentRequest,
    ) -> Result<Record, WorktreeError> {
        let name = name(request);
        let taken = |name: &str| self.record(name).exists() || self.path.join(name).exists();
        let mut free = name.clone();
        let mut count = 1;
        while taken(&free) {
            count += 1;
            free = format!("{name}-{count}");
        }
        let record = Record {
            name: free,
            stage: Stage::Making,
            host: host.name.clone(),
            base: base.to_owned(),
            run_id: request.run_id.to_string(),
            seq: request.seq,
            label: request.label.to_string(),
            group: None,
        };
        self.write(&record)?;
        Ok(record)
    }

    /// Writes a record, whole or not at all.
    pub(super) fn write(&self, record: &Record) -> Result<(), WorktreeError> {
        let (path, new) =
            (self.record(&record.name), self.path.join(format!("{}.{}.tmp", record.host, record.name)));
        let text = serde_json::to_string_pretty(record).map_err(|error| self.fault(&path)(error.into()))?;
        fs::write(&new, text + "\n").map_err(self.fault(&new))?;
        fs::rename(&new, &path).map_err(self.fault(&path))
    }

    /// Forgets a worktree that is gone.
    pub(super) fn forget(&self, record: &Record) -> Result<(), WorktreeError> {
        let path = self.record(&record.name);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(self.fault(&path)(error)),
            _ => Ok(()),
        }
    }

    /// All records, and what is wrong with those that cannot be read.
    pub(super) fn records(&self) -> Result<Vec<Result<Record, WorktreeError>>, WorktreeError> {
        let read = |path: &PathBuf| {
            let text = fs::read_to_string(path)?;
            let record: Record = serde_json::from_str(&text)?;
            let ours = is_name(&record.name) && is_host(&record.host) && self.record(&record.name) == *path;
            // It is handed to git.
            let commit = !record.base.is_empty() && record.base.bytes().all(|byte| byte.is_ascii_hexdigit());
            if ours && commit {
                Ok(record)
            } else {
                Err(io::Error::other("it is not the record of a worktree"))
            }
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
                let _ = fs::remove_file(&path);
            }
        }
        Ok(())
    }

    /// The lock that is held for as long as it takes to see or change who is at work, or which worktrees git has: git
    /// fails at one that another process has half made.
    pub(super) fn guard(&self) -> Result<File, WorktreeError> {
        let path = self.path.join("guard");
        let open = || {
            if fs::symlink_metadata(&path).is_ok_and(|file| file.is_symlink()) {
                return Err(io::Error::other("it is a symbolic link; remove it"));
            }
            let file = File::options().create(true).append(true).open(&path)?;
            file.lock()?;
            Ok(file)
        };
        open().map_err(self.fault(&path))
    }

    fn record(&self, name: &str) -> PathBuf {
        self.path.join(format!("{name}.json"))
    }

    /// The files with this extension, in order.
    fn files(&self, extension: &str) -> Result<Vec<PathBuf>, WorktreeError> {
        let list = || {
            let mut files = Vec::new();
            for entry in fs::read_dir(&self.path)? {
                let entry = entry?;
                let path = entry.path();
                // Not a link to one.
                let is_file = entry.file_type()?.is_file();
                if is_file && path.extension().is_some_and(|found| found == extension) {
                    files.push(path);
                }
            }
            files.sort();
            Ok(files)
        };
        list().map_err(self.fault(&self.path))
    }

    fn fault(&self, path: &Path) -> impl FnOnce(io::Error) -> WorktreeError + use<> {
        let path = path.to_owned();
        move |error| WorktreeError::Folder { path, error }
    }
}

impl Record {
    /// The same worktree, at another stage.
    pub(super) fn at(&self, stage: Stage) -> Self {
        Self { stage, ..self.clone() }
    }

    pub(super) fn branch(&self) -> String {
        format!("fanfold/{}", self.name)
    }
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
            let _ = fs::remove_file(path);
        }
    }
}

impl Host {
    /// What is locked as long as this process is at work.
    pub(super) fn lock(&self) -> Arc<File> {
        self.file.clone()
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        // The lock goes with the file; see `Hosts` for what is left.
        let _ = fs::remove_file(&self.lock);
    }
}

/// Does work that blocks, off the executor.
pub(super) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, WorktreeError> + Send + 'static,
) -> Result<T, WorktreeError> {
    let lost = |error| Err(WorktreeError::Folder { path: PathBuf::new(), error: io::Error::other(error) });
    tokio::task::spawn_blocking(work).await.unwrap_or_else(lost)
}

/// What a child's worktree and branch are called: the run, the call and what people call it.
fn name(request: &AgentRequest) -> String {
    let run: String = request.run_id.chars().filter(char::is_ascii_alphanumeric).take(8).collect();
    let run = if run.is_empty() { "run" } else { &run };
    let words = request.label.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(SLUG_CHARS);
    let slug = slug.trim_end_matches('-');
    let dash = if slug.is_empty() { "" } else { "-" };
    format!("{run}-{}{dash}{slug}", request.seq)
}

/// Whether a name is one of those that [`name`] makes: no path, no option, no other branch.
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '-')
}

/// Whether a name is one of those that [`Folder::enter`] gives: `host-<process>-<count>`.
fn is_host(name: &str) -> bool {
    let number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let numbers = name.strip_prefix("host-").and_then(|numbers| numbers.split_once('-'));
    numbers.is_some_and(|(process, count)| number(process) && number(count))
}

/// The name of a file without its extension.
fn stem(path: &Path) -> Option<&str> {
    path.file_stem()?.to_str()
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

    #[test]
    fn a_record_that_points_elsewhere_is_none() {
        let folder = tempfile::tempdir().unwrap();
        let records = Folder::of(folder.path());
        let host = records.enter().unwrap();
        records.register(&host, "abc123", &AgentRequest::new("p")).unwrap();
        let path = records.record("run-1-p");
        let good = fs::read_to_string(&path).unwrap();
        for bad in [
            good.replace("run-1-p", "../x"),
            good.replace("abc123", "--all"),
            good.replace("host-", "../host-"),
            "{".into(),
        ] {
            fs::write(&path, bad).unwrap();
            assert!(records.records().unwrap()[0].is_err());
        }
    }

    #[test]
    fn a_process_is_at_work_until_its_lock_is_gone() {
        let folder = tempfile::tempdir().unwrap();
        let records = Folder::of(folder.path());
        let host = records.enter().unwrap();
        let record = records.register(&host, "abc123", &AgentRequest::new("p")).unwrap();
        assert!(records.hosts().unwrap().is_alive(&record));
        // As when it was killed: the file stays, the lock does not.
        let lock = host.lock.clone();
        drop(host);
        fs::write(&lock, "").unwrap();
        assert!(!records.hosts().unwrap().is_alive(&record));
        assert!(!lock.exists());
    }

    #[test]
    fn only_files_that_are_named_as_ours_are_swept() {
        let folder = tempfile::tempdir().unwrap();
        let records = Folder::of(folder.path());
        drop(records.enter().unwrap());
        let theirs = [
            "Cargo.lock",
            "host.lock",
            "host-1.lock",
            "host-1-x.lock",
            "xhost-1-0.lock",
            "x.tmp",
            "host-1-0.tmp",
            "host-1-0.a.b.tmp",
            "host-1.a.tmp",
            "a.host-1-0.tmp",
        ];
        let ours = ["host-1-0.lock", "host-1-0.run-1-p.tmp"];
        for name in theirs.iter().chain(&ours) {
            fs::write(records.path.join(name), "").unwrap();
        }
        let hosts = records.hosts().unwrap();
        records.sweep(&hosts).unwrap();
        drop(hosts);
        assert!(theirs.iter().all(|name| records.path.join(name).exists()));
        assert!(!ours.iter().any(|name| records.path.join(name).exists()));
    }
}

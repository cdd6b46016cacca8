//! Runs that are on disk, in files of lines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use fanfold_types::{Line, RunView};
use serde_json::value::RawValue;

use crate::runs::Keys;
use crate::summary::Summary;

/// What a file of lines in a folder is called.
const EXTENSIONS: [&str; 2] = ["jsonl", "ndjson"];

/// The most that is read of a script.
const MAX_SCRIPT_BYTES: u64 = 8 << 20;

/// The longest line that is read: a value of 8 MiB has room in it.
const MAX_LINE: u64 = 64 << 20;

/// Why files cannot be shown.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FilesError {
    /// A file or folder could not be read.
    #[error("failed to read {}", path.display())]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A file tells of no run.
    #[error(
        "{} tells of no run: give a file of what `fanfold run --json` printed, or a folder of such files with \
         names that end in .jsonl", path.display()
    )]
    NoRun {
        /// Which.
        path: PathBuf,
    },
}

/// The files that were named, and what was last found in them.
#[derive(Debug)]
pub(crate) struct Files {
    named: Mutex<Vec<PathBuf>>,
    scanned: Mutex<BTreeMap<PathBuf, Scan>>,
    keys: Arc<Keys>,
}

/// What was found in a file when it was as it was then.
#[derive(Debug, Default)]
struct Scan {
    named: bool,
    stamp: Option<(u64, SystemTime)>,
    /// Runs by id; none for one that could not start.
    runs: BTreeMap<Option<String>, Summary>,
}

/// A file of lines: one that was named, or one that was found in a folder that was named.
#[derive(Clone, Debug)]
struct Log {
    path: PathBuf,
    named: bool,
}

/// A run in a file.
#[derive(Clone, Debug)]
pub(crate) struct FileRun {
    log: Log,
    id: Option<String>,
    pub(crate) summary: Summary,
}

impl Files {
    pub(crate) fn new(keys: Arc<Keys>) -> Self {
        Self { named: Mutex::default(), scanned: Mutex::default(), keys }
    }

    pub(crate) fn add(&self, paths: Vec<PathBuf>) -> Result<usize, FilesError> {
        let mut unreadable = 0;
        for path in &paths {
            let fault = |source| FilesError::Read { path: path.clone(), source };
            let is_folder = fs::metadata(path).map_err(fault)?.is_dir();
            for file in files_of(path).map_err(fault)? {
                unreadable += self.scan(&file).map_err(fault)?;
                let scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
                if !is_folder && scanned.get(&file.path).is_none_or(|scan| scan.runs.is_empty()) {
                    return Err(FilesError::NoRun { path: file.path });
                }
            }
        }
        self.named.lock().unwrap_or_else(PoisonError::into_inner).extend(paths);
        Ok(unreadable)
    }

    pub(crate) fn list(&self) -> Vec<Summary> {
        let named = self.named.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let files: Vec<Log> = named.iter().flat_map(|path| files_of(path).unwrap_or_default()).collect();
        for file in &files {
            // One that is gone by now shows what was there.
            let _ = self.scan(file);
        }
        let scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
        scanned.values().flat_map(|scan| scan.runs.values().cloned()).collect()
    }

    pub(crate) fn find(&self, key: u64) -> Option<FileRun> {
        let scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
        scanned.iter().find_map(|(path, scan)| {
            let (id, summary) = scan.runs.iter().find(|(_, summary)| summary.key == key)?;
            let log = Log { path: path.clone(), named: scan.named };
            Some(FileRun { log, id: id.clone(), summary: summary.clone() })
        })
    }

    /// Looks into a file that has changed. Gives the number of lines that could not be read.
    fn scan(&self, log: &Log) -> io::Result<usize> {
        let file = log.open()?;
        let about = file.metadata()?;
        let stamp = about.modified().ok().map(|modified| (about.len(), modified));
        let old = {
            let scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
            match scanned.get(&log.path) {
                Some(scan) if scan.stamp == stamp && stamp.is_some() => return Ok(0),
                Some(scan) => scan.runs.iter().map(|(id, run)| (id.clone(), run.key)).collect(),
                None => BTreeMap::new(),
            }
        };
        let (mut views, mut unreadable) = (BTreeMap::<Option<String>, RunView>::new(), 0);
        each_line(file, |text| match Line::parse(text) {
            Ok(Line::Other) => {}
            Ok(line) => {
                views.entry(line.run_id().map(str::to_owned)).or_default().line(&line);
            }
            Err(_) => unreadable += 1,
        })?;
        let name = log.path.file_stem().map(|name| name.to_string_lossy().into_owned());
        let summaries = views.into_iter().map(|(id, mut view)| {
            view.close();
            let key = old.get(&id).copied().unwrap_or_else(|| self.keys.next());
            (id, Summary::new(key, view.run(), name.clone()))
        });
        let scan = Scan { named: log.named, stamp, runs: summaries.collect() };
        self.scanned.lock().unwrap_or_else(PoisonError::into_inner).insert(log.path.clone(), scan);
        Ok(unreadable)
    }
}

impl FileRun {
    /// The script, if it lies beside the file. Blocks.
    pub(crate) fn script(&self) -> Option<String> {
        let path = within_folder(&self.log.path.with_extension("js")).ok()?;
        let mut text = String::new();
        File::open(path).ok()?.take(MAX_SCRIPT_BYTES).read_to_string(&mut text).ok()?;
        Some(text)
    }

    /// The run's lines, the result without its value. Blocks.
    pub(crate) fn lines(&self) -> io::Result<Vec<Arc<str>>> {
        let mut lines = Vec::new();
        each_line(self.log.open()?, |text| {
            let Ok(line) = Line::parse(text) else { return };
            if matches!(line, Line::Other) || line.run_id() != self.id.as_deref() {
                return;
            }
            match line {
                Line::Result(mut result) => {
                    result.value = None;
                    result.text.clear();
                    lines.extend(serde_json::to_string(&result).map(Arc::from));
                }
                _ => lines.push(text.into()),
            }
        })?;
        Ok(lines)
    }

    /// What the run returned. Blocks.
    pub(crate) fn value(&self) -> io::Result<Option<Arc<RawValue>>> {
        let mut value = None;
        each_line(self.log.open()?, |text| {
            if let Ok(Line::Result(result)) = Line::parse(text)
                && result.id.as_deref() == self.id.as_deref()
            {
                value = result.value.map(Arc::from);
            }
        })?;
        Ok(value)
    }
}

impl Log {
    fn open(&self) -> io::Result<File> {
        if self.named { File::open(&self.path) } else { File::open(within_folder(&self.path)?) }
    }
}

/// The file itself, or the files of lines in a folder.
fn files_of(path: &Path) -> io::Result<Vec<Log>> {
    if !path.is_dir() {
        return Ok(vec![Log { path: path.to_owned(), named: true }]);
    }
    let mut files = Vec::new();
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        let extension = path.extension().and_then(|extension| extension.to_str());
        if extension.is_some_and(|extension| EXTENSIONS.contains(&extension)) && within_folder(&path).is_ok()
        {
            files.push(Log { path, named: false });
        }
    }
    files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(files)
}

/// Where a file that was found, not named, really is: in its folder or below, so that a link in a folder of logs
/// shows nothing of another folder.
///
/// # Errors
/// If a link leads out of the folder, or it is no regular file: a pipe or a device has no end.
fn within_folder(path: &Path) -> io::Result<PathBuf> {
    let folder = match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    };
    let real = fs::canonicalize(path)?;
    if !real.starts_with(fs::canonicalize(folder)?) {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "a link leads out of the folder"));
    }
    if !fs::metadata(&real)?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    Ok(real)
}

/// Hands over the lines of a file, one by one, but not those that are no text or too long.
fn each_line(file: File, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut file = BufReader::new(file);
    let mut line = Vec::new();
    loop {
        line.clear();
        if io::Read::take(&mut file, MAX_LINE).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
        }
        if let Ok(text) = str::from_utf8(&line)
            && !text.trim().is_empty()
        {
            take(text.trim());
        }
    }
}

//! Runs that are on disk, in files of lines.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

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
    stamp: u64,
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
        let stamp = stamp(&file)?;
        let old = {
            let scanned = self.scanned.lock().unwrap_or_else(PoisonError::into_inner);
            match scanned.get(&log.path) {
                Some(scan) if scan.stamp == stamp => return Ok(0),
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

    /// The file, from its beginning. Blocks.
    pub(crate) fn open(&self) -> io::Result<File> {
        self.log.open()
    }

    /// Whether a line is of this run.
    pub(crate) fn tells(&self, line: &Line) -> bool {
        !matches!(line, Line::Other) && line.run_id() == self.id.as_deref()
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

/// Tells a file from another one, and from what it was before it was changed.
pub(crate) fn stamp(file: &File) -> io::Result<u64> {
    let about = file.metadata()?;
    let mut hasher = DefaultHasher::new();
    (about.len(), about.modified().ok()).hash(&mut hasher);
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        // A file can be changed and be given its old time again.
        (about.dev(), about.ino(), about.ctime(), about.ctime_nsec()).hash(&mut hasher);
    }
    Ok(hasher.finish())
}

/// The lines of a file that are not blank, without the white space around them.
#[derive(Debug)]
pub(crate) struct RawLines {
    file: BufReader<File>,
    line: Vec<u8>,
}

/// A line of a file.
pub(crate) struct RawLine<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether the line is at its end. The last one of a file may go on when more is written.
    pub(crate) is_whole: bool,
}

impl RawLines {
    pub(crate) fn new(file: File) -> Self {
        Self { file: BufReader::new(file), line: Vec::new() }
    }

    /// The next line. One that is too long comes in pieces.
    pub(crate) fn next(&mut self) -> io::Result<Option<RawLine<'_>>> {
        loop {
            self.line.clear();
            let read = io::Read::take(&mut self.file, MAX_LINE).read_until(b'\n', &mut self.line)?;
            if read == 0 {
                return Ok(None);
            }
            if !self.line.trim_ascii().is_empty() {
                break;
            }
        }
        let is_whole = self.line.ends_with(b"\n") || self.line.len() as u64 == MAX_LINE;
        Ok(Some(RawLine { bytes: self.line.trim_ascii(), is_whole }))
    }
}

/// Hands over the lines of a file, one by one, but not those that are no text.
fn each_line(file: File, mut take: impl FnMut(&str)) -> io::Result<()> {
    let mut lines = RawLines::new(file);
    while let Some(line) = lines.next()? {
        if let Ok(text) = str::from_utf8(line.bytes) {
            take(text);
        }
    }
    Ok(())
}

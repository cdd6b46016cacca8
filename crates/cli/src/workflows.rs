//! Saved workflows: scripts that a project and its user keep in `workflows` folders, to be run by name.

use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use fanfold::{LoadError, Meta, Script, WorkflowTarget};
use futures::future::BoxFuture;

use crate::{input, places};

/// A longer file is no script.
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The saved workflows that hold in a folder.
#[derive(Clone, Debug)]
pub(crate) struct Workflows {
    here: PathBuf,
    saved: Vec<Saved>,
}

/// A saved workflow.
#[derive(Clone, Debug)]
pub(crate) struct Saved {
    /// What it says it is; its file's name where it has no header.
    pub(crate) meta: Meta,
    pub(crate) path: PathBuf,
    /// Why it cannot be run.
    pub(crate) problem: Option<String>,
    /// Another one with this name is found first.
    pub(crate) hidden: bool,
}

impl Saved {
    /// The script.
    ///
    /// # Errors
    /// Its file cannot be read.
    pub(crate) fn text(&self) -> Result<String, String> {
        text(&self.path)
    }
}

impl Workflows {
    /// Looks for the workflows of a folder. Reads their headers and runs nothing.
    pub(crate) fn read(here: &Path) -> Self {
        let mut saved: Vec<Saved> = Vec::new();
        for path in places::folders("workflows", here).iter().flat_map(|folder| scripts(folder)) {
            let mut workflow = read(path);
            workflow.hidden = saved.iter().any(|other| other.meta.name == workflow.meta.name);
            saved.push(workflow);
        }
        Self { here: here.to_owned(), saved }
    }

    /// All of them, those that win first.
    pub(crate) fn all(&self) -> &[Saved] {
        &self.saved
    }

    /// The workflow of a name: the one that calls itself so, else the one whose file is called so.
    ///
    /// # Errors
    /// That there is none, and which there are.
    pub(crate) fn find(&self, name: &str) -> Result<&Saved, String> {
        let by_name = self.saved.iter().find(|saved| saved.meta.name == name);
        let by_file =
            || self.saved.iter().find(|saved| saved.path.file_stem().is_some_and(|stem| stem == name));
        by_name.or_else(by_file).ok_or_else(|| {
            let mut known: Vec<&str> =
                self.saved.iter().filter(|saved| !saved.hidden).map(|saved| &*saved.meta.name).collect();
            known.sort_unstable();
            let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
            format!(
                "there is no saved workflow {name:?} (there are: {known}); they are .js files in .fanfold/workflows or \
                 .claude/workflows of the project or the user"
            )
        })
    }

    /// The others with the name of this one, which it hides.
    pub(crate) fn hidden_by<'a>(&'a self, saved: &'a Saved) -> impl Iterator<Item = &'a Saved> {
        self.saved.iter().filter(|other| other.path != saved.path && other.meta.name == saved.meta.name)
    }

    /// A path as people write it.
    pub(crate) fn shown(&self, path: &Path) -> String {
        places::shown(path, &self.here)
    }

    /// The script that an argument of the command line means: a file, `-`, or a saved workflow's name.
    ///
    /// # Errors
    /// There is neither.
    pub(crate) fn script_path(&self, argument: &Path) -> Result<(PathBuf, Option<&Saved>), String> {
        let is_file = argument.as_os_str() == "-" || argument.exists();
        let is_path = argument.components().count() != 1 || argument.extension().is_some();
        match argument.to_str() {
            Some(name) if !is_file && !is_path => match self.find(name) {
                Ok(saved) => Ok((saved.path.clone(), Some(saved))),
                Err(_) if argument.with_extension("js").exists() => Err(format!(
                    "there is no saved workflow {name:?}; for the file of that name write {name}.js"
                )),
                Err(error) => Err(error),
            },
            // What cannot be read says so itself.
            _ => Ok((argument.to_owned(), None)),
        }
    }
}

/// What `workflow()` runs: a saved workflow by its name, or a script of the project by its path.
impl fanfold::Workflows for Workflows {
    fn load(&self, target: WorkflowTarget) -> BoxFuture<'static, Result<String, LoadError>> {
        let here = self.here.clone();
        let found = match target {
            WorkflowTarget::Name(name) => self.find(&name).map(|saved| (saved.path.clone(), false)),
            WorkflowTarget::Path(path) => Ok((path.into(), true)),
            other => Err(format!("{other:?} is neither a name nor a path")),
        };
        Box::pin(async move {
            let (path, is_given) = found.map_err(LoadError::new)?;
            let load = move || if is_given { of_project(&path, &here) } else { text(&path) };
            let loaded = tokio::task::spawn_blocking(load).await;
            loaded.map_err(|error| LoadError::new(error.to_string()))?.map_err(LoadError::new)
        })
    }
}

/// The text of a script of this project. A script that nobody vetted must not read other files, nor be told which
/// there are.
fn of_project(given: &Path, here: &Path) -> Result<String, String> {
    let script = || {
        let path = here.join(given).canonicalize().ok()?;
        let root = places::root(here).canonicalize().ok()?;
        (path.starts_with(root) && is_script(&path) && path.is_file()).then_some(path)
    };
    match script() {
        Some(path) => text(&path),
        None => Err(format!("{} is no .js file of this project", given.display())),
    }
}

fn scripts(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| is_script(path) && path.is_file());
    paths.sort();
    paths
}

fn is_script(path: &Path) -> bool {
    path.extension().is_some_and(|extension| extension == "js" || extension == "mjs")
}

fn text(path: &Path) -> Result<String, String> {
    let fault = |error| format!("failed to read {}: {error}", path.display());
    if !fs::metadata(path).map_err(fault)?.is_file() {
        return Err(format!("{} is no file", path.display()));
    }
    let mut text = String::new();
    let file = fs::File::open(path).map_err(fault)?;
    file.take(MAX_BYTES + 1).read_to_string(&mut text).map_err(fault)?;
    if text.len() as u64 > MAX_BYTES {
        return Err(format!("{} is longer than {MAX_BYTES} bytes", path.display()));
    }
    Ok(text)
}

fn read(path: PathBuf) -> Saved {
    let unnamed = Meta::new(input::name(&path), format!("the script {}", path.display()));
    let meta = text(&path).and_then(|text| {
        let meta = (!Script::has_header(&text)).then(|| unnamed.clone());
        Script::read(&text, meta).map(|script| script.meta).map_err(|error| {
            let line = error.line.map(|line| format!(" (line {line})")).unwrap_or_default();
            format!("{}{line}", error.message)
        })
    });
    match meta {
        Ok(meta) => Saved { meta, path, problem: None, hidden: false },
        Err(problem) => Saved { meta: unnamed, path, problem: Some(problem), hidden: false },
    }
}

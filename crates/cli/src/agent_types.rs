//! The kinds of agents that a project and its user define in `agents` folders: a Markdown file each.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use fanfold::{AgentType, AgentTypes};

use crate::front_matter::FrontMatter;
use crate::places;

/// A definition longer than this is a mistake, and would be sent with every prompt.
const MAX_BYTES: u64 = 1024 * 1024;

/// What was found.
#[derive(Clone, Debug, Default)]
pub(crate) struct AgentFiles {
    types: BTreeMap<String, (Arc<AgentType>, PathBuf)>,
    /// Files that could not be read, and why.
    problems: Vec<String>,
}

impl AgentFiles {
    /// Reads all definitions that hold here; of several with the same name the first one counts.
    pub(crate) fn read(here: &Path) -> Self {
        let mut found = Self::default();
        for folder in places::folders("agents", here) {
            for path in markdown(&folder) {
                match definition(&path) {
                    Ok(Some(definition)) => {
                        found
                            .types
                            .entry(definition.name.clone())
                            .or_insert_with(|| (Arc::new(definition), path));
                    }
                    // Somebody's notes.
                    Ok(None) => {}
                    Err(fault) => found.problems.push(format!("{}{fault}", places::shown(&path, here))),
                }
            }
        }
        found
    }

    /// The definitions and their files, by name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&AgentType, &Path)> {
        self.types.values().map(|(definition, path)| (&**definition, &**path))
    }

    /// Files that could not be read, and why.
    pub(crate) fn problems(&self) -> &[String] {
        &self.problems
    }
}

impl AgentTypes for AgentFiles {
    fn find(&self, name: &str) -> Option<Arc<AgentType>> {
        self.types.get(name).map(|(definition, _)| definition.clone())
    }

    fn names(&self) -> Vec<String> {
        self.types.keys().cloned().collect()
    }

    fn how_to_define(&self) -> String {
        let mut how =
            "define it in a Markdown file in .fanfold/agents or .claude/agents, or leave agentType out"
                .to_owned();
        for problem in &self.problems {
            how.push_str("; cannot read ");
            how.push_str(problem);
        }
        how
    }
}

fn markdown(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| Some(entry.ok()?.path())).collect();
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "md") && path.is_file());
    paths.sort();
    paths
}

/// Reads one file; nothing if it defines nothing. The error follows the path.
fn definition(path: &Path) -> Result<Option<AgentType>, String> {
    let fault = |error: std::io::Error| format!(": {error}");
    if fs::metadata(path).map_err(fault)?.len() > MAX_BYTES {
        return Err(format!(": it is longer than {MAX_BYTES} bytes"));
    }
    let text = fs::read_to_string(path).map_err(fault)?;
    let read = FrontMatter::read(&text).map_err(|(line, fault)| format!(":{line}: {fault}"))?;
    Ok(read.map(|read| {
        let stem = || path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let mut definition = AgentType::new(read.text("name").unwrap_or_else(stem), &*read.body);
        definition.description = read.text("description").unwrap_or_default();
        definition.tools = read.list("tools");
        // As the caller's: whatever that is.
        definition.model = read.text("model").filter(|model| model != "inherit");
        definition
    }))
}

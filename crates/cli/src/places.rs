//! Where a project and its user keep what the command finds by name: saved workflows, kinds of agents.

use std::path::{Path, PathBuf};

/// The folders of a kind (`workflows`, `agents`), those that win first: the nearest `.fanfold` one up to the
/// repository's root, the nearest `.claude` one, and the user's.
pub(crate) fn folders(kind: &str, here: &Path) -> Vec<PathBuf> {
    let config = dirs::config_dir().map(|config| config.join("fanfold").join(kind));
    let home = dirs::home_dir().map(|home| home.join(".claude").join(kind));
    let mut folders = Vec::new();
    let project = [".fanfold", ".claude"].map(|owner| nearest(&Path::new(owner).join(kind), here));
    for folder in project.into_iter().chain([config, home]).flatten() {
        if folder.is_dir() && !folders.contains(&folder) {
            folders.push(folder);
        }
    }
    folders
}

/// The nearest folder of this name, from here up to the root of the repository. Outside of one, only here.
fn nearest(name: &Path, here: &Path) -> Option<PathBuf> {
    let root = root(here);
    let within = here.ancestors().take_while(|folder| folder.starts_with(root));
    within.map(|folder| folder.join(name)).find(|folder| folder.is_dir())
}

/// The root of the repository; outside of one, here.
pub(crate) fn root(here: &Path) -> &Path {
    here.ancestors().find(|folder| folder.join(".git").exists()).unwrap_or(here)
}

/// A path as people write it: from here, or from their home.
pub(crate) fn shown(path: &Path, here: &Path) -> String {
    if let Ok(path) = path.strip_prefix(here) {
        return path.display().to_string();
    }
    match dirs::home_dir().and_then(|home| Some(path.strip_prefix(home).ok()?.to_owned())) {
        Some(path) => Path::new("~").join(path).display().to_string(),
        None => path.display().to_string(),
    }
}

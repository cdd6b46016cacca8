//! Text that comes from files, standard input and options.

use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};

use crate::args::ScriptArgs;
use crate::display;
use crate::workflows::Workflows;

/// A script, as its author wrote it.
#[derive(Debug)]
pub(crate) struct Source {
    /// Where it was read; `-` is standard input.
    pub(crate) path: PathBuf,
    pub(crate) text: String,
}

/// The script that an argument of the command line means, which may be the name of a saved workflow. Says so if
/// others have the same name.
pub(crate) fn source(argument: &Path, workflows: &Workflows) -> Result<Source> {
    let (path, saved) = workflows.script_path(argument).map_err(anyhow::Error::msg)?;
    if let Some(saved) = saved {
        for other in workflows.hidden_by(saved) {
            let (this, other) = (workflows.shown(&saved.path), workflows.shown(&other.path));
            display::notice(&format!("{} is {this}; {other} has the same name", saved.meta.name));
        }
    }
    Ok(Source { text: script(&path)?, path })
}

/// What the options say of a script's `args`, as JSON text.
pub(crate) fn arguments(args: &ScriptArgs) -> Result<Option<String>> {
    match (&args.args, &args.args_text) {
        (Some(json), _) => text_or_file("--args", json).map(Some),
        (None, Some(text)) => Ok(Some(serde_json::to_string(text)?)),
        (None, None) => Ok(None),
    }
}

/// The script of this path; `-` is standard input.
fn script(path: &Path) -> Result<String> {
    if path.as_os_str() != "-" {
        return file(path);
    }
    let mut text = String::new();
    io::stdin().read_to_string(&mut text).context("failed to read the script from standard input")?;
    Ok(text)
}

/// What a script without metadata is called: its file's stem.
pub(crate) fn name(path: &Path) -> String {
    match path.file_stem() {
        Some(stem) if path.as_os_str() != "-" => stem.to_string_lossy().into_owned(),
        _ => "script".into(),
    }
}

/// An option's value, or the text of the file that `@FILE` names.
pub(crate) fn text_or_file(option: &str, value: &str) -> Result<String> {
    match value.strip_prefix('@') {
        Some(path) => file(Path::new(path)).with_context(|| format!("{option} {value}")),
        None => Ok(value.to_owned()),
    }
}

/// The text of a file, without a byte order mark.
pub(crate) fn file(path: &Path) -> Result<String> {
    let text = fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

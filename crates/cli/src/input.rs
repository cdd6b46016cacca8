//! Text that comes from files, standard input and options.

use std::fs;
use std::io::{self, Read as _};
use std::path::Path;

use anyhow::{Context as _, Result};

/// The script of this path; `-` is standard input.
pub(crate) fn script(path: &Path) -> Result<String> {
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

/// The text of a file.
pub(crate) fn file(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("failed to read {}", path.display()))
}

//! A repository directory of our own, for working trees that agents have been in.
//!
//! It has the objects of the repository, and nothing else of it: no settings, no attributes, no hooks, no index. So git
//! runs no command that an agent has configured, and sees what an agent has told git not to look at.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::config::Baseline;
use super::git::{Git, GitError, path};

/// The repository directory, until it is dropped.
pub(super) struct View {
    folder: TempDir,
    work_tree: PathBuf,
    git: Git,
}

/// What tells a working tree from a commit.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Difference {
    /// The files of the commit that are others or gone.
    pub(super) changed: Vec<PathBuf>,
    /// The files and folders that are neither in the commit nor ignored.
    pub(super) new: Vec<PathBuf>,
    /// The submodules with files.
    pub(super) submodules: Vec<PathBuf>,
}

impl Difference {
    pub(super) fn is_empty(&self) -> bool {
        self.changed.is_empty() && self.new.is_empty() && self.submodules.is_empty()
    }
}

impl View {
    /// One of the repository with this shared directory, for this working tree. Blocks.
    ///
    /// The index, if there is one, is that of when the working tree was filled: it tells which files nothing has
    /// written since.
    pub(super) fn new(
        common: &Path,
        work_tree: &Path,
        baseline: &Baseline,
        index: Option<File>,
    ) -> io::Result<Self> {
        let folder = TempDir::with_prefix("fanfold-")?;
        let at = |name| folder.path().join(name);
        for name in ["refs", "info", "objects"] {
            fs::create_dir(at(name))?;
        }
        let (version, format) = if baseline.is_sha256() { (1, "sha256") } else { (0, "sha1") };
        let extensions =
            if version == 1 { format!("[extensions]\nobjectFormat = {format}\n") } else { String::new() };
        fs::write(
            at("config"),
            format!("[core]\nrepositoryFormatVersion = {version}\nbare = false\n{extensions}"),
        )?;
        fs::write(at("HEAD"), "ref: refs/heads/none\n")?;
        fs::write(folder.path().join("info").join("exclude"), &baseline.ignored)?;
        if let Some(patterns) = &baseline.sparse {
            fs::write(folder.path().join("info").join("sparse-checkout"), patterns)?;
        }
        if let Some(mut index) = index {
            let mut copy = File::create(at("index"))?;
            io::copy(&mut index, &mut copy)?;
            copy.flush()?;
            // Git looks into files that are not older than their index.
            copy.set_modified(index.metadata()?.modified()?)?;
        }
        let git = Git::new(folder.path(), work_tree)
            .with(baseline.settings())
            .variable("GIT_OBJECT_DIRECTORY", common.join("objects"))
            // So there are no settings and attributes of the user and the machine either.
            .variable("GIT_CONFIG_NOSYSTEM", "1")
            .variable("GIT_ATTR_NOSYSTEM", "1")
            .variable("HOME", folder.path())
            .variable("XDG_CONFIG_HOME", folder.path());
        Ok(Self { folder, work_tree: work_tree.to_owned(), git })
    }

    /// Git in this directory.
    pub(super) fn git(&self) -> &Git {
        &self.git
    }

    /// What tells the working tree from this commit.
    pub(super) async fn difference(&self, commit: &str) -> Result<Difference, GitError> {
        // Git wants one, to tell what is staged: nothing.
        let head = (self.folder.path().join("HEAD"), format!("{commit}\n"));
        let written = tokio::task::spawn_blocking(move || fs::write(head.0, head.1)).await;
        written.map_err(io::Error::other).flatten().map_err(GitError::View)?;
        self.git.ask(&["read-tree", "--reset", commit]).await?;
        let submodules = self.look_at_entries().await?;
        let status = [
            "status",
            "--porcelain=v2",
            "-z",
            "--untracked-files=normal",
            // To look into one would be to run git with its settings.
            "--ignore-submodules=all",
            "--no-renames",
        ];
        // It warns of a folder that it cannot read.
        let status = self.git.ask_without_warnings(&status).await?;
        let mut difference = Difference { submodules, ..Difference::default() };
        for entry in status.split(|byte| *byte == 0).filter(|entry| !entry.is_empty()) {
            match entry {
                [b'?', b' ', name @ ..] => difference.new.push(path(name)),
                // A changed entry: the path is its ninth word.
                _ => difference
                    .changed
                    .push(path(entry.splitn(9, |byte| *byte == b' ').last().unwrap_or(entry))),
            }
        }
        Ok(difference)
    }

    /// Lets git look at files that are there although their entries say that they are not checked out, and returns the
    /// submodules with files.
    async fn look_at_entries(&self) -> Result<Vec<PathBuf>, GitError> {
        let entries = self.git.ask(&["ls-files", "-t", "--stage", "-z"]).await?;
        let work_tree = self.work_tree.clone();
        let sort = move || {
            let (mut submodules, mut present) = (Vec::new(), Vec::new());
            // Such as `H 100644 <object> 0\t<path>`.
            for entry in entries.split(|byte| *byte == 0) {
                let [tag, b' ', mode @ ..] = entry else { continue };
                let Some(tab) = entry.iter().position(|byte| *byte == b'\t') else { continue };
                let name = &entry[tab + 1..];
                let place = work_tree.join(path(name));
                if mode.starts_with(b"160000 ") {
                    let folder = fs::symlink_metadata(&place).is_ok_and(|found| found.is_dir());
                    let empty = || fs::read_dir(&place).is_ok_and(|mut entries| entries.next().is_none());
                    let gone = || fs::symlink_metadata(&place).is_err();
                    if !(folder && empty() || gone()) {
                        submodules.push(path(name));
                    }
                } else if *tag == b'S' && fs::symlink_metadata(&place).is_ok() {
                    present.extend_from_slice(name);
                    present.push(0);
                }
            }
            (submodules, present)
        };
        let sorted = tokio::task::spawn_blocking(sort).await;
        let (submodules, present) = sorted.map_err(|error| GitError::View(io::Error::other(error)))?;
        if !present.is_empty() {
            self.git.ask_with(&["update-index", "--no-skip-worktree", "-z", "--stdin"], &present).await?;
        }
        Ok(submodules)
    }
}

//! What a repository's configuration says about its files, as it was before any agent of the run could change it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::{env, fs};

use serde::{Deserialize, Serialize};

use super::git::{Git, GitError, path};
use super::repository::Location;

/// The settings of git that decide how a file in a working tree stands for what is committed, and whose values cannot
/// name a program.
const ABOUT_FILES: [&str; 8] = [
    "core.autocrlf",
    "core.eol",
    "core.filemode",
    "core.ignorecase",
    "core.longpaths",
    "core.precomposeunicode",
    "core.symlinks",
    "core.sparsecheckoutcone",
];

/// What an agent may change in its repository's configuration without an effect on what git fetches.
const WITHOUT_EFFECT: [&str; 3] = ["branch.", "filter.", "user."];

/// The settings of a filter.
const FILTER: [&str; 4] = ["clean", "smudge", "process", "required"];

/// All settings that hold in a repository.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Config(BTreeMap<String, Vec<String>>);

/// What the files of a worktree are compared by, noted before an agent is in it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Baseline {
    /// Of [`ABOUT_FILES`], those that are set.
    settings: BTreeMap<String, String>,
    /// How commits are named.
    object_format: String,
    /// The patterns of what is ignored, besides those of the `.gitignore` files.
    pub(super) ignored: String,
    /// The patterns of what is checked out, if that is not everything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) sparse: Option<String>,
}

impl Config {
    /// Those of a repository, its user and its machine.
    pub(super) async fn of(git: &Git) -> Result<Self, GitError> {
        Ok(Self::read(&git.ask(&["config", "--list", "--null"]).await?))
    }

    fn read(printed: &[u8]) -> Self {
        let mut settings = BTreeMap::<_, Vec<_>>::new();
        for entry in String::from_utf8_lossy(printed).split_terminator('\0') {
            // A setting without a value is true.
            let (name, value) = entry.split_once('\n').unwrap_or((entry, "true"));
            settings.entry(name.to_owned()).or_default().push(value.to_owned());
        }
        Self(settings)
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name)?.last().map(String::as_str)
    }

    fn is(&self, name: &str) -> bool {
        self.get(name)
            .is_some_and(|value| !matches!(&*value.to_ascii_lowercase(), "false" | "no" | "off" | "0" | ""))
    }

    /// Whether each worktree of the repository has settings of its own.
    pub(super) fn is_per_worktree(&self) -> bool {
        self.is("extensions.worktreeconfig")
    }

    /// Whether a part of the files is checked out.
    pub(super) fn is_sparse(&self) -> bool {
        self.is("core.sparsecheckout")
    }

    /// Whether there are filters, so that files may be others than what is committed.
    pub(super) fn has_filters(&self) -> bool {
        self.0.keys().any(|name| filter(name).is_some())
    }

    /// Settings over those that hold `now`, so that each filter is what it was, and those that were not there do
    /// nothing.
    ///
    /// # Errors
    /// The filter that has become a process since: git takes one without a program for no filter at all.
    pub(super) fn filters(&self, now: &Self) -> Result<Vec<(String, String)>, String> {
        let drivers = self.0.keys().chain(now.0.keys()).filter_map(|name| filter(name));
        let mut settings = Vec::new();
        for driver in drivers.collect::<BTreeSet<_>>() {
            let names = FILTER.map(|setting| (setting, format!("filter.{driver}.{setting}")));
            let is_new = names.iter().all(|(_, name)| self.get(name).is_none());
            for (setting, name) in names {
                let value = match (setting, self.get(&name), now.get(&name)) {
                    (_, Some(value), _) => value,
                    ("process", None, Some(_)) if !is_new => return Err(driver.to_owned()),
                    ("process", None, None) if !is_new => continue,
                    ("required", None, _) => "false",
                    (_, None, _) => "",
                };
                settings.push((name, value.to_owned()));
            }
        }
        Ok(settings)
    }

    /// Whether git fetches now as it did then.
    pub(super) fn fetches_like(&self, now: &Self) -> bool {
        let matters = |(name, _): &(&String, _)| !WITHOUT_EFFECT.iter().any(|start| name.starts_with(start));
        self.0.iter().filter(matters).eq(now.0.iter().filter(matters))
    }
}

/// The filter that a setting is about.
fn filter(name: &str) -> Option<&str> {
    let (driver, setting) = name.strip_prefix("filter.")?.rsplit_once('.')?;
    FILTER.contains(&setting).then_some(driver)
}

impl Baseline {
    /// That of a repository with these settings.
    pub(super) async fn of(git: &Git, config: &Config, location: &Location) -> Result<Self, GitError> {
        let Location { root, common } = location;
        let about =
            ABOUT_FILES.iter().filter_map(|name| Some(((*name).to_owned(), config.get(name)?.to_owned())));
        let settings = about.collect();
        let object_format = git.lines(&["rev-parse", "--show-object-format"]).await?.concat();
        let excludes = match config.get("core.excludesfile") {
            Some(_) => {
                // Git knows what a path may begin with.
                let mut printed =
                    git.ask(&["config", "--type=path", "--null", "--get", "core.excludesFile"]).await?;
                printed.pop_if(|byte| *byte == 0);
                Some(root.join(path(&printed)))
            }
            None => default_excludes(),
        };
        let files = [Some(common.join("info").join("exclude")), excludes];
        let read = move || {
            let texts = files.iter().flatten().filter_map(|file| fs::read(file).ok());
            texts.fold(String::new(), |all, text| all + &String::from_utf8_lossy(&text) + "\n")
        };
        let ignored = tokio::task::spawn_blocking(read).await.unwrap_or_default();
        Ok(Self { settings, object_format, ignored, sparse: None })
    }

    /// The settings for git.
    pub(super) fn settings(&self) -> Vec<(String, String)> {
        let known = ABOUT_FILES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), self.settings.get(*name)?.clone())));
        let sparse = ("core.sparsecheckout".to_owned(), self.sparse.is_some().to_string());
        // That would warn of what is no fault.
        let quiet = ("core.safecrlf".to_owned(), "false".to_owned());
        known.chain([sparse, quiet]).collect()
    }

    /// Whether commits have longer names.
    pub(super) fn is_sha256(&self) -> bool {
        self.object_format == "sha256"
    }
}

/// Where git looks for patterns of ignored files that hold for all repositories of a user.
fn default_excludes() -> Option<PathBuf> {
    let set = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let config = set("XDG_CONFIG_HOME").or_else(|| Some(set("HOME")?.join(".config")))?;
    Some(config.join("git").join("ignore"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        Config::read(text.replace('\n', "\0").replace('=', "\n").as_bytes())
    }

    #[test]
    fn filters_are_those_that_were_there() {
        let then = config("filter.lfs.process=git-lfs\nfilter.lfs.required=true\nfilter.a.b.smudge=cat");
        let now = config(
            "filter.lfs.process=evil\nfilter.lfs.clean=evil\nfilter.new.process=evil\nfilter.a.b.required=1\n\
             filter.x.other=1",
        );
        let filters: BTreeMap<_, _> = then.filters(&now).unwrap().into_iter().collect();
        let expected = [
            ("filter.a.b.clean", ""),
            ("filter.a.b.required", "false"),
            ("filter.a.b.smudge", "cat"),
            ("filter.lfs.clean", ""),
            ("filter.lfs.process", "git-lfs"),
            ("filter.lfs.required", "true"),
            ("filter.lfs.smudge", ""),
            ("filter.new.clean", ""),
            ("filter.new.process", ""),
            ("filter.new.required", "false"),
            ("filter.new.smudge", ""),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(filters.into_iter().collect::<Vec<_>>(), expected);
        assert_eq!(then.filters(&config("filter.a.b.process=evil")), Err("a.b".to_owned()));
    }

    #[test]
    fn git_fetches_only_as_it_did_before() {
        let then = "core.bare=false\nremote.origin.url=here";
        for (now, same) in [
            (then.to_owned(), true),
            (format!("{then}\nbranch.x.remote=origin\nuser.name=n\nfilter.x.clean=cat"), true),
            (format!("{then}\nremote.origin.url=there"), false),
            (format!("{then}\ncore.sshcommand=evil"), false),
            (format!("{then}\ncredential.helper=evil"), false),
            ("core.bare=false".into(), false),
        ] {
            assert_eq!(config(then).fetches_like(&config(&now)), same, "{now}");
        }
    }

    #[test]
    fn no_setting_but_those_about_files_is_taken_from_a_record() {
        let text = r#"{"settings": {"core.eol": "lf", "core.fsmonitor": "evil"}, "objectFormat": "sha1", "ignored": ""}"#;
        let baseline: Baseline = serde_json::from_str(text).unwrap();
        let settings = baseline.settings();
        let expected = [("core.eol", "lf"), ("core.sparsecheckout", "false"), ("core.safecrlf", "false")];
        assert_eq!(settings, expected.map(|(name, value)| (name.into(), value.into())));
    }
}

//! Settings from `fanfold.toml`, with the command line's options over them.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, anyhow};
use fanfold::Limits;
use serde::Deserialize;
use serde_json::{Map, Value};

use crate::agents::{self, AgentSettings, AgentsTable};
use crate::args::SettingsArgs;
use crate::{input, places};

const FILE_NAME: &str = "fanfold.toml";

/// What a `fanfold.toml` may say. Unknown names are refused.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
struct File {
    #[serde(deserialize_with = "agents::name_or_table")]
    agents: AgentsTable,
    agent_command: Option<String>,
    /// Names of environment variables that agents get besides the usual ones.
    agent_env: Vec<String>,
    provider: Option<String>,
    model: Option<String>,
    max_result_chars: Option<usize>,
    /// What models are called by the provider, for names that scripts use.
    models: BTreeMap<String, String>,
    /// The commit that worktrees are made from.
    worktree_base: Option<String>,
    /// Whether git's filters run when worktrees are filled.
    worktree_filters: Option<bool>,
    /// By setting name; see [`over`].
    limits: Map<String, Value>,
}

/// What a run is to be like.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) agents: AgentSettings,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) models: BTreeMap<String, String>,
    pub(crate) worktree_base: Option<String>,
    pub(crate) worktree_filters: bool,
    pub(crate) limits: Limits,
    /// Of the settings file; an option of the command line wins.
    pub(crate) max_result_chars: Option<usize>,
}

impl Settings {
    /// Reads the settings file, if there is one, and puts the options over it.
    pub(crate) fn read(args: &SettingsArgs) -> Result<Self> {
        let path = args.config.clone().or_else(nearest);
        let file = path.as_deref().map(read).transpose()?.unwrap_or_default();
        let shown = path.as_deref().unwrap_or(Path::new(FILE_NAME)).display();
        let mut limits = over(&Limits::default(), file.limits).with_context(|| format!("{shown}: limits"))?;
        limits.validate().map_err(|error| anyhow!("{shown}: limits: {error}"))?;
        if let Some(given) = &args.limits {
            let given = input::text_or_file("--limits", given)?;
            let given = serde_json::from_str(&given).context("--limits is not a JSON object")?;
            limits = over(&limits, given).context("--limits")?;
        }
        let command = file.agent_command;
        let agents = AgentSettings::choose(args, file.agents, command, file.agent_env, path.as_deref())?;
        Ok(Self {
            agents,
            provider: args.provider.clone().or(file.provider),
            model: args.model.clone().or(file.model),
            models: file.models,
            worktree_base: args.worktree_base.clone().or(file.worktree_base),
            worktree_filters: !args.no_worktree_filters && file.worktree_filters.unwrap_or(true),
            limits,
            max_result_chars: file.max_result_chars,
        })
    }
}

/// The settings file of this folder or the nearest one above it, up to the repository's root. What lies above that, or
/// above here outside of a repository, may be somebody else's, and settings name programs to run.
fn nearest() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    let root = places::root(&here);
    let within = here.ancestors().take_while(|folder| folder.starts_with(root));
    within.map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file())
}

fn read(path: &Path) -> Result<File> {
    let text = input::file(path)?;
    toml::from_str(&text).with_context(|| format!("failed to read {}", path.display()))
}

/// Limits by their setting names, over others.
fn over(limits: &Limits, given: Map<String, Value>) -> Result<Limits> {
    let mut all = serde_json::to_value(limits)?;
    for (name, value) in given {
        let value = whole(value);
        // One by one, so that an error can say which.
        let one = Value::Object(Map::from_iter([(name.clone(), value.clone())]));
        serde_json::from_value::<Limits>(one).with_context(|| name.clone())?;
        all[name] = value;
    }
    Ok(serde_json::from_value(all)?)
}

/// `1e11` is as good as 100000000000.
fn whole(value: Value) -> Value {
    // What a float holds without loss.
    const MOST: f64 = 9_007_199_254_740_992.0;
    match value.as_f64() {
        Some(number) if !value.is_u64() && number.fract() == 0.0 && (0.0..=MOST).contains(&number) => {
            Value::from(number as u64)
        }
        _ => value,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::args::Agents;

    #[test]
    fn a_settings_file_says_everything_by_its_setting_name() {
        let file: File = toml::from_str(
            "agents = \"command\"\nagentCommand = \"claude -p\"\nagentEnv = [\"ANTHROPIC_API_KEY\"]\n\
             model = \"m\"\nmaxResultChars = 10\n[limits]\nmaxConcurrentAgents = 8\n",
        )
        .unwrap();
        assert_eq!(file.agents.r#use, Some(Agents::Command));
        assert_eq!(over(&Limits::default(), file.limits).unwrap().max_concurrent_agents, 8);
        assert!(toml::from_str::<File>("agent = 1").unwrap_err().to_string().contains("agent"));
    }

    #[test]
    fn limits_given_as_json_win_one_by_one() {
        let file: Limits = serde_json::from_str(r#"{"maxTotalAgents": 5, "syncTimeoutMs": 7}"#).unwrap();
        let both = |json: &str| over(&file, serde_json::from_str(json).unwrap());
        let limits = both(r#"{"maxTotalAgents": 6}"#).unwrap();
        assert_eq!((limits.max_total_agents, limits.sync_timeout_ms), (6, 7));
        let limits = both(r#"{"maxFuel": 1e11, "maxTotalAgents": 6.0, "maxDurationMs": null}"#).unwrap();
        assert_eq!((limits.max_fuel, limits.max_total_agents), (100_000_000_000, 6));
        for (json, name) in [
            (r#"{"maxAgents": 1}"#, "maxAgents"),
            (r#"{"maxFuel": 1, "maxTotalAgents": "six"}"#, "maxTotalAgents"),
            (r#"{"maxTotalAgents": 1.5}"#, "maxTotalAgents"),
            (r#"{"maxTotalAgents": -1}"#, "maxTotalAgents"),
            (r#"{"maxTotalAgents": 1e10}"#, "maxTotalAgents"),
        ] {
            assert!(format!("{:#}", both(json).unwrap_err()).starts_with(name), "{json}");
        }
    }
}

//! Settings from `fanfold.toml`, with the command line's options over them.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use fanfold::Limits;
use serde::Deserialize;

use crate::agents::{self, AgentSettings, AgentsTable};
use crate::args::SettingsArgs;
use crate::input;

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
    limits: Limits,
}

/// What a run is to be like.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) agents: AgentSettings,
    pub(crate) provider: Option<String>,
    pub(crate) model: Option<String>,
    pub(crate) limits: Limits,
    pub(crate) max_result_chars: usize,
}

impl Settings {
    /// Reads the settings file, if there is one, and puts the options over it.
    pub(crate) fn read(args: &SettingsArgs) -> Result<Self> {
        let path = args.config.clone().or_else(nearest);
        let file = match &path {
            Some(path) => read(path)?,
            None => File::default(),
        };
        let limits = match &args.limits {
            Some(limits) => over(&file.limits, &input::text_or_file("--limits", limits)?)?,
            None => file.limits,
        };
        let command = file.agent_command;
        let agents = AgentSettings::choose(args, file.agents, command, file.agent_env, path.as_deref())?;
        Ok(Self {
            agents,
            provider: args.provider.clone().or(file.provider),
            model: args.model.clone().or(file.model),
            limits,
            max_result_chars: args
                .max_result_chars
                .or(file.max_result_chars)
                .unwrap_or(fanfold::text::DEFAULT_MAX_RESULT_CHARS),
        })
    }
}

/// The settings file of this folder or the nearest one above it.
fn nearest() -> Option<PathBuf> {
    let here = env::current_dir().ok()?;
    here.ancestors().map(|folder| folder.join(FILE_NAME)).find(|path| path.is_file())
}

fn read(path: &Path) -> Result<File> {
    let text = input::file(path)?;
    toml::from_str(&text).with_context(|| format!("failed to read {}", path.display()))
}

/// Limits given as JSON, over others.
fn over(limits: &Limits, json: &str) -> Result<Limits> {
    let given: serde_json::Map<String, serde_json::Value> =
        serde_json::from_str(json).context("--limits is not a JSON object")?;
    let mut all = serde_json::to_value(limits)?;
    for (name, value) in given {
        all[name] = value;
    }
    serde_json::from_value(all).context("--limits")
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
        assert_eq!(file.limits.max_concurrent_agents, 8);
        assert!(toml::from_str::<File>("agent = 1").unwrap_err().to_string().contains("agent"));
    }

    #[test]
    fn limits_given_as_json_win_one_by_one() {
        let file: Limits = serde_json::from_str(r#"{"maxTotalAgents": 5, "syncTimeoutMs": 7}"#).unwrap();
        let both = over(&file, r#"{"maxTotalAgents": 6}"#).unwrap();
        assert_eq!((both.max_total_agents, both.sync_timeout_ms), (6, 7));
        assert!(format!("{:#}", over(&file, r#"{"maxAgents": 1}"#).unwrap_err()).contains("maxAgents"));
    }
}

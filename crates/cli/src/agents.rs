//! Who runs `agent()`: the choice among the providers, their settings, and making the one chosen.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::ValueEnum as _;
use fanfold::Subagents;
use fanfold_agents::{Acp, Anthropic, ApiKey, Command, OpenAi, Permissions, Scripted, Worktrees};
use serde::de::value::MapAccessDeserializer;
use serde::de::{IntoDeserializer as _, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::args::{Agents, SettingsArgs};
use crate::settings::Settings;

/// `agents` in a settings file: a name, or a table with the providers' settings.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct AgentsTable {
    /// The provider that runs.
    pub(crate) r#use: Option<Agents>,
    openai: Option<HttpSettings>,
    anthropic: Option<HttpSettings>,
    acp: Option<AcpSettings>,
}

/// `[agents.openai]` and `[agents.anthropic]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct HttpSettings {
    base_url: Option<String>,
    /// The environment variable that holds the key; empty for an API that wants none.
    api_key_env: Option<String>,
    model: Option<String>,
    /// Whether the models know efforts.
    effort: bool,
    max_tokens: Option<u32>,
    structured_output: Option<bool>,
    schema_attempts: Option<u32>,
    transient_retries: Option<u32>,
    max_retry_wait_ms: Option<u64>,
    stall_ms: Option<u64>,
    max_answer_bytes: Option<usize>,
}

/// `[agents.acp]`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub(crate) struct AcpSettings {
    command: Option<String>,
    /// Names of environment variables that agents get besides the usual ones.
    env: Vec<String>,
    permissions: PermissionsName,
    stall_ms: Option<u64>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PermissionsName {
    #[default]
    Deny,
    Read,
    Allow,
}

/// Reads `agents = "name"` as well as `[agents]`.
pub(crate) fn name_or_table<'de, D: Deserializer<'de>>(deserializer: D) -> Result<AgentsTable, D::Error> {
    struct NameOrTable;

    impl<'de> Visitor<'de> for NameOrTable {
        type Value = AgentsTable;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("the name of a provider, or a table of them")
        }

        fn visit_str<E: serde::de::Error>(self, name: &str) -> Result<AgentsTable, E> {
            let r#use = Some(Agents::deserialize(name.into_deserializer())?);
            Ok(AgentsTable { r#use, ..AgentsTable::default() })
        }

        fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<AgentsTable, A::Error> {
            AgentsTable::deserialize(MapAccessDeserializer::new(map))
        }
    }

    deserializer.deserialize_any(NameOrTable)
}

/// Sets what the settings say. The two providers have the same setters and different types.
macro_rules! configured {
    ($agents:expr, $settings:expr, $model:expr) => {{
        let (settings, ms) = ($settings, Duration::from_millis);
        let mut agents = $agents.model($model).structured_output(settings.structured_output.unwrap_or(true));
        if settings.effort {
            agents = agents.honours_effort();
        }
        configured!(agents, settings.max_tokens => max_tokens, settings.schema_attempts => schema_attempts,
            settings.transient_retries => transient_retries, settings.max_answer_bytes => max_answer_bytes,
            settings.max_retry_wait_ms.map(ms) => max_retry_wait, settings.stall_ms.map(ms) => stall);
        agents
    }};
    ($agents:ident, $($value:expr => $setter:ident),*) => {
        $(if let Some(value) = $value {
            $agents = $agents.$setter(value);
        })*
    };
}
/// The provider chosen, and what it needs.
#[derive(Debug)]
pub(crate) enum AgentSettings {
    Scripted {
        /// Nobody asked for them: there is no command.
        by_default: bool,
    },
    Command(CommandLine),
    OpenAi(HttpSettings),
    Anthropic(HttpSettings),
    Acp {
        command: CommandLine,
        permissions: Permissions,
        /// The longest silence, where one is set.
        stall: Option<Duration>,
    },
    /// The MCP client's own model.
    Sampling,
}

/// A command, and where it was written.
#[derive(Debug)]
pub(crate) struct CommandLine {
    line: String,
    env: Vec<String>,
    /// The option or key, for errors.
    origin: String,
    /// The folder of the settings file, from which a relative path of the program goes.
    folder: Option<PathBuf>,
}

impl AgentSettings {
    /// Chooses by the options, then the settings file, which lies at `path`.
    pub(crate) fn choose(
        args: &SettingsArgs,
        table: AgentsTable,
        command: Option<String>,
        env: Vec<String>,
        path: Option<&Path>,
    ) -> Result<Self> {
        let option = args.agent_command.as_ref();
        let only = match (&table.openai, &table.anthropic, &table.acp) {
            (Some(_), None, None) => Some(Agents::OpenAi),
            (None, Some(_), None) => Some(Agents::Anthropic),
            (None, None, Some(_)) => Some(Agents::Acp),
            _ => None,
        };
        let chosen = args.agents.or_else(|| match (option, table.r#use) {
            // A command that is given now runs: as an agent of the kind that the file wants, if that takes one.
            (Some(_), Some(Agents::Acp)) => Some(Agents::Acp),
            (Some(_), _) => Some(Agents::Command),
            (None, chosen) => chosen.or(command.as_ref().map(|_| Agents::Command)).or(only),
        });
        let written = |line: Option<String>, env, key| match (option, line) {
            (Some(line), _) => {
                Some(CommandLine { line: line.clone(), env, origin: "--agent-command".into(), folder: None })
            }
            (None, Some(line)) => {
                let folder = path.and_then(Path::parent).map(Path::to_path_buf);
                let file = path.unwrap_or(Path::new("fanfold.toml")).display();
                Some(CommandLine { line, env, origin: format!("{file}: {key}"), folder })
            }
            (None, None) => None,
        };
        if let (
            Some(agents @ (Agents::Scripted | Agents::OpenAi | Agents::Anthropic | Agents::Sampling)),
            Some(_),
        ) = (chosen, option)
        {
            let name =
                agents.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            bail!("--agent-command would have no effect with --agents {name}; leave one of them out");
        }
        Ok(match chosen {
            None => Self::Scripted { by_default: true },
            Some(Agents::Scripted) => Self::Scripted { by_default: false },
            Some(Agents::Sampling) => Self::Sampling,
            Some(Agents::OpenAi) => Self::OpenAi(table.openai.unwrap_or_default()),
            Some(Agents::Anthropic) => Self::Anthropic(table.anthropic.unwrap_or_default()),
            Some(Agents::Command) => Self::Command(written(command, env, "agentCommand").context(
                "--agents command needs to know which: add --agent-command, for example \"claude -p\"",
            )?),
            Some(Agents::Acp) => {
                let AcpSettings { command, env, permissions, stall_ms } = table.acp.unwrap_or_default();
                let permissions = match permissions {
                    PermissionsName::Deny => Permissions::Deny,
                    PermissionsName::Read => Permissions::Read,
                    PermissionsName::Allow => Permissions::Allow,
                };
                let command = written(command, env, "command of [agents.acp]").context(
                    "--agents acp needs to know which: add --agent-command, or a command to [agents.acp] in \
                     fanfold.toml",
                )?;
                Self::Acp { command, permissions, stall: stall_ms.map(Duration::from_millis) }
            }
        })
    }

    /// Makes the provider. If it gives no worktrees for want of a repository, says why.
    pub(crate) async fn make(&self, settings: &Settings) -> Result<(Box<dyn Subagents>, Option<String>)> {
        let mut no_worktrees = None;
        // Of `--model`, or of the file's top; as the provider calls it.
        let model =
            settings.model.as_deref().map(|model| settings.models.get(model).map_or(model, String::as_str));
        let agents: Box<dyn Subagents> = match self {
            Self::Scripted { .. } => Box::new(Scripted::new()),
            Self::Sampling => {
                bail!(
                    "--agents sampling is for `fanfold mcp`: only there is a client whose model could be asked"
                )
            }
            Self::Command(command) => {
                let mut command = command.make()?;
                let here = std::env::current_dir().context("failed to tell the current folder")?;
                match Worktrees::open(&here, settings.worktree_base.as_deref()).await {
                    Ok(worktrees) => command = command.worktrees(worktrees),
                    Err(error) if settings.worktree_base.is_some() => {
                        return Err(error).context("--worktree-base");
                    }
                    Err(error) => no_worktrees = Some(error.to_string()),
                }
                Box::new(command)
            }
            Self::Acp { command, permissions, stall } => {
                let agents = Acp::new(command.make()?).permissions(*permissions);
                Box::new(if stall.is_some() { agents.stall(*stall) } else { agents })
            }
            Self::OpenAi(settings) => {
                let key = settings.key("agents.openai", "OPENAI_API_KEY")?;
                let url = settings.base_url.as_deref().unwrap_or(OpenAi::BASE_URL);
                let agents = OpenAi::new(url, key).context("baseUrl of [agents.openai]")?;
                Box::new(configured!(agents, settings, settings.model("agents.openai", model)?))
            }
            Self::Anthropic(settings) => {
                let key = settings.key("agents.anthropic", "ANTHROPIC_API_KEY")?;
                let url = settings.base_url.as_deref().unwrap_or(Anthropic::BASE_URL);
                let agents = Anthropic::new(url, key).context("baseUrl of [agents.anthropic]")?;
                Box::new(configured!(agents, settings, settings.model("agents.anthropic", model)?))
            }
        };
        Ok((agents, no_worktrees))
    }
}

impl HttpSettings {
    fn key(&self, table: &str, usual: &str) -> Result<Option<ApiKey>> {
        match self.api_key_env.as_deref() {
            Some("") => Ok(None),
            variable => {
                let key = ApiKey::from_env(variable.unwrap_or(usual));
                key.map(Some).with_context(|| format!("apiKeyEnv of [{table}]"))
            }
        }
    }

    fn model(&self, table: &str, model: Option<&str>) -> Result<String> {
        let model = model.or(self.model.as_deref()).map(str::to_owned);
        model.with_context(|| format!("no model is set: add --model, or model to [{table}] in fanfold.toml"))
    }
}

impl CommandLine {
    fn make(&self) -> Result<Command> {
        let mut command = Command::parse(&self.line).with_context(|| self.origin.clone())?;
        if let Some(folder) = &self.folder {
            command = command.relative_to(folder);
        }
        for name in &self.env {
            command = command.inherit(name);
        }
        Ok(command)
    }
}

//! The environment of a child: what it inherits, what it is told.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fmt;

use fanfold::{AgentRequest, Support};

use crate::worktree::Place;

/// What every child inherits, here and on Windows: where things are and how to show them, no secrets.
const INHERITED: [&str; 16] = [
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "LANGUAGE",
    "TZ",
    "TERM",
    "TMPDIR",
    "XDG_CACHE_HOME",
    "XDG_CONFIG_HOME",
    "XDG_DATA_HOME",
    "XDG_STATE_HOME",
    "XDG_BIN_HOME",
    "XDG_RUNTIME_DIR",
];
const INHERITED_ON_WINDOWS: [&str; 12] = [
    "SystemRoot",
    "SystemDrive",
    "ComSpec",
    "PATHEXT",
    "TEMP",
    "TMP",
    "USERNAME",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "ProgramFiles",
];

/// The longest schema, and the longest instructions, passed in a variable, in bytes: Linux refuses a program any string above 128 KiB.
const MAX_TEXT_BYTES: usize = 64 * 1024;

/// The variable with the instructions of the kind of agent that the host defines.
const INSTRUCTIONS: &str = "FANFOLD_AGENT_INSTRUCTIONS";

/// What all children of a command get.
#[derive(Clone, Default)]
pub(super) struct Environment(BTreeMap<OsString, OsString>);

impl Environment {
    /// What a child needs to find its way, from the environment of this process.
    pub(super) fn minimal() -> Self {
        Self(std::env::vars_os().filter(|(name, _)| is_inherited(name)).collect())
    }

    pub(super) fn inherit(&mut self, name: &str) {
        if let Some(value) = std::env::var_os(name) {
            self.set(name.into(), value);
        }
    }

    pub(super) fn set(&mut self, name: OsString, value: OsString) {
        self.0.insert(name, value);
    }

    /// Makes this the environment of a process, and adds what the call of `agent()` says.
    pub(super) fn apply(
        &self,
        command: &mut tokio::process::Command,
        request: &AgentRequest,
        attempt: u32,
        place: Option<&Place>,
    ) {
        command.env_clear().envs(&self.0).envs(variables(request, attempt));
        if let Some(place) = place {
            command.envs(place.variables());
        }
    }
}

/// Names only: values may be keys.
impl fmt::Debug for Environment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

fn is_inherited(name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    if cfg!(windows) {
        let mut names = INHERITED.iter().chain(&INHERITED_ON_WINDOWS);
        return names.any(|inherited| inherited.eq_ignore_ascii_case(name));
    }
    INHERITED.contains(&name) || name.starts_with("LC_")
}

/// The options that are up to the program: the name, its variable, and whether it is honoured.
pub(super) fn hints(support: &mut Support) -> [(&'static str, &'static str, &mut bool); 5] {
    [
        ("model", "FANFOLD_MODEL", &mut support.model),
        ("provider", "FANFOLD_PROVIDER", &mut support.provider),
        ("effort", "FANFOLD_EFFORT", &mut support.effort),
        ("agentType", "FANFOLD_AGENT_TYPE", &mut support.agent_type),
        ("stallMs", "FANFOLD_STALL_MS", &mut support.stall),
    ]
}

/// Whether the prompt must hold the instructions of the kind of agent, because the program does not read them.
pub(super) fn instructs_by_prompt(words: &[String], support: Support, request: &AgentRequest) -> bool {
    let Some(definition) = &request.options.definition else { return false };
    let reads = words.iter().any(|word| word.contains(INSTRUCTIONS));
    let readable = definition.instructions.len() <= MAX_TEXT_BYTES;
    !(support.agent_type || reads && readable)
}

/// What the call of `agent()` says, as variables; see [`Command`](super::Command).
fn variables(request: &AgentRequest, attempt: u32) -> impl Iterator<Item = (&'static str, String)> {
    let options = request.options.clone();
    let fits = |text: &String| text.len() <= MAX_TEXT_BYTES;
    let schema = options.schema.map(|schema| schema.to_string()).filter(fits);
    let definition = options.definition.as_deref();
    let instructions = definition.map(|definition| definition.instructions.clone()).filter(fits);
    let tools = definition.and_then(|definition| Some(definition.tools.as_ref()?.join(",")));
    [
        ("FANFOLD_RUN_ID", Some(request.run_id.to_string())),
        ("FANFOLD_SEQ", Some(request.seq.to_string())),
        ("FANFOLD_ATTEMPT", Some(attempt.to_string())),
        ("FANFOLD_LABEL", Some(request.label.to_string())),
        ("FANFOLD_PHASE", request.phase.as_deref().map(str::to_owned)),
        ("FANFOLD_SCHEMA", schema),
        ("FANFOLD_MODEL", options.model),
        ("FANFOLD_PROVIDER", options.provider),
        ("FANFOLD_EFFORT", options.effort),
        ("FANFOLD_AGENT_TYPE", options.agent_type),
        (INSTRUCTIONS, instructions),
        ("FANFOLD_AGENT_TOOLS", tools),
        ("FANFOLD_TIMEOUT_MS", options.timeout_ms.map(|ms| ms.to_string())),
        ("FANFOLD_STALL_MS", options.stall_ms.map(|ms| ms.to_string())),
        ("FANFOLD_RETRIES", options.retries.map(|times| times.to_string())),
    ]
    .into_iter()
    // A variable cannot hold NUL.
    .filter_map(|(name, value)| Some((name, value?.replace('\0', ""))))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn options_not_given_have_no_variable() {
        let names: Vec<_> = variables(&AgentRequest::new("p"), 1).collect();
        let [run, seq, attempt] = ["FANFOLD_RUN_ID", "FANFOLD_SEQ", "FANFOLD_ATTEMPT"];
        let always =
            [(run, "".into()), (seq, "1".into()), (attempt, "1".into()), ("FANFOLD_LABEL", "p".into())];
        assert_eq!(names, always);
    }

    #[test]
    fn values_that_a_process_cannot_be_given_are_mended_or_left_out() {
        let mut request = AgentRequest::new("p");
        request.label = "a\0b".into();
        request.options.schema = Some(json!({"title": "x".repeat(MAX_TEXT_BYTES)}));
        let variables: BTreeMap<_, _> = variables(&request, 1).collect();
        assert_eq!(variables["FANFOLD_LABEL"], "ab");
        assert!(!variables.contains_key("FANFOLD_SCHEMA"));
    }

    #[test]
    fn values_are_not_shown() {
        let mut environment = Environment::default();
        environment.set("KEY".into(), "secret".into());
        assert_eq!(format!("{environment:?}"), r#"{"KEY"}"#);
    }
}

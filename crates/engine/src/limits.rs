//! Settings that bound a run, and their checks.

use std::num::NonZeroUsize;
use std::thread::available_parallelism;
use std::time::Duration;

use fanfold_types::{ErrorCode, WorkflowError};
use serde::{Deserialize, Serialize};

/// What a script may use. Every limit has a code that says when it was reached.
///
/// The names in JSON are those in camelCase; unknown names are refused.
///
/// ```
/// let limits: fanfold::Limits = serde_json::from_str(r#"{"maxTotalAgents": 50}"#).unwrap();
/// assert_eq!((limits.max_total_agents, limits.sync_timeout_ms), (50, 5000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Limits {
    /// Children that run at once, over all runs of the engine; the others wait in order. Default 0, which means
    /// the number of processors less two, at least 1 and at most 16.
    pub max_concurrent_agents: u32,
    /// `agent()` calls accepted in one run (`AGENT_CAP`). Default 1000.
    pub max_total_agents: u32,
    /// `workflow()` calls accepted in one run, those of the workflows inside of it included (`AGENT_CAP`). Default 100.
    pub max_nested_workflows: u32,
    /// Output tokens that the agents of a run may take together, as far as their provider tells (`AGENT_CAP`):
    /// `budget.total` to the script. Agents that run then go on to their end, others do not start. Default none.
    pub max_output_tokens: Option<u64>,
    /// Items in one `parallel()` or `pipeline()` (`ITEM_CAP`). Default 4096.
    pub max_items_per_call: u32,
    /// The longest stretch of computation without awaiting the host, in milliseconds (`TIME_LIMIT`). Counts the
    /// time the script itself computes, not the time it waits for its turn on the processor. Default 5000.
    pub sync_timeout_ms: u64,
    /// How long cancelling and disposing wait, in milliseconds, before they use force. Default 5000.
    pub dispose_grace_ms: u64,
    /// Computation of a whole run in units of WebAssembly fuel, about one an instruction (`CPU_LIMIT`).
    /// Default 100 billion, about a minute.
    pub max_fuel: u64,
    /// Memory of the sandbox, in bytes (`MEMORY_LIMIT`). The sandboxes of workflows inside of a run share it, but
    /// for what an empty one takes. Default 64 MiB.
    pub max_memory_bytes: u64,
    /// Size of a script, in bytes. Default 512 KiB.
    pub max_script_bytes: u64,
    /// Size of `args` as JSON, in bytes. Default 8 MiB.
    pub max_args_bytes: u64,
    /// Size of the value as JSON, in bytes (`OUTPUT_LIMIT`). Default 8 MiB.
    pub max_result_bytes: u64,
    /// Prompts and options of all `agent()` calls of a run together, in bytes (`OUTPUT_LIMIT`). Default 64 MiB.
    pub max_request_bytes: u64,
    /// `phase()` and `log()` calls of a run (`OUTPUT_LIMIT`). Default 10,000.
    pub max_narration_events: u64,
    /// Text of all `phase()` and `log()` calls of a run together, in bytes (`OUTPUT_LIMIT`). Default 4 MiB.
    pub max_narration_bytes: u64,
    /// Timers that a script may have set at once (`OUTPUT_LIMIT`). Default 10,000.
    pub max_timers: u32,
    /// The longest a run may take, in milliseconds (`TIME_LIMIT`). Default none.
    pub max_duration_ms: Option<u64>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            max_concurrent_agents: 0,
            max_total_agents: 1000,
            max_nested_workflows: 100,
            max_output_tokens: None,
            max_items_per_call: 4096,
            sync_timeout_ms: 5000,
            dispose_grace_ms: 5000,
            max_fuel: 100_000_000_000,
            max_memory_bytes: 64 << 20,
            max_script_bytes: 512 << 10,
            max_args_bytes: 8 << 20,
            max_result_bytes: 8 << 20,
            max_request_bytes: 64 << 20,
            max_narration_events: 10_000,
            max_narration_bytes: 4 << 20,
            max_timers: 10_000,
            max_duration_ms: None,
        }
    }
}

impl Limits {
    /// Checks that every limit lets something through.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the setting's JSON name as its path.
    pub fn validate(&self) -> Result<(), WorkflowError> {
        let positive = [
            ("maxTotalAgents", u64::from(self.max_total_agents)),
            ("maxOutputTokens", self.max_output_tokens.unwrap_or(1)),
            ("maxItemsPerCall", u64::from(self.max_items_per_call)),
            ("syncTimeoutMs", self.sync_timeout_ms),
            ("maxFuel", self.max_fuel),
            ("maxScriptBytes", self.max_script_bytes),
            ("maxArgsBytes", self.max_args_bytes),
            ("maxResultBytes", self.max_result_bytes),
            ("maxRequestBytes", self.max_request_bytes),
            ("maxDurationMs", self.max_duration_ms.unwrap_or(1)),
        ];
        if let Some((name, _)) = positive.iter().find(|(_, value)| *value == 0) {
            return Err(invalid(name, "must be a positive integer, got 0"));
        }
        if self.max_memory_bytes < MIN_MEMORY_BYTES {
            let got = self.max_memory_bytes;
            return Err(invalid(
                "maxMemoryBytes",
                &format!(
                    "must be at least {MIN_MEMORY_BYTES} bytes, which an empty sandbox needs, got {got}"
                ),
            ));
        }
        Ok(())
    }

    /// How many children may run at once: `max_concurrent_agents`, with 0 resolved for this machine.
    pub fn concurrent_agents(&self) -> usize {
        match self.max_concurrent_agents {
            0 => available_parallelism().map_or(1, NonZeroUsize::get).saturating_sub(2).clamp(1, 16),
            n => n as usize,
        }
    }

    /// `dispose_grace_ms` as a duration.
    pub(crate) fn grace(&self) -> Duration {
        Duration::from_millis(self.dispose_grace_ms)
    }
}

/// Below this the sandbox cannot even be made: its stack and the memory image of QuickJS.
const MIN_MEMORY_BYTES: u64 = 12 << 20;

fn invalid(name: &str, what: &str) -> WorkflowError {
    ErrorCode::InvalidArgument.error(format!("{name} {what}")).on(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_lets_nothing_through_is_refused_by_its_json_name() {
        for name in [
            "maxTotalAgents",
            "maxItemsPerCall",
            "syncTimeoutMs",
            "maxFuel",
            "maxMemoryBytes",
            "maxDurationMs",
        ] {
            let limits: Limits = serde_json::from_value(serde_json::json!({name: 0})).unwrap();
            assert_eq!(limits.validate().unwrap_err().path.as_deref(), Some(name));
        }
        assert_eq!(Limits::default().validate(), Ok(()));
    }

    #[test]
    fn an_unknown_setting_is_refused_by_name() {
        let error = serde_json::from_str::<Limits>(r#"{"maxAgents": 1}"#).unwrap_err();
        assert!(error.to_string().contains("maxAgents"), "{error}");
    }

    #[test]
    fn concurrency_is_never_zero() {
        assert!((1..=16).contains(&Limits::default().concurrent_agents()));
    }
}

//! How many runs are kept, and how long.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// How many runs a registry keeps, and how long.
///
/// - A run that runs is never dropped.
/// - A result is kept until it was read to its end and its room is needed, or its time is over. One that nobody has
///   read is never dropped before its time.
/// - When there is no room, no further run starts; the error says what to do.
///
/// In JSON the names are in camelCase; unknown names are refused.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct Retention {
    /// Runs in the registry, running and kept together. Default 256.
    pub max_runs: usize,
    /// Size of all results that are kept, in bytes. Runs that run already may exceed it by a result each. Default
    /// 256 MiB.
    pub max_bytes: u64,
    /// How long a result is kept after the end of its run, or after it was last read from, in milliseconds. Default
    /// one hour.
    pub keep_ms: u64,
}

impl Default for Retention {
    fn default() -> Self {
        Self { max_runs: 256, max_bytes: 256 << 20, keep_ms: 3_600_000 }
    }
}

impl Retention {
    /// `keep_ms` as a duration.
    pub fn keep(&self) -> Duration {
        Duration::from_millis(self.keep_ms)
    }
}

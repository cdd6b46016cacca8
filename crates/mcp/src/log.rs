//! Log lines of scripts as MCP logging messages.
#![expect(
    deprecated,
    reason = "sampling and logging, which clients of today have, are to go from later protocols"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering};

use rmcp::model::{LoggingLevel, LoggingMessageNotificationParam};
use rmcp::service::{Peer, RoleServer, ServiceError};
use serde_json::json;

use crate::outbox::Line;

/// The least severe level that a session's client wants to see; `info` until it says otherwise.
#[derive(Clone)]
pub(crate) struct Level(Arc<AtomicU8>);

impl Default for Level {
    fn default() -> Self {
        Self(Arc::new(AtomicU8::new(severity(LoggingLevel::Info))))
    }
}

impl Level {
    pub(crate) fn set(&self, level: LoggingLevel) {
        self.0.store(severity(level), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A level's place in the protocol's order, the least severe first.
pub(crate) fn severity(level: LoggingLevel) -> u8 {
    match level {
        LoggingLevel::Debug => 0,
        LoggingLevel::Info => 1,
        LoggingLevel::Notice => 2,
        LoggingLevel::Warning => 3,
        LoggingLevel::Error => 4,
        LoggingLevel::Critical => 5,
        LoggingLevel::Alert => 6,
        _ => 7,
    }
}

/// Sends a line, if it is severe enough.
pub(crate) async fn send(
    peer: &Peer<RoleServer>,
    least: u8,
    run_id: &str,
    line: Line,
) -> Result<(), ServiceError> {
    if severity(line.level) < least {
        return Ok(());
    }
    let data = json!({"runId": run_id, "message": line.text});
    let message = LoggingMessageNotificationParam::new(line.level, data).with_logger("workflow");
    peer.notify_logging_message(message).await
}

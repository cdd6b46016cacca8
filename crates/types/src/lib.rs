//! What a Fanfold run says of itself, as plain data.
//!
//! Everything here serialises with serde to the names that scripts, models and browsers see, and nothing
//! here runs anything: no clock, no I/O, no threads. The crate is `no_std` and builds for
//! `wasm32-unknown-unknown`, so a web page can share the types and the checks.
//!
//! # Layout
//! - [`Meta`], [`Phase`]: what a script says it is, validated with every violation reported at once
//! - [`Event`], [`EventKind`]: what observers of a run see, in order
//! - [`RunResult`], [`StopReason`]: how a run ended
//! - [`AgentFailure`], [`FailureGroup`]: agents without success, and those that have the same reason
//! - [`Usage`]: tokens that children used, and what they cost ([`Usd`])
//! - [`WorkflowError`], [`ErrorCode`]: the one error type, with stable codes
//! - [`SessionRecord`], [`RecordChecker`]: what a tool call leaves in an agent's session, and its invariants
//! - [`RunView`]: a run as people look at it, folded from any of these; [`Line`]: what logs hold of them
//! - [`text`]: a result as a model reads it
//!
//! The feature `typescript` gives the types their TypeScript counterparts, for the npm package (`crates/web`).
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(feature = "typescript")]
extern crate std;

mod error;
mod event;
mod failures;
mod line;
mod meta;
mod record;
mod result;
pub mod text;
mod usage;
mod view;

pub use error::{ErrorCode, WorkflowError};
pub use event::{
    Agent, AgentOutcome, AgentProgress, AgentRetry, EndedAgent, Event, EventKind, ProgressKind, QueuedAgent,
    RefusedAgent, RunEnd,
};
pub use failures::{FailureGroup, group_failures};
pub use line::{Line, LineError, ResultLine};
pub use meta::{Meta, Phase};
pub use record::{RecordChecker, RecordError, SessionRecord};
pub use result::{AgentFailure, RunResult, StopReason, Worktree};
pub use usage::{Usage, Usd};
pub use view::{
    AgentState, AgentView, LogView, PhaseView, RetryView, RunHead, RunState, RunView, Tally, ViewChanges,
};

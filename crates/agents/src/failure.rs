//! Why an agent failed: a kind that programs can rely on, and words for people.

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use fanfold::{ChildError, FailureReason};

use crate::ask::Unsatisfied;

/// The longest message of a reason, in bytes; the ends of what the agent had said follow it.
pub(crate) const MESSAGE_BYTES: usize = 1600;

/// Declares [`FailureKind`] with its wire names, so that both cannot drift apart.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $name:ident = $wire:literal,)*) => {
        /// What kind of failure ended an agent.
        ///
        /// It is the kind of a [`FailureReason`], in the events of a run and in its result. Kinds are stable, the words
        /// of reasons are not.
        ///
        /// ```
        /// use fanfold_agents::FailureKind;
        /// assert_eq!(FailureKind::named("quota"), Some(FailureKind::Quota));
        /// assert_eq!(FailureKind::named("lost"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailureKind {
            $($(#[$doc])* $name,)*
        }

        impl FailureKind {
            /// Every kind.
            pub const ALL: &[FailureKind] = &[$(FailureKind::$name,)*];

            /// The kind as events and results spell it.
            pub const fn as_str(self) -> &'static str {
                match self { $(FailureKind::$name => $wire,)* }
            }
        }
    };
}

failure_kinds! {
    /// The key or login is refused. Fatal: the run starts no more children.
    Authentication = "authentication",
    /// The quota or the credit is used up. Fatal: the run starts no more children.
    Quota = "quota",
    /// The key may not do this.
    Permission = "permission",
    /// Too many requests at once. Tried again.
    RateLimit = "rateLimit",
    /// The other side is overloaded or broken. Tried again.
    Server = "server",
    /// No connection, or it ended before anything of the answer came. Tried again.
    Connection = "connection",
    /// The answer broke off, or ended and did not say why.
    CutOff = "cutOff",
    /// The child took longer than `timeoutMs`.
    Timeout = "timeout",
    /// The child said nothing for longer than `stallMs`.
    Stall = "stall",
    /// The request is refused as it is: an unknown model, a prompt that is too long.
    InvalidRequest = "invalidRequest",
    /// The model declined.
    Refusal = "refusal",
    /// A content filter stopped the prompt or the answer.
    ContentFilter = "contentFilter",
    /// The model stopped at a limit of its own, with the answer incomplete.
    Length = "length",
    /// The answer has more bytes than allowed.
    AnswerSize = "answerSize",
    /// No answer satisfied the schema.
    Schema = "schema",
    /// What came is not what the protocol says, or an answer without text.
    Protocol = "protocol",
    /// The agent's process ended before its answer.
    Exit = "exit",
}

impl FailureKind {
    /// The kind of this name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| kind.as_str() == name)
    }

    /// Whether every other child would fail so too.
    pub const fn is_fatal(self) -> bool {
        matches!(self, Self::Authentication | Self::Quota)
    }

    /// Whether it is tried again without having been asked to: there is no answer, and it may pass.
    pub const fn is_transient(self) -> bool {
        matches!(self, Self::RateLimit | Self::Server | Self::Connection)
    }

    /// Whether trying again can change anything.
    pub(crate) const fn can_pass(self) -> bool {
        !self.is_fatal() && !matches!(self, Self::Permission | Self::InvalidRequest | Self::Timeout)
    }
}

impl fmt::Display for FailureKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How an attempt ended without an answer.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Failure {
    /// It was told to stop.
    Stopped(Unfinished),
    /// It failed.
    Failed(Reason),
    /// The provider itself broke.
    Broken(String),
}

/// How far an attempt had come when it was told to stop.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unfinished {
    /// All of the answer so far.
    pub text: String,
    /// What did not happen, as a clause such as `the process did not exit`; empty where that says nothing.
    pub missing: &'static str,
}

/// Why an attempt failed.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Reason {
    /// Its kind. It says whether it may pass.
    pub kind: FailureKind,
    /// What happened, for people.
    pub message: String,
    /// How long the other side asked to wait before the next try.
    pub wait: Option<Duration>,
    /// The error that it comes of.
    pub source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Reason {
    /// A reason of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), wait: None, source: None }
    }

    /// The same reason, with how long the other side asked to wait.
    #[must_use]
    pub fn wait(self, wait: Option<Duration>) -> Self {
        Self { wait, ..self }
    }

    /// The same reason, with the error that it comes of.
    #[must_use]
    pub fn of(self, source: impl Error + Send + Sync + 'static) -> Self {
        Self { source: Some(Arc::new(source)), ..self }
    }
}

/// The sources are not compared.
impl PartialEq for Reason {
    fn eq(&self, other: &Self) -> bool {
        (self.kind, &self.message, self.wait) == (other.kind, &other.message, other.wait)
    }
}

impl Failure {
    /// A failure of this kind.
    pub fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Failed(Reason::new(kind, message))
    }

    pub(crate) fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Failed(reason) => Some(reason.kind),
            Self::Stopped(_) | Self::Broken(_) => None,
        }
    }
}

impl From<Unsatisfied> for Failure {
    fn from(unsatisfied: Unsatisfied) -> Self {
        match unsatisfied {
            Unsatisfied::Wrong { .. } => Self::new(FailureKind::Schema, unsatisfied.to_string()),
            Unsatisfied::ReasoningAlone { .. } => Self::new(FailureKind::Protocol, unsatisfied.to_string()),
            Unsatisfied::Unreadable(_) => Self::Broken(unsatisfied.to_string()),
        }
    }
}

impl From<Failure> for ChildError {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::Stopped(_) => Self::Cancelled,
            Failure::Broken(reason) => Self::broken(reason),
            Failure::Failed(Reason { kind, message, source, .. }) => {
                let mut reason = FailureReason::of_kind(kind.as_str(), message);
                reason.source = source;
                if kind.is_fatal() { Self::fatal(reason) } else { Self::failed(reason) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_comes_through_to_the_engine() {
        for kind in FailureKind::ALL {
            let error = ChildError::from(Failure::new(*kind, "why: because"));
            assert_eq!(error.to_string(), format!("{kind}: why: because"));
            let (ChildError::Failed(reason) | ChildError::Fatal(reason)) = error else { panic!("{kind}") };
            assert_eq!(FailureKind::named(&reason.kind.unwrap()), Some(*kind));
        }
    }

    #[test]
    fn fatal_kinds_end_the_run_and_are_never_tried_again() {
        let fatal: Vec<_> = FailureKind::ALL.iter().filter(|kind| kind.is_fatal()).collect();
        assert_eq!(fatal, [&FailureKind::Authentication, &FailureKind::Quota]);
        for kind in fatal {
            assert!(!kind.is_transient() && !kind.can_pass());
            assert!(matches!(Failure::new(*kind, "m").into(), ChildError::Fatal(_)));
        }
    }
}

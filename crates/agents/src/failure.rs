//! Why a child of a model API or a coding agent failed: a kind that programs can rely on, and words for people.

use std::fmt;
use std::time::Duration;

use fanfold::ChildError;

use crate::ask::Unsatisfied;

/// Declares [`FailureKind`] with its wire names, so that both cannot drift apart.
macro_rules! failure_kinds {
    ($($(#[$doc:meta])* $name:ident = $wire:literal,)*) => {
        /// What kind of failure ended a child, in the providers that speak to model APIs and coding agents.
        ///
        /// The reason of such a failure begins with its kind and a colon: `rateLimit: openai answered 429: …`. Kinds
        /// are stable, the words after them are not.
        ///
        /// ```
        /// use fanfold_agents::FailureKind;
        /// let reason = "quota: openai answered 429: You exceeded your current quota";
        /// assert_eq!(FailureKind::of(reason), Some(FailureKind::Quota));
        /// assert_eq!(FailureKind::of("exit status 1"), None);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum FailureKind {
            $($(#[$doc])* $name,)*
        }

        impl FailureKind {
            /// Every kind.
            pub const ALL: &[FailureKind] = &[$(FailureKind::$name,)*];

            /// The kind as reasons spell it.
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
    /// The kind that a reason begins with, if it does.
    pub fn of(reason: &str) -> Option<Self> {
        let (kind, _) = reason.split_once(':')?;
        Self::ALL.iter().copied().find(|known| known.as_str() == kind)
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

/// How a try ended without an answer.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Failure {
    /// It was told to stop.
    Cancelled,
    /// It failed.
    Failed(Reason),
    /// The provider itself broke.
    Broken(String),
}

/// Why a try failed.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Reason {
    pub(crate) kind: FailureKind,
    pub(crate) message: String,
    /// How long the other side asked to wait before the next try.
    pub(crate) wait: Option<Duration>,
}

impl Failure {
    pub(crate) fn new(kind: FailureKind, message: impl Into<String>) -> Self {
        Self::Failed(Reason { kind, message: message.into(), wait: None })
    }

    pub(crate) fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Failed(reason) => Some(reason.kind),
            Self::Cancelled | Self::Broken(_) => None,
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
            Failure::Cancelled => Self::Cancelled,
            Failure::Broken(reason) => Self::broken(reason),
            Failure::Failed(Reason { kind, message, .. }) => {
                let reason = format!("{kind}: {message}");
                if kind.is_fatal() { Self::fatal(reason) } else { Self::failed(reason) }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_found_in_the_reasons_it_makes() {
        for kind in FailureKind::ALL {
            let reason = ChildError::from(Failure::new(*kind, "why: because")).to_string();
            assert_eq!(FailureKind::of(&reason), Some(*kind), "{reason}");
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

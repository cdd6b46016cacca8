//! The one error type and its codes.

use alloc::string::String;
use core::fmt;

use serde::{Deserialize, Serialize};

/// Declares [`ErrorCode`] with its wire names, so that both cannot drift apart.
macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $wire:literal,)*) => {
        /// A stable name for what went wrong. Messages may change, codes do not.
        #[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
        #[non_exhaustive]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $wire)] $name,)*
        }

        impl ErrorCode {
            /// Every code.
            pub const ALL: &[ErrorCode] = &[$(ErrorCode::$name,)*];

            /// The code as scripts, models and JSON spell it.
            pub const fn as_str(self) -> &'static str {
                match self { $(ErrorCode::$name => $wire,)* }
            }
        }
    };
}

error_codes! {
    /// The script is not valid JavaScript.
    ScriptParse = "SCRIPT_PARSE",
    /// The metadata is not what [`Meta`](crate::Meta) asks for.
    MetaInvalid = "META_INVALID",
    /// A hook, the engine or a setting was given something it does not take.
    InvalidArgument = "INVALID_ARGUMENT",
    /// An option of `agent()` that nobody knows, or that the provider cannot guarantee.
    UnsupportedOption = "UNSUPPORTED_OPTION",
    /// A schema that cannot be enforced.
    UnsupportedSchema = "UNSUPPORTED_SCHEMA",
    /// More `agent()` calls than the run may make.
    AgentCap = "AGENT_CAP",
    /// More items than one `parallel()` or `pipeline()` takes.
    ItemCap = "ITEM_CAP",
    /// The provider could not start a child.
    AgentStart = "AGENT_START",
    /// The provider broke while a child ran.
    AgentResult = "AGENT_RESULT",
    /// A value that left the script is not plain JSON data.
    ResultUnserializable = "RESULT_UNSERIALIZABLE",
    /// The run was cancelled.
    Cancelled = "CANCELLED",
    /// The script computed too long without awaiting, or the run took too long.
    TimeLimit = "TIME_LIMIT",
    /// The script computed too much over the whole run.
    CpuLimit = "CPU_LIMIT",
    /// The script used too much memory.
    MemoryLimit = "MEMORY_LIMIT",
    /// The script recursed too deeply.
    StackLimit = "STACK_LIMIT",
    /// A text or value that enters or leaves the script is too large, or there are too many of them.
    OutputLimit = "OUTPUT_LIMIT",
    /// The script awaits something that nothing in flight can settle.
    Deadlock = "DEADLOCK",
    /// The sandbox itself failed. A fault of Fanfold, not of the script.
    Internal = "INTERNAL",
}

impl ErrorCode {
    /// The code with this wire name, if there is one.
    pub fn from_wire(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.as_str() == name)
    }

    /// An error with this code and message.
    pub fn error(self, message: impl Into<String>) -> WorkflowError {
        WorkflowError { code: Some(self), message: message.into(), path: None, line: None, column: None }
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What went wrong, where, and what to do about it.
///
/// ```
/// use fanfold_types::ErrorCode;
/// let error = ErrorCode::ItemCap.error("parallel() takes at most 4096 items");
/// assert_eq!(error.to_string(), "ITEM_CAP: parallel() takes at most 4096 items");
/// ```
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "typescript", derive(tsify::Tsify))]
pub struct WorkflowError {
    /// The stable code; none for an error that the script itself threw.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<ErrorCode>,
    /// What was wrong and what to do. For a script's own error its `name: message`, and its stack on the
    /// lines that follow.
    pub message: String,
    /// Where in a value: `findings[2].title`, `meta.phases[0]`; empty for the value itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Line in the text the author wrote, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
    /// Column in characters, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
}

impl WorkflowError {
    /// An error that the script itself threw: it has no code.
    pub fn thrown(message: impl Into<String>) -> Self {
        Self { code: None, message: message.into(), path: None, line: None, column: None }
    }

    /// The same error, at a place in the author's text.
    #[must_use]
    pub fn at(mut self, line: u32, column: u32) -> Self {
        (self.line, self.column) = (Some(line), Some(column));
        self
    }

    /// The same error, at a place in a value.
    #[must_use]
    pub fn on(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }
}

impl fmt::Display for WorkflowError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(code) = self.code {
            write!(f, "{code}: ")?;
        }
        f.write_str(&self.message)?;
        // A thrown error's place is in its stack already.
        if let (Some(line), Some(column), Some(_)) = (self.line, self.column, self.code) {
            write!(f, " (line {line}, column {column})")?;
        }
        Ok(())
    }
}

impl core::error::Error for WorkflowError {}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use super::*;

    #[test]
    fn every_code_survives_its_wire_name() {
        for code in ErrorCode::ALL {
            assert_eq!(ErrorCode::from_wire(code.as_str()), Some(*code));
            let json = serde_json::to_string(code).unwrap();
            assert_eq!(json, alloc::format!("\"{code}\""));
            assert_eq!(serde_json::from_str::<ErrorCode>(&json).unwrap(), *code);
        }
        assert_eq!(ErrorCode::from_wire("agent_cap"), None);
    }

    #[test]
    fn an_error_shows_its_code_and_place() {
        let error = ErrorCode::ScriptParse.error("unexpected token").at(3, 7);
        assert_eq!(error.to_string(), "SCRIPT_PARSE: unexpected token (line 3, column 7)");
        let thrown = WorkflowError::thrown("Error: boom\n    at workflow:1:7").at(1, 7);
        assert_eq!(thrown.to_string(), "Error: boom\n    at workflow:1:7");
    }
}

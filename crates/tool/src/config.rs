//! How the tool presents itself.

use fanfold::{ErrorCode, WorkflowError, text};
use serde::{Deserialize, Serialize};

/// Settings of the tool. In JSON the names are in camelCase; unknown names are refused.
///
/// ```
/// use fanfold_tool::ToolConfig;
/// let config: ToolConfig = serde_json::from_str(r#"{"toolName": "orchestrate"}"#).unwrap();
/// assert_eq!((config.tool_name.as_str(), config.max_result_chars), ("orchestrate", 50_000));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
#[non_exhaustive]
pub struct ToolConfig {
    /// The tool's name; those of the background tools begin with it. Letters, digits, `_` and `-`, at most 48.
    /// Default `workflow`.
    pub tool_name: String,
    /// How many characters of a value's JSON a model is shown at once; the value itself is never cut. Default
    /// 50,000.
    pub max_result_chars: usize,
    /// Whether the text of a completed call lists the agents that failed. The canonical value always does. Default
    /// no.
    pub note_failures: bool,
}

impl Default for ToolConfig {
    fn default() -> Self {
        Self {
            tool_name: "workflow".to_owned(),
            max_result_chars: text::DEFAULT_MAX_RESULT_CHARS,
            note_failures: false,
        }
    }
}

/// Providers take names of 64 characters at most; the background tools' endings need some.
const MAX_NAME_CHARS: usize = 48;

impl ToolConfig {
    /// Checks that model APIs take the name, and that something is shown.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` with the setting's JSON name as its path.
    pub fn validate(&self) -> Result<(), WorkflowError> {
        let name = &self.tool_name;
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if name.is_empty() || name.len() > MAX_NAME_CHARS || !name.chars().all(plain) {
            let message = format!(
                "toolName must be 1 to {MAX_NAME_CHARS} letters, digits, underscores and hyphens, got {name:?}"
            );
            return Err(ErrorCode::InvalidArgument.error(message).on("toolName"));
        }
        if self.max_result_chars == 0 {
            let message = "maxResultChars must be a positive integer, got 0";
            return Err(ErrorCode::InvalidArgument.error(message).on("maxResultChars"));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_that_no_model_could_use_is_refused_by_its_json_name() {
        for (json, path) in [
            (r#"{"toolName": ""}"#, "toolName"),
            (r#"{"toolName": "my tool"}"#, "toolName"),
            (r#"{"toolName": "naïve"}"#, "toolName"),
            (r#"{"maxResultChars": 0}"#, "maxResultChars"),
        ] {
            let config: ToolConfig = serde_json::from_str(json).unwrap();
            assert_eq!(config.validate().unwrap_err().path.as_deref(), Some(path), "{json}");
        }
        assert_eq!(ToolConfig::default().validate(), Ok(()));
        assert!(serde_json::from_str::<ToolConfig>(r#"{"name": "x"}"#).is_err());
    }
}

//! The host's side of `workflow()`: where the scripts of saved workflows come from.

use fanfold_types::{ErrorCode, WorkflowError};
use futures::future::BoxFuture;
use serde_json::Value;

/// Finds the workflows that scripts run by name or by path.
///
/// ```
/// use fanfold::{LoadError, WorkflowTarget, Workflows};
/// use futures::future::BoxFuture;
///
/// /// Knows one workflow.
/// struct Greeter;
///
/// impl Workflows for Greeter {
///     fn load(&self, target: WorkflowTarget) -> BoxFuture<'static, Result<String, LoadError>> {
///         Box::pin(async move {
///             match target {
///                 WorkflowTarget::Name(name) if name == "greet" => Ok("export const meta = {name: 'greet', \
///                     description: 'greets'}; return await agent(`Hello, ${args.name}`)".into()),
///                 _ => Err(LoadError::new("there is one workflow: greet")),
///             }
///         })
///     }
/// }
/// ```
pub trait Workflows: Send + Sync + 'static {
    /// The text of a workflow's script, with its `export const meta = {…}` header. It is checked like any script.
    ///
    /// Names and paths are the script's: an implementation decides what they may reach. It must not block; a panic
    /// ends the run. Dropping the future must stop the work.
    fn load(&self, target: WorkflowTarget) -> BoxFuture<'static, Result<String, LoadError>>;
}

/// Which workflow a script asks for. Neither is ever empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkflowTarget {
    /// `workflow("name")`.
    Name(String),
    /// `workflow({scriptPath: "path"})`.
    Path(String),
}

/// Why there is no such workflow, and which there are: `INVALID_ARGUMENT` to the script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct LoadError(pub String);

impl LoadError {
    /// A workflow that could not be found or read, and why.
    pub fn new(reason: impl Into<String>) -> Self {
        Self(reason.into())
    }
}

/// What `workflow()` runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Wanted {
    Saved(WorkflowTarget),
    /// `workflow({script: "text"})`.
    Script(String),
}

impl Wanted {
    /// Reads what a script passed, as JSON: a name, `{scriptPath}` or `{script}`.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT`.
    pub(crate) fn parse(json: &str) -> Result<Self, WorkflowError> {
        let invalid = |message: &str| {
            ErrorCode::InvalidArgument
                .error(format!("workflow() takes a name, {{scriptPath}} or {{script}} first: {message}"))
        };
        let value = serde_json::from_str(json).map_err(|error| invalid(&error.to_string()))?;
        let (wanted, text): (fn(String) -> Self, _) = match value {
            Value::String(name) => (|name| Self::Saved(WorkflowTarget::Name(name)), Some(name)),
            Value::Object(mut fields) => {
                if let Some(name) =
                    fields.keys().find(|name| !matches!(name.as_str(), "scriptPath" | "script"))
                {
                    return Err(invalid(&format!("there is no {name:?}")).on(name));
                }
                let text = |field: Option<Value>| match field {
                    Some(Value::String(text)) => Some(text),
                    _ => None,
                };
                match (fields.remove("scriptPath"), fields.remove("script")) {
                    (path @ Some(_), None) => (|path| Self::Saved(WorkflowTarget::Path(path)), text(path)),
                    (None, script @ Some(_)) => (Self::Script, text(script)),
                    _ => return Err(invalid("give one of the two")),
                }
            }
            _ => return Err(invalid("it is neither a string nor an object")),
        };
        text.filter(|text| !text.is_empty())
            .map(wanted)
            .ok_or_else(|| invalid("give a string that is not empty"))
    }

    /// What messages call it.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::Saved(WorkflowTarget::Name(text) | WorkflowTarget::Path(text)) => {
                format!("{:?}", text.chars().take(100).collect::<String>())
            }
            Self::Script(_) => "{script}".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_is_a_name_a_path_or_a_script() {
        let saved = |target| Ok(Wanted::Saved(target));
        for (json, wanted) in [
            (r#""sweep""#, saved(WorkflowTarget::Name("sweep".into()))),
            (r#"{"scriptPath":"a/b.js"}"#, saved(WorkflowTarget::Path("a/b.js".into()))),
            (r#"{"script":"return 1"}"#, Ok(Wanted::Script("return 1".into()))),
        ] {
            assert_eq!(Wanted::parse(json), wanted);
        }
        for json in [
            "1",
            "null",
            "[]",
            "{}",
            r#""""#,
            r#"{"script":""}"#,
            r#"{"script":1}"#,
            r#"{"name":"x"}"#,
            r#"{"script":"a","scriptPath":"b"}"#,
            r#"{"scriptPath":null}"#,
        ] {
            assert_eq!(Wanted::parse(json).unwrap_err().code, Some(ErrorCode::InvalidArgument), "{json}");
        }
    }
}

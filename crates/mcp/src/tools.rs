//! The tools as MCP describes them.

use std::collections::HashMap;
use std::sync::Arc;

use fanfold::AgentFailure;
use fanfold_tool::{Definition, RunState, ToolKind, WorkflowTool};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::Value;

pub(crate) struct Tools {
    list: Vec<Tool>,
    kinds: HashMap<String, ToolKind>,
}

impl Tools {
    pub(crate) fn new(tool: &WorkflowTool) -> Self {
        let definitions = tool.definitions();
        let kinds = definitions.iter().map(|definition| (definition.name.clone(), definition.kind)).collect();
        Self { list: definitions.into_iter().map(describe).collect(), kinds }
    }

    pub(crate) fn list(&self) -> &[Tool] {
        &self.list
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.list.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn kind(&self, name: &str) -> Option<ToolKind> {
        self.kinds.get(name).copied()
    }

    /// The name of a tool of this kind.
    pub(crate) fn name(&self, kind: ToolKind) -> &str {
        let named = self.kinds.iter().find(|(_, known)| **known == kind);
        named.map(|(name, _)| name.as_str()).unwrap_or_default()
    }
}

fn describe(definition: Definition) -> Tool {
    let Definition { kind, name, description, input_schema, output_schema, .. } = definition;
    let (title, annotations) = match kind {
        // What the agents do, nobody knows.
        ToolKind::Workflow => ("Run a workflow", ToolAnnotations::new().read_only(false).open_world(true)),
        ToolKind::Start => {
            ("Start a workflow in the background", ToolAnnotations::new().read_only(false).open_world(true))
        }
        ToolKind::Status => {
            ("How a workflow is doing", ToolAnnotations::new().read_only(true).open_world(false))
        }
        ToolKind::Result => {
            ("Read the result of a workflow", ToolAnnotations::new().read_only(true).open_world(false))
        }
        _ => ("Stop a workflow", ToolAnnotations::new().read_only(false).destructive(true).idempotent(true)),
    };
    let tool =
        Tool::new(name, description, object(input_schema)).with_title(title).with_annotations(annotations);
    tool.with_raw_output_schema(object(match kind {
        ToolKind::Workflow => schema_of_workflow_value(),
        _ => output_schema,
    }))
}

fn object(mut schema: Value) -> Arc<JsonObject> {
    drop_formats(&mut schema);
    match schema {
        Value::Object(schema) => Arc::new(schema),
        _ => Arc::default(),
    }
}

/// Leaves out what the widths of Rust's numbers are: clients complain of formats that they do not know.
fn drop_formats(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            let number =
                |format: &Value| format.as_str().is_some_and(|it| it.contains("int") || it == "double");
            if fields.get("format").is_some_and(number) {
                fields.remove("format");
            }
            fields.values_mut().for_each(drop_formats);
        }
        Value::Array(values) => values.iter_mut().for_each(drop_formats),
        _ => {}
    }
}

fn schema_of_workflow_value() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<WorkflowValue>().to_value()
}

/// What a call of the workflow tool gives.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowValue {
    /// The run's id.
    pub(crate) run_id: String,
    /// `completed`; or `running` for a run that takes longer than the call could wait.
    pub(crate) state: RunState,
    /// `agent()` calls that were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) agents_started: Option<u32>,
    /// What the script returned: any JSON value. Missing if it is too long for one answer, or not there yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub(crate) result: Option<Value>,
    /// Where to read on, in characters, if the value is too long for one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) next_offset: Option<u64>,
    /// The agents that could not start or ended without success, if any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<AgentFailure>,
    /// What must be known of the agents that gave the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub(crate) notice: Option<String>,
}

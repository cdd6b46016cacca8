//! The tools as MCP describes them.

use std::collections::HashMap;
use std::sync::Arc;

use fanfold::{AgentFailure, ErrorCode, Meta, WorkflowError};
use fanfold_tool::{Definition, RunState, ToolKind, WorkflowTool};
use rmcp::model::{JsonObject, Tool, ToolAnnotations};
use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::Serialize;
use serde_json::{Value, json};

/// What a client may call.
pub(crate) struct Tools {
    list: Vec<Tool>,
    called: HashMap<String, Called>,
}

/// What is behind a tool's name.
#[derive(Clone)]
pub(crate) enum Called {
    /// One of the tool crate's.
    Tool(ToolKind),
    /// A saved workflow.
    Saved(Arc<SavedWorkflow>),
}

/// A workflow that is a tool of its own: its args are the tool's arguments.
#[derive(Clone, Debug)]
pub struct SavedWorkflow {
    /// What it says it is. The tool has its name, and takes what its `args` say; without them any object.
    meta: Meta,
    /// The script, with a header that says the same, or without one.
    script: String,
}

impl SavedWorkflow {
    /// A tool that runs this script.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` for a name that no tool can have.
    pub fn new(meta: Meta, script: impl Into<String>) -> Result<Self, WorkflowError> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if !(1..=MAX_NAME_CHARS).contains(&meta.name.len()) || !meta.name.chars().all(plain) {
            let why =
                format!("a tool's name has 1 to {MAX_NAME_CHARS} letters, digits, underscores and hyphens");
            return Err(no_tool(&meta.name, &why));
        }
        Ok(Self { meta, script: script.into() })
    }

    /// What the workflow tool would be called with.
    pub(crate) fn arguments(&self, args: Value) -> Value {
        json!({"meta": self.meta, "script": self.script, "args": args})
    }
}

/// What model APIs take.
const MAX_NAME_CHARS: usize = 64;

fn no_tool(name: &str, why: &str) -> WorkflowError {
    let message = format!("the workflow {name:?} cannot be a tool: {why}; rename it");
    ErrorCode::InvalidArgument.error(message).on("meta.name")
}

impl Tools {
    /// # Errors
    /// `INVALID_ARGUMENT` for a saved workflow whose name another tool has.
    pub(crate) fn new(tool: &WorkflowTool, saved: &[SavedWorkflow]) -> Result<Self, WorkflowError> {
        let definitions = tool.definitions();
        let called = definitions.iter().map(|it| (it.name.clone(), Called::Tool(it.kind))).collect();
        let mut tools = Self { list: definitions.into_iter().map(describe).collect(), called };
        for workflow in saved {
            let name = &workflow.meta.name;
            let described = describe_saved(workflow, tools.name(ToolKind::Result));
            if tools.called.insert(name.clone(), Called::Saved(Arc::new(workflow.clone()))).is_some() {
                return Err(no_tool(name, "there is another tool of this name"));
            }
            tools.list.push(described);
        }
        Ok(tools)
    }

    pub(crate) fn list(&self) -> &[Tool] {
        &self.list
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Tool> {
        self.list.iter().find(|tool| tool.name == name)
    }

    pub(crate) fn called(&self, name: &str) -> Option<Called> {
        self.called.get(name).cloned()
    }

    /// The name of a tool of this kind.
    pub(crate) fn name(&self, kind: ToolKind) -> &str {
        let is_kind = |called: &Called| matches!(called, Called::Tool(known) if *known == kind);
        let named = self.called.iter().find(|(_, called)| is_kind(called));
        named.map(|(name, _)| name.as_str()).unwrap_or_default()
    }
}

fn describe_saved(workflow: &SavedWorkflow, reader: &str) -> Tool {
    let Meta { name, description, when_to_use, phases, args } = &workflow.meta;
    let mut text = description.clone();
    if let Some(when) = when_to_use {
        text.push_str(&format!("\n\nWhen to use it: {when}"));
    }
    let titles: Vec<&str> = phases.iter().flatten().map(|phase| &*phase.title).collect();
    if !titles.is_empty() {
        text.push_str(&format!("\n\nIts phases: {}.", titles.join(", ")));
    }
    text.push_str(&format!(
        "\n\nThis is a saved workflow: a script that fans work out to many subagents, so it may take minutes and costs \
         what they cost. A call that takes too long is answered with the run's id; {reader} waits for its value, and \
         reads on where a value is too long for one answer."
    ));
    let schema =
        args.clone().unwrap_or_else(|| JsonObject::from_iter([("type".to_owned(), json!("object"))]));
    let annotations = ToolAnnotations::new().read_only(false).open_world(true);
    Tool::new(name.clone(), text, Arc::new(schema))
        .with_title(name.clone())
        .with_annotations(annotations)
        .with_raw_output_schema(object(schema_of::<WorkflowValue>()))
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
        ToolKind::Workflow => schema_of::<WorkflowValue>(),
        _ => or_failure(output_schema),
    }))
}

/// The schema of what is either a value or a failure: all their fields, of which the ones or the others are required.
fn or_failure(mut schema: Value) -> Value {
    let mut failure = schema_of::<Failure>();
    let (Some(own), Some(others)) = (schema.as_object_mut(), failure.as_object_mut()) else { return schema };
    let required =
        |fields: &mut JsonObject| json!({"required": fields.remove("required").unwrap_or_else(|| json!([]))});
    let mut branches = match own.remove("anyOf") {
        Some(Value::Array(branches)) => branches,
        _ => vec![required(own)],
    };
    branches.push(required(others));
    own.insert("anyOf".to_owned(), branches.into());
    if let (Some(Value::Object(own)), Some(Value::Object(others))) =
        (own.get_mut("properties"), others.remove("properties"))
    {
        for (name, schema) in others {
            own.entry(name).or_insert(schema);
        }
    }
    schema
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

fn schema_of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().for_serialize().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    settings.into_generator().into_root_schema_for::<T>().to_value()
}

/// What a call of a tool that runs a workflow gives, also where that fails.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct WorkflowValue {
    /// The run's id. Missing if nothing has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub(crate) run_id: Option<String>,
    /// `completed`; `running` for a run that takes longer than the call could wait; else it failed.
    pub(crate) state: RunState,
    /// `agent()` calls that were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) agents_started: Option<u32>,
    /// What the script returned: any JSON value. Missing if it is too long for one answer, or not there yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Value")]
    pub(crate) result: Option<Value>,
    /// The first part of the value's JSON, indented by two spaces, if the value is too long for one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub(crate) page: Option<String>,
    /// The length of the whole, in characters, if the value is too long for one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) total: Option<u64>,
    /// Where to read on, in characters, if the value is too long for one answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) next_offset: Option<u64>,
    /// Why there is no value.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "WorkflowError")]
    pub(crate) error: Option<WorkflowError>,
    /// The agents that could not start or ended without success, if any; at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<AgentFailure>,
    /// How many more agents failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more_failures: u32,
    /// What must be known besides: of the agents that gave the answers, or of the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub(crate) notice: Option<String>,
}

impl WorkflowValue {
    /// Of a run in this state.
    pub(crate) fn new(run_id: String, state: RunState) -> Self {
        Self {
            run_id: Some(run_id),
            state,
            agents_started: None,
            result: None,
            page: None,
            total: None,
            next_offset: None,
            error: None,
            failures: Vec::new(),
            more_failures: 0,
            notice: None,
        }
    }
}

/// What any of the tools gives when it fails.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Failure {
    /// The run that it is about, if it is about one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "string"))]
    pub(crate) run_id: Option<String>,
    /// `error`, or `cancelled`.
    pub(crate) state: RunState,
    /// What went wrong and what to do.
    pub(crate) error: WorkflowError,
    /// `agent()` calls that were accepted.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(extend("type" = "integer"))]
    pub(crate) agents_started: Option<u32>,
    /// The agents that could not start or ended without success, if any; at most 50.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) failures: Vec<AgentFailure>,
    /// How many more agents failed.
    #[serde(skip_serializing_if = "is_zero")]
    pub(crate) more_failures: u32,
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}

//! What a host tells the model of the tools: names, descriptions, schemas, guidance.

use fanfold::Limits;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde::Serialize;
use serde_json::Value;

use crate::answer::{Completed, ResultPage, RunList, RunStatus, Started, Stopped};
use crate::arguments::{ResultArguments, RunArguments, StatusArguments, WorkflowArguments};
use crate::config::ToolConfig;
use crate::runs::Retention;
use crate::words;

/// Which of the tools.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ToolKind {
    /// Runs a workflow and answers with its value.
    Workflow,
    /// Starts a workflow and answers with its id at once.
    Start,
    /// How a run is doing. Changes nothing.
    Status,
    /// A run's result, page by page. Changes nothing but how long the result is kept.
    Result,
    /// Stops a run.
    Cancel,
}

impl ToolKind {
    /// All of them; those but the first need a registry of runs.
    pub const ALL: [Self; 5] = [Self::Workflow, Self::Start, Self::Status, Self::Result, Self::Cancel];

    /// The tool's name, where the first one is called `tool_name`.
    pub(crate) fn name(self, tool_name: &str) -> String {
        let ending = match self {
            Self::Workflow => "",
            Self::Start => "_start",
            Self::Status => "_status",
            Self::Result => "_result",
            Self::Cancel => "_cancel",
        };
        format!("{tool_name}{ending}")
    }
}

/// A tool as model APIs and the Model Context Protocol describe one.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Definition {
    /// Which of the tools it is.
    #[serde(skip)]
    pub kind: ToolKind,
    /// What the model calls.
    pub name: String,
    /// What it does and how to use it.
    pub description: String,
    /// The JSON Schema of its arguments, an object.
    pub input_schema: Value,
    /// The JSON Schema of its value, an object.
    pub output_schema: Value,
}

/// A section of the system prompt that says when to use the tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Guidance {
    /// The section's name.
    pub section: String,
    /// Its text.
    pub text: String,
}

impl Guidance {
    pub(crate) fn new(tool_name: &str) -> Self {
        let text = format!(
            "Use the {tool_name} tool ONLY when the user explicitly asks for a workflow or for large multi-agent \
             orchestration: you write a JavaScript script (the tool description documents the exact format) that fans \
             work out across many subagents with phases and structured results. For one or two delegations, prefer \
             plain subagent calls."
        );
        Self { section: format!("tool:{tool_name}"), text }
    }
}

impl Definition {
    /// The definition of a tool; `runs` says what is kept, where something is.
    pub(crate) fn new(
        kind: ToolKind,
        config: &ToolConfig,
        limits: &Limits,
        runs: Option<&Retention>,
    ) -> Self {
        let tool = &config.tool_name;
        let name = kind.name(tool);
        let kept = runs.map(|retention| words::duration(retention.keep_ms)).unwrap_or_default();
        let (description, input_schema, output_schema) = match kind {
            ToolKind::Workflow => {
                let mut description = authoring(limits);
                if runs.is_some() {
                    description.push_str(&background(tool, &kept));
                }
                (description, schema::<WorkflowArguments>(), schema::<Completed>())
            }
            ToolKind::Start => (
                format!(
                    "Starts a workflow in the background and answers with its run id at once, so that you can go on. \
                     Takes the same arguments as {tool}, whose description says how to write the script. Look after \
                     the run with {tool}_status, read its value with {tool}_result, stop it with {tool}_cancel. \
                     Results are kept for {kept}."
                ),
                schema::<WorkflowArguments>(),
                schema::<Started>(),
            ),
            ToolKind::Status => (
                format!(
                    "Tells how a workflow run is doing: its state, its phases and how many agents of each are \
                     running, completed, failed and cancelled, its last events and how long ago they were. To wait for \
                     the end, call {tool}_result with waitMs instead of asking again and again. Without a runId it \
                     lists your runs: those that run, and those whose results are kept."
                ),
                schema::<StatusArguments>(),
                either(schema::<RunStatus>(), schema::<RunList>()),
            ),
            ToolKind::Result => (
                format!(
                    "Reads the value that a workflow run returned, as JSON text in pages of at most {} characters. \
                     Begin with offset 0 and go on with the nextOffset of each page until there is none; no result \
                     is ever lost for being long. With waitMs it waits for a run that has not ended yet. The result \
                     of a run that failed or was cancelled is an error that says why. Results are kept for {kept} \
                     after the end of the run, or the last reading.",
                    config.max_result_chars
                ),
                schema::<ResultArguments>(),
                schema::<ResultPage>(),
            ),
            ToolKind::Cancel => (
                format!(
                    "Stops a workflow run and its agents, and answers once they have stopped. For a run that has ended \
                     already it tells how. What {tool}_start started does not stop by itself when you lose interest."
                ),
                schema::<RunArguments>(),
                schema::<Stopped>(),
            ),
        };
        Self { kind, name, description, input_schema, output_schema }
    }
}

/// The authoring contract, with the numbers of this engine.
fn authoring(limits: &Limits) -> String {
    let mib = |bytes: u64| match bytes {
        0..1_048_576 => format!("{} KiB", bytes >> 10),
        _ => format!("{} MiB", bytes >> 20),
    };
    let numbers = [
        ("{maxConcurrentAgents}", limits.concurrent_agents().to_string()),
        ("{maxTotalAgents}", limits.max_total_agents.to_string()),
        ("{maxNestedWorkflows}", limits.max_nested_workflows.to_string()),
        (
            "{maxOutputTokens}",
            match limits.max_output_tokens {
                Some(tokens) => format!("{tokens} output tokens of all agents"),
                None => "none is set".to_owned(),
            },
        ),
        ("{maxItemsPerCall}", limits.max_items_per_call.to_string()),
        ("{syncTimeoutMs}", words::duration(limits.sync_timeout_ms)),
        ("{maxFuel}", limits.max_fuel.to_string()),
        (
            "{maxDurationMs}",
            match limits.max_duration_ms {
                Some(ms) => format!("{} in all", words::duration(ms)),
                None => "none, it may take as long as its agents do".to_owned(),
            },
        ),
        ("{maxMemoryBytes}", mib(limits.max_memory_bytes)),
        ("{maxScriptBytes}", mib(limits.max_script_bytes)),
        ("{maxArgsBytes}", mib(limits.max_args_bytes)),
        ("{maxResultBytes}", mib(limits.max_result_bytes)),
        ("{maxRequestBytes}", mib(limits.max_request_bytes)),
        ("{maxNarrationEvents}", limits.max_narration_events.to_string()),
        ("{maxNarrationBytes}", mib(limits.max_narration_bytes)),
        ("{maxTimers}", limits.max_timers.to_string()),
    ];
    let text = include_str!("description.md").trim_end().to_owned();
    numbers.iter().fold(text, |text, (name, number)| text.replace(name, number))
}

fn background(tool: &str, kept: &str) -> String {
    format!(
        "\n\n## Long runs and long results\n\n\
         This call lasts as long as the run. For one that may take more than a minute, call {tool}_start instead: it \
         answers with a run id at once; {tool}_status, {tool}_result and {tool}_cancel take that id. A value too long \
         for one answer is cut, and the answer then says how to read the rest with {tool}_result; it is kept for {kept}."
    )
}

/// The JSON Schema (2020-12) of a type, without references: not every model API follows them.
fn schema<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let settings = settings.with_transform(RecursiveTransform(plain));
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    // Rust's name for the type and what is said of it in Rust are no help to a model.
    schema.remove("title");
    schema.remove("description");
    schema.to_value()
}

/// The schema of what is one of two objects.
fn either(mut one: Value, mut other: Value) -> Value {
    let required = [&mut one, &mut other].map(|schema| {
        let required = schema.as_object_mut().and_then(|fields| fields.remove("required"));
        serde_json::json!({"required": required.unwrap_or_else(|| Value::Array(Vec::new()))})
    });
    if let (Some(properties), Value::Object(others)) =
        (one["properties"].as_object_mut(), other["properties"].take())
    {
        for (name, schema) in others {
            properties.entry(name).or_insert(schema);
        }
    }
    one["anyOf"] = Value::Array(required.into());
    one
}

/// Leaves out what Rust's types say and JSON does not: here a missing value is always left out and never `null`, and
/// neither the width of integers nor the variants of an enum are of interest beyond their names.
fn plain(schema: &mut Schema) {
    schema.remove("format");
    if let Some(Value::String(description)) = schema.get_mut("description") {
        *description = description.replace('\n', " ");
    }
    if let Some(Value::Array(types)) = schema.get_mut("type") {
        types.retain(|name| name != "null");
        if let [name] = &types[..] {
            let name = name.clone();
            schema.insert("type".to_owned(), name);
        }
    }
    if let Some(Value::Array(branches)) = schema.get_mut("anyOf") {
        branches.retain(|branch| branch["type"] != "null");
        if let [Value::Object(branch)] = &mut branches[..] {
            let branch = std::mem::take(branch);
            schema.remove("anyOf");
            for (keyword, value) in branch {
                // What is said of the field goes before what is said of its type.
                schema.ensure_object().entry(keyword).or_insert(value);
            }
        }
    }
    if let Some(Value::Array(variants)) = schema.get("oneOf") {
        let names: Option<Vec<Value>> =
            variants.iter().map(|variant| variant.get("const").cloned()).collect();
        if let Some(names) = names {
            schema.remove("oneOf");
            schema.insert("type".to_owned(), "string".into());
            schema.insert("enum".to_owned(), names.into());
        }
    }
}

#[cfg(test)]
mod tests {
    use fanfold::ErrorCode;

    use super::*;

    fn definition(kind: ToolKind) -> Definition {
        Definition::new(kind, &ToolConfig::default(), &Limits::default(), Some(&Retention::default()))
    }

    #[test]
    fn the_description_carries_the_whole_authoring_contract() {
        let Definition { description, .. } = definition(ToolKind::Workflow);
        assert!(!description.contains('{') || !description.contains("{max"), "{description}");
        for word in [
            "agent(",
            "parallel(",
            "pipeline(",
            "phase(",
            "log(",
            "args",
            "label",
            "phase",
            "schema",
            "provider",
            "model",
            "effort",
            "agentType",
            "isolation",
            "timeoutMs",
            "stallMs",
            "retries",
            "null",
            "return",
            "No files, network, timers or Node",
        ] {
            assert!(description.contains(word), "{word}");
        }
        // What only hosts can meet is of no use to a model.
        let not_told = [ErrorCode::Internal];
        for code in ErrorCode::ALL.iter().filter(|code| !not_told.contains(code)) {
            assert!(description.contains(code.as_str()), "{code}");
        }
    }

    /// The names that follow a word in a TypeScript declaration.
    fn declared<'a>(types: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
        let rest = types.lines().filter_map(move |line| line.strip_prefix(word));
        rest.filter_map(|rest| rest.split(|c: char| !c.is_alphanumeric()).next())
    }

    #[test]
    fn the_description_names_every_global_and_option_that_the_types_declare() {
        let Definition { description, .. } = definition(ToolKind::Workflow);
        let types = include_str!("../../../guest-js/workflow.d.ts");
        let kinds = ["declare function ", "declare const ", "declare class "];
        let mut names: Vec<&str> = kinds.iter().flat_map(|kind| declared(types, kind)).collect();
        for name in ["agent", "workflow", "budget", "args", "console", "setTimeout", "URLSearchParams"] {
            assert!(names.contains(&name), "the types are read: {names:?}");
        }
        let options = types.split_once("interface AgentOptions").and_then(|(_, rest)| rest.split_once("\n}"));
        let (options, _) = options.expect("the types declare the options");
        let before = names.len();
        names.extend(
            options.lines().filter_map(|line| line.trim_start().split_once("?: ")).map(|(name, _)| name),
        );
        assert!(names[before..].contains(&"retries"), "the options are read: {names:?}");
        let budget = ["total", "spent()", "remaining()"].map(|member| format!("budget.{member}"));
        for name in names.into_iter().chain(budget.iter().map(String::as_str)) {
            let told = ["`", " "].iter().any(|before| {
                ["`", "(", ":", "."]
                    .iter()
                    .any(|after| description.contains(&format!("{before}{name}{after}")))
            });
            assert!(told, "{name}");
        }
    }

    #[test]
    fn only_bodies_are_said_to_have_no_timers() {
        let Definition { description, .. } = definition(ToolKind::Workflow);
        let without = description.lines().find(|line| line.contains("No files, network, timers")).unwrap();
        assert!(without.contains("A body") && without.contains("`setTimeout`"), "{without}");
        let with = description.lines().find(|line| line.starts_with("Only a script with a header")).unwrap();
        for name in ["`console.log`", "`setTimeout(", "`clearTimeout(", "`URL`"] {
            assert!(with.contains(name), "{name}: {with}");
        }
    }

    #[test]
    fn the_description_names_every_limit_that_a_script_can_meet() {
        let Definition { description, .. } = definition(ToolKind::Workflow);
        let Ok(Value::Object(limits)) = serde_json::to_value(Limits::default()) else { panic!("an object") };
        for name in limits.keys().filter(|name| *name != "disposeGraceMs") {
            assert!(description.contains(&format!("`{name}`")), "{name}");
            assert!(!description.contains(&format!("{{{name}}}")), "{name} has its number");
        }
    }

    #[test]
    fn the_description_tells_the_limits_of_the_engine() {
        let mut limits = Limits::default();
        (limits.max_total_agents, limits.max_duration_ms) = (77, Some(90_000));
        (limits.max_output_tokens, limits.max_timers) = (Some(123_456), 55);
        let config = ToolConfig::default();
        let Definition { description, .. } = Definition::new(ToolKind::Workflow, &config, &limits, None);
        for told in ["77 `agent()` calls", "1 min 30 s in all", "123456 output tokens", "55 timers"] {
            assert!(description.contains(told), "{told}");
        }
        assert!(!description.contains("workflow_"), "no background tools without a registry");
    }

    #[test]
    fn schemas_are_objects_without_references() {
        for kind in ToolKind::ALL {
            let Definition { name, input_schema, output_schema, .. } = definition(kind);
            for schema in [&input_schema, &output_schema] {
                assert_eq!(schema["type"], "object", "{name}: {schema:#}");
                for word in ["$ref", "\"null\"", "\"format\"", "\"default\":null", "](", "`None`", "oneOf"] {
                    assert!(!schema.to_string().contains(word), "{word} in {name}: {schema:#}");
                }
            }
            assert_eq!(input_schema["additionalProperties"], false, "{name}: {input_schema:#}");
        }
    }

    #[test]
    fn the_schema_of_the_arguments_is_what_is_read() {
        let schema = definition(ToolKind::Workflow).input_schema;
        assert_eq!(schema["required"], serde_json::json!(["meta", "script"]), "{schema:#}");
        let meta = &schema["properties"]["meta"];
        assert_eq!(meta["required"], serde_json::json!(["name", "description"]), "{schema:#}");
        assert_eq!(
            (&meta["additionalProperties"], &meta["properties"]["name"]["minLength"]),
            (&false.into(), &1.into())
        );
        assert_eq!(meta["properties"]["phases"]["type"], "array", "{schema:#}");
        assert_eq!(meta["properties"]["whenToUse"]["type"], "string", "{schema:#}");
        assert_eq!(schema["properties"]["script"]["type"], "string");
        assert_eq!(schema["properties"]["args"]["type"], "object");
    }

    #[test]
    fn the_guidance_names_the_tool() {
        let guidance = Guidance::new("orchestrate");
        assert_eq!(guidance.section, "tool:orchestrate");
        assert_eq!(
            guidance.text,
            "Use the orchestrate tool ONLY when the user explicitly asks for a workflow or for large multi-agent orchestration: you write a JavaScript script (the tool description documents the exact format) that fans work out across many subagents with phases and structured results. For one or two delegations, prefer plain subagent calls."
        );
    }
}

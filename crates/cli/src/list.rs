//! `fanfold list`: the saved workflows and kinds of agents that hold here.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result};
use fanfold::Phase;
use serde::Serialize;

use crate::agent_types::AgentFiles;
use crate::args::ListArgs;
use crate::workflows::Workflows;
use crate::{display, lines};

/// What `--json` prints.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Listed<'a> {
    workflows: Vec<ListedWorkflow<'a>>,
    agent_types: Vec<ListedAgentType<'a>>,
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    problems: &'a [String],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedWorkflow<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    when_to_use: Option<&'a str>,
    phases: &'a [Phase],
    path: &'a Path,
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    problem: Option<&'a str>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ListedAgentType<'a> {
    name: &'a str,
    description: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tools: Option<&'a [String]>,
    path: &'a Path,
}

/// Prints what there is.
pub(crate) fn list(args: &ListArgs) -> Result<ExitCode> {
    let here = std::env::current_dir().context("failed to tell the current folder")?;
    let (workflows, agents) = (Workflows::read(&here), AgentFiles::read(&here));
    if !args.json {
        display::list(&workflows, &agents, &here)?;
        return Ok(ExitCode::SUCCESS);
    }
    let workflow = workflows.all().iter().map(|saved| ListedWorkflow {
        name: &saved.meta.name,
        description: &saved.meta.description,
        when_to_use: saved.meta.when_to_use.as_deref(),
        phases: saved.meta.phases.as_deref().unwrap_or_default(),
        path: &saved.path,
        hidden: saved.hidden,
        problem: saved.problem.as_deref(),
    });
    let agent = agents.iter().map(|(definition, path)| ListedAgentType {
        name: &definition.name,
        description: &definition.description,
        model: definition.model.as_deref(),
        tools: definition.tools.as_deref(),
        path,
    });
    let listed =
        Listed { workflows: workflow.collect(), agent_types: agent.collect(), problems: agents.problems() };
    lines::print(&listed)?;
    Ok(ExitCode::SUCCESS)
}

//! What `fanfold list` prints.

use std::path::Path;

use anstyle::Style;
use anyhow::Result;

use super::messages::{notice, say};
use super::palette::Palette;
use super::text;
use crate::agent_types::AgentFiles;
use crate::places;
use crate::workflows::Workflows;

/// Columns of a description; some are whole pages.
const MAX_DESCRIPTION: usize = 300;

/// Prints the saved workflows and the kinds of agents, and says what hides what.
pub(crate) fn list(workflows: &Workflows, agents: &AgentFiles, here: &Path) -> Result<()> {
    for line in lines(workflows, agents, here, &Palette::new(true)) {
        say(&line)?;
    }
    for saved in workflows.all() {
        let path = workflows.shown(&saved.path);
        if let Some(problem) = &saved.problem {
            notice(&format!("{path} cannot be run: {problem}"));
        }
        if saved.hidden {
            let name = &saved.meta.name;
            notice(&format!("{path} is hidden by another workflow that is called {name}"));
        }
    }
    for problem in agents.problems() {
        notice(&format!("cannot read {problem}"));
    }
    Ok(())
}

fn lines(workflows: &Workflows, agents: &AgentFiles, here: &Path, palette: &Palette) -> Vec<String> {
    let Palette { strong, faint, .. } = *palette;
    let mut lines = Vec::new();
    let entry = |lines: &mut Vec<String>, name: &str, description: &str, facts: Vec<String>| {
        let (name, description) = (text::line(name), text::line(description));
        lines.push(format!("  {strong}{name}{strong:#}  {}", text::cut(&description, MAX_DESCRIPTION)));
        let facts = facts.iter().map(|fact| text::line(fact)).collect::<Vec<_>>().join(" · ");
        lines.push(format!("    {faint}{facts}{faint:#}"));
    };
    let heading = |lines: &mut Vec<String>, title: &str| {
        if !lines.is_empty() {
            lines.push(String::new());
        }
        lines.push(format!("{faint}{title}{faint:#}"));
    };
    let runnable = || workflows.all().iter().filter(|saved| !saved.hidden && saved.problem.is_none());
    if runnable().next().is_some() {
        heading(&mut lines, "Workflows: fanfold run NAME");
    }
    for saved in runnable() {
        let phases =
            saved.meta.phases.iter().flatten().map(|phase| &*phase.title).collect::<Vec<_>>().join(", ");
        let facts =
            [phases, workflows.shown(&saved.path)].into_iter().filter(|fact| !fact.is_empty()).collect();
        entry(&mut lines, &saved.meta.name, &saved.meta.description, facts);
    }
    if agents.iter().next().is_some() {
        heading(&mut lines, "Kinds of agents: agent(prompt, { agentType: NAME })");
    }
    for (definition, path) in agents.iter() {
        let model = definition.model.as_ref().map(|model| format!("model {model}"));
        let facts = model.into_iter().chain([places::shown(path, here)]).collect();
        entry(&mut lines, &definition.name, &definition.description, facts);
    }
    if lines.is_empty() {
        let plain = Style::new();
        lines.push(format!(
            "{plain}no saved workflows here: put scripts into .fanfold/workflows or .claude/workflows{plain:#}"
        ));
    }
    lines
}

//! What `fanfold plan` prints: a tree of phases and groups of agents, then what it adds up to.

use std::io::{self, IsTerminal as _};

use anstyle::Style;
use anyhow::Result;

use super::messages::say;
use super::palette::Palette;
use super::row::{Pieces, Row, counted};
use super::text;
use crate::survey::{Group, PhasePlan, Survey};

/// Groups of a phase that are listed.
const MAX_GROUPS: usize = 20;
/// Phases that are listed.
const MAX_PHASES: usize = 100;
/// Characters of English text that are one token of a model, roughly.
const CHARS_A_TOKEN: usize = 4;

/// Prints a plan on standard output.
pub(crate) fn plan(survey: &Survey) -> Result<()> {
    let columns = match terminal_size::terminal_size_of(io::stdout()) {
        Some((terminal_size::Width(columns), _)) if io::stdout().is_terminal() && columns > 0 => {
            columns.into()
        }
        // A pipe has room.
        _ => usize::MAX,
    };
    for row in rows(survey, columns, &Palette::new(true)) {
        say(&row)?;
    }
    Ok(())
}

fn rows(survey: &Survey, columns: usize, palette: &Palette) -> Vec<String> {
    let canvas = Canvas { columns, palette };
    let mut rows = vec![canvas.title(survey)];
    for phase in survey.phases.iter().take(MAX_PHASES) {
        rows.push(canvas.phase(phase));
        rows.extend(phase.groups.iter().take(MAX_GROUPS).map(|group| canvas.group(group)));
        rows.extend(canvas.more(phase.groups.len(), MAX_GROUPS, "more group", "    "));
    }
    rows.extend(canvas.more(survey.phases.len(), MAX_PHASES, "more phase", ""));
    rows.push(String::new());
    rows.extend(canvas.sums(survey));
    rows.extend(canvas.refusals(survey));
    rows
}

struct Canvas<'a> {
    columns: usize,
    palette: &'a Palette,
}

impl Canvas<'_> {
    fn row(&self) -> Row {
        Row::new(self.columns)
    }

    fn title(&self, survey: &Survey) -> String {
        let (name, description) = (text::line(&survey.name), text::line(&survey.description));
        self.row()
            .put(self.palette.strong, &name)
            .put(self.palette.faint, &format!(": {description}"))
            .finish()
    }

    fn phase(&self, phase: &PhasePlan) -> String {
        let title = phase.title.as_deref().map_or("(no phase)".into(), text::line);
        let mut facts = Pieces::default();
        match phase.agents {
            0 => facts.add(self.palette.faint, "no agents"),
            agents => facts.add(Style::new(), many(agents, "agent")),
        }
        if phase.agents > 1 {
            facts.add(self.palette.faint, at_once(phase.width));
        }
        let reserve = (facts.width() + 2).min(self.columns.saturating_sub(8));
        self.row()
            .put_before(self.palette.strong, &title, reserve)
            .put(Style::new(), "  ")
            .pieces(&facts, self.palette)
            .finish()
    }

    fn group(&self, group: &Group) -> String {
        let mut label = text::line(&group.first_label);
        if label.trim().is_empty() {
            label = "(no label)".into();
        }
        if group.last_label != group.first_label {
            label = format!("{} … {}", text::cut(&label, 40), text::cut(&text::line(&group.last_label), 40));
        }
        let wants = &group.wants;
        let mut facts = Pieces::default();
        let texts = [&wants.agent_type, &wants.model, &wants.effort, &wants.isolation];
        for fact in texts.into_iter().flatten() {
            facts.add(self.palette.busy, text::cut(&text::line(fact), 30));
        }
        if wants.schema {
            facts.add(self.palette.busy, "schema");
        }
        facts.add(self.palette.faint, many(group.prompt_chars, "character"));
        let times = format!("{:>5} × ", group.agents);
        // A label of which less is seen says nothing.
        let reserve = (facts.width() + 2).min(self.columns.saturating_sub(times.len() + 20));
        self.row()
            .put(self.palette.faint, &times)
            .put_before(Style::new(), &label, reserve)
            .put(Style::new(), "  ")
            .pieces(&facts, self.palette)
            .finish()
    }

    fn more(&self, all: usize, most: usize, what: &str, indent: &str) -> Option<String> {
        let row = || format!("{indent}… and {}", counted(all - most, what));
        (all > most).then(|| self.row().put(self.palette.faint, &row()).finish())
    }

    fn sums(&self, survey: &Survey) -> Vec<String> {
        let fact = |name: &str, text: String| {
            self.row().put(self.palette.faint, &format!("{name:<9}")).put(Style::new(), &text).finish()
        };
        let mut rows = vec![fact("agents", thousands(survey.agents))];
        if survey.agents == 0 {
            return rows;
        }
        let configured = &survey.configured;
        let limit = configured.max_concurrent_agents;
        let row = |width: usize, rounds: u64| format!("{}, {} in a row", at_once(width), rounds);
        rows.push(fact("unbound", row(survey.width, survey.rounds)));
        let run = format!("{} (maxConcurrentAgents is {limit})", row(configured.width, configured.rounds));
        rows.push(fact("here", run));
        let models = survey.models.iter().map(|plan| {
            let model = plan.model.as_deref().map_or("default".into(), text::line);
            format!("{model} × {}", thousands(plan.agents))
        });
        rows.push(fact("models", models.collect::<Vec<_>>().join(", ")));
        let (chars, tokens) = (survey.prompt_chars, survey.prompt_chars.div_ceil(CHARS_A_TOKEN));
        rows.push(fact("prompts", format!("{}, about {}", many(chars, "character"), many(tokens, "token"))));
        if let Some(budget) = &survey.budget {
            let (total, each) = (budget.max_output_tokens, budget.assumed_per_agent);
            let text = format!("{total} output tokens (maxOutputTokens), if an agent uses {each}");
            rows.push(fact("budget", text));
        }
        rows
    }

    /// What would not go as planned. These are never cut: they may be why somebody looks.
    fn refusals(&self, survey: &Survey) -> Vec<String> {
        let Palette { bad, odd, .. } = self.palette;
        let mut rows: Vec<String> = survey
            .refused
            .iter()
            .map(|refusal| {
                let agents = refusal.agents.map(|agents| format!(" ({})", counted(agents, "agent")));
                let message = text::line(&refusal.message);
                format!("{bad}✗ {}{bad:#} {message}{}", refusal.code, agents.unwrap_or_default())
            })
            .collect();
        let warnings = survey.warnings.iter().map(|warning| text::line(warning));
        rows.extend(warnings.map(|warning| format!("{odd}!{odd:#} {warning}")));
        if !rows.is_empty() {
            rows.insert(0, String::new());
        }
        rows
    }
}

fn at_once(width: usize) -> String {
    format!("{} at once", thousands(width))
}

/// `1 token`, `12,345 tokens`.
fn many(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {what}{plural}", thousands(number))
}

/// `12,345`.
fn thousands(number: usize) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

#[cfg(test)]
mod tests {
    use fanfold::{ErrorCode, StopReason};
    use insta::assert_snapshot;

    use super::*;
    use crate::survey::{Configured, ModelPlan, Refusal, Wants};

    fn group(agents: usize, first: &str, last: &str, model: Option<&str>) -> Group {
        let wants = Wants {
            agent_type: model.map(|_| "reviewer".into()),
            model: model.map(Into::into),
            effort: None,
            isolation: model.map(|_| "worktree".into()),
            schema: model.is_some(),
        };
        let (first_label, last_label) = (first.into(), last.into());
        Group { agents, first_label, last_label, wants, prompt_chars: agents * 1_234 }
    }

    fn review() -> Survey {
        let phase = |title: Option<&str>, agents, width, groups| PhasePlan {
            title: title.map(Into::into),
            agents,
            width,
            groups,
        };
        Survey {
            name: "review".into(),
            description: "Reviews \u{1b}[31mfiles through several lenses".into(),
            stop_reason: StopReason::Completed,
            error: None,
            agents: 1_241,
            width: 1_240,
            rounds: 3,
            configured: Configured { max_concurrent_agents: 2, width: 2, rounds: 621 },
            phases: vec![
                phase(None, 1, 1, vec![group(1, "scout", "scout", None)]),
                phase(
                    Some("Review"),
                    1_240,
                    1_240,
                    vec![group(1_240, "check file 1", "check file 1240", Some("sonnet"))],
                ),
                phase(Some("Verify"), 0, 0, vec![]),
            ],
            models: vec![
                ModelPlan { model: None, agents: 1 },
                ModelPlan { model: Some("sonnet".into()), agents: 1_240 },
            ],
            prompt_chars: 1_531_394,
            budget: None,
            never_awaited: 2,
            refused: vec![Refusal {
                code: ErrorCode::AgentCap,
                message: "a run may make 1000 agent() calls (maxTotalAgents), this one makes 1241".into(),
                agents: Some(241),
            }],
            warnings: vec![
                "2 agent() calls were never awaited: their answers are lost".into(),
                "something else".into(),
            ],
        }
    }

    #[test]
    fn a_plan() {
        assert_snapshot!(rows(&review(), 100, &Palette::default()).join("\n"));
    }

    #[test]
    fn a_plan_on_a_narrow_terminal() {
        let rows = rows(&review(), 44, &Palette::default());
        // What would be refused is never cut.
        let cut = rows.iter().take_while(|row| !row.starts_with('✗'));
        assert!(cut.clone().all(|row| text::width(row) <= 44));
        assert_snapshot!(rows.join("\n"));
    }

    #[test]
    fn colours_only_repeat_what_is_written() {
        let coloured = rows(&review(), 100, &Palette::new(true));
        let bare: Vec<String> =
            coloured.iter().map(|row| anstream::adapter::strip_str(row).to_string()).collect();
        assert_ne!(coloured, bare);
        assert_eq!(bare, rows(&review(), 100, &Palette::default()));
    }

    #[test]
    fn a_script_without_agents() {
        let survey = Survey {
            agents: 0,
            phases: vec![],
            refused: vec![],
            never_awaited: 0,
            warnings: vec![],
            ..review()
        };
        assert_eq!(rows(&survey, 100, &Palette::default()).last().unwrap(), "agents   0");
    }
}

//! Saved workflows and kinds of agents: found by name.

use std::fs;
use std::path::Path;
use std::process::Output;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::fanfold::{fanfold, stderr, stdout};

/// A repository, with a folder in it, and a home.
struct Project {
    folder: TempDir,
}

impl Project {
    fn new(files: &[(&str, &str)]) -> Self {
        let project = Self { folder: tempfile::tempdir().unwrap() };
        for (path, text) in [("project/.git/HEAD", ""), ("project/sub/here", "")].iter().chain(files) {
            let path = project.path().join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        project
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn run(&self, args: &[&str]) -> Output {
        let mut command = fanfold();
        command.env("HOME", self.path().join("home")).env_remove("XDG_CONFIG_HOME");
        command.current_dir(self.path().join("project/sub")).args(args).output().unwrap()
    }
}

fn workflow(name: &str, value: &str) -> String {
    format!(
        "export const meta = {{name: '{name}', description: 'does {value}', phases: [{{title: 'One'}}]}}\nreturn '{value}'"
    )
}

#[test]
fn the_first_workflow_of_a_name_is_run_and_the_others_are_said() {
    let project = Project::new(&[
        ("project/.fanfold/workflows/a.js", &workflow("sweep", "first")),
        ("project/.claude/workflows/sweep.js", &workflow("sweep", "second")),
        ("project/.claude/workflows/other.js", &workflow("other", "third")),
        ("home/.claude/workflows/mine.js", &workflow("mine", "fourth")),
        (".claude/workflows/outside.js", &workflow("outside", "never")),
        ("project/.claude/workflows/broken.js", "export const meta = {name: f()}"),
    ]);
    for (name, value) in [("sweep", "first"), ("other", "third"), ("mine", "fourth")] {
        let output = project.run(&["run", name]);
        assert_eq!(stdout(&output), format!("\"{value}\"\n"), "{}", stderr(&output));
        assert_eq!(stderr(&output).contains("has the same name"), name == "sweep", "{}", stderr(&output));
    }
    let output = project.run(&["run", "outside"]);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("no saved workflow \"outside\" (there are: broken, mine, other, sweep)"), "{said}");

    let listed: Value = serde_json::from_str(stdout(&project.run(&["list", "--json"]))).unwrap();
    let names: Vec<_> = listed["workflows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|workflow| (workflow["name"].as_str().unwrap(), workflow["hidden"] == json!(true)))
        .collect();
    assert_eq!(
        names,
        [("sweep", false), ("broken", false), ("other", false), ("sweep", true), ("mine", false)]
    );
    assert_eq!(listed["workflows"][0]["phases"], json!([{"title": "One"}]));

    let output = project.run(&["list"]);
    for part in ["sweep", "does first", "One", "mine", "~/.claude/workflows/mine.js"] {
        assert!(stdout(&output).contains(part), "{part}: {}", stdout(&output));
    }
    let said = stderr(&output);
    assert!(
        said.contains("is hidden by another workflow") && said.contains("broken.js cannot be run"),
        "{said}"
    );
}

#[test]
fn a_script_runs_saved_workflows_and_scripts_of_its_project_and_nothing_else() {
    let calls = "const tries = [];
        for (const target of ['sweep', {scriptPath: 'part.js'}, 'none', {scriptPath: '../../secret.js'}, {scriptPath: '../notes.txt'}, {scriptPath: '/etc/hostname'}, {scriptPath: '../../nowhere.js'}])
            tries.push(await workflow(target).catch((error) => error.message));
        return tries";
    let outer = format!("export const meta = {{name: 'outer', description: 'd'}}\n{calls}");
    let project = Project::new(&[
        ("project/.claude/workflows/sweep.js", &workflow("sweep", "first")),
        ("project/sub/part.js", &workflow("part", "second")),
        ("project/sub/outer.js", &outer),
        ("project/notes.txt", "secret"),
        ("secret.js", "secret"),
    ]);
    let output = project.run(&["run", "outer.js"]);
    let tries: Vec<String> =
        serde_json::from_str(stdout(&output)).unwrap_or_else(|_| panic!("{}", stderr(&output)));
    assert_eq!(tries[..2], ["first", "second"]);
    assert!(tries[2].contains("no saved workflow \"none\" (there are: sweep)"), "{tries:?}");
    assert!(tries[3..].iter().all(|told| told.contains("is no .js file of this project")), "{tries:?}");
}

#[test]
fn kinds_of_agents_reach_the_agent_with_their_instructions_and_model() {
    let project = Project::new(&[
        (
            "project/.claude/agents/reviewer.md",
            "---\nname: reviewer\ndescription: Use: this\nmodel: sonnet\n---\nBe strict.",
        ),
        ("project/.fanfold/agents/writer.md", "---\nmodel: inherit\n---\nBe kind."),
        ("project/.claude/agents/README.md", "Notes."),
        ("project/.claude/agents/odd.md", "---\nname odd\n---\n"),
        (
            "project/fanfold.toml",
            "agentCommand = \"sh -c 'cat; echo \\\" [$FANFOLD_MODEL]\\\"'\"\n[models]\nsonnet = \"sonnet-5\"\n",
        ),
        ("project/sub/s.js", "return await agent('Go.', args)"),
    ]);
    let ask = |options: Value| {
        let output = project.run(&["run", "s.js", "--args", &options.to_string()]);
        stdout(&output).to_owned() + stderr(&output)
    };
    let said = ask(json!({"agentType": "reviewer"}));
    assert!(said.contains("Be strict.") && said.contains("Go.") && said.contains("[sonnet-5]"), "{said}");
    let said = ask(json!({"agentType": "writer"}));
    assert!(said.contains("Be kind.") && said.contains(" []"), "{said}");
    let said = ask(json!({"agentType": "reviewer", "model": "large"}));
    assert!(said.contains("[large]"), "{said}");
    let said = ask(json!({"agentType": "nobody"}));
    assert!(said.contains("AGENT_START") && said.contains("(known: reviewer, writer)"), "{said}");
    assert!(said.contains("odd.md:2: not a field"), "{said}");

    let listed: Value = serde_json::from_str(stdout(&project.run(&["list", "--json"]))).unwrap();
    let names: Vec<_> = listed["agentTypes"].as_array().unwrap().iter().map(|agent| &agent["name"]).collect();
    assert_eq!(names, [&json!("reviewer"), &json!("writer")]);
    let output = project.run(&["check", "s.js"]);
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_file_without_its_ending_is_told_from_a_saved_workflow() {
    let project = Project::new(&[("project/sub/good.js", "return args.list.length")]);
    let output = project.run(&["run", "good"]);
    let said = stderr(&output);
    assert!(
        said.contains("there is no saved workflow \"good\"; for the file of that name write good.js"),
        "{said}"
    );
    let output = project.run(&["run", "good.js"]);
    let said = stderr(&output);
    assert!(said.contains("(args is undefined: the run was given none)"), "{said}");
}

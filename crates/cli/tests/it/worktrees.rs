//! Agents with git worktrees, killed in the middle and tidied.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fanfold::{fanfold, stderr, stdout};

/// A repository with one commit, an agent and a script whose forty agents each want a worktree.
fn repository(name: &str, agent: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    git(&folder, "init --quiet --initial-branch=main");
    git(&folder, "config user.name Somebody");
    git(&folder, "config user.email somebody@example.com");
    fs::write(folder.join("file"), "one\n").unwrap();
    fs::write(folder.join("agent.sh"), agent).unwrap();
    let script = "return await parallel(Array.from({length: 40}, (_, i) => () =>
        agent('do ' + i, {label: 'do ' + i, isolation: 'worktree'})))";
    fs::write(folder.join("script.js"), script).unwrap();
    fs::write(
        folder.join("fanfold.toml"),
        "agentCommand = \"sh agent.sh\"\n[limits]\nmaxConcurrentAgents = 40\n",
    )
    .unwrap();
    git(&folder, "add --all");
    git(&folder, "commit --quiet --message first");
    folder
}

fn git(folder: &Path, arguments: &str) -> String {
    let output =
        Command::new("git").args(arguments.split(' ')).current_dir(folder).output().expect("git runs");
    assert!(output.status.success(), "git {arguments}: {}", stderr(&output));
    stdout(&output).trim_end().to_owned()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(120);
    while !condition() {
        assert!(Instant::now() < patience, "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

fn clean(folder: &Path) -> (String, String) {
    let output = fanfold().current_dir(folder).arg("clean").output().unwrap();
    (stdout(&output).to_owned(), stderr(&output).to_owned())
}

#[test]
fn forty_worktrees_are_reported_or_gone() {
    let agent = "test $((FANFOLD_SEQ % 4)) = 0 && { echo $FANFOLD_SEQ > file; git commit -qam x; }; exit 0";
    let folder = repository("worktrees", agent);
    let output = fanfold().current_dir(&folder).args(["run", "script.js", "--json"]).output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    let kept = result["worktrees"].as_array().unwrap();
    assert_eq!(kept.len(), 10, "{result}");
    for worktree in kept {
        assert_eq!(worktree["base"], git(&folder, "rev-parse HEAD"));
        assert_eq!(
            worktree["commits"][0],
            git(&folder, &format!("rev-parse {}", worktree["branch"].as_str().unwrap()))
        );
        assert!(Path::new(worktree["path"].as_str().unwrap()).join("file").exists());
    }
    assert_eq!(git(&folder, "worktree list").lines().count(), 11);
    assert_eq!(git(&folder, "status --porcelain"), "");
    // Nothing is left to tidy, and what is kept is said again.
    let (said, _) = clean(&folder);
    assert_eq!(said.matches("kept ").count(), 10, "{said}");
    assert!(said.ends_with("0 worktrees without changes removed\n"), "{said}");
}

#[test]
fn a_run_that_is_killed_with_forty_worktrees_is_tidied() {
    // Every fifth leaves a file that is not committed, then all hang.
    let agent =
        "test $((FANFOLD_SEQ % 5)) = 0 && echo x > new; echo $$ > ../$FANFOLD_SEQ.pid; exec sleep 1000";
    let folder = repository("killed", agent);
    let place = folder.join(".fanfold/worktrees");
    let mut run = fanfold()
        .current_dir(&folder)
        .args(["run", "script.js", "--json"])
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let pids = || -> Vec<String> {
        let entries = fs::read_dir(&place).into_iter().flatten().map(|entry| entry.unwrap().path());
        let pids = entries.filter(|path| path.extension().is_some_and(|extension| extension == "pid"));
        pids.filter_map(|path| Some(fs::read_to_string(path).ok()?.trim().to_owned())).collect()
    };
    // In the middle: some are at work, others are being made.
    wait_for("a dozen agents", || pids().len() >= 12);
    run.kill().unwrap();
    run.wait().unwrap();

    // While agents are at work, nothing of theirs is touched.
    let (said, errors) = clean(&folder);
    assert!(said.matches("in use ").count() >= 12, "{said}{errors}");
    // A git that was at work goes on by itself, and an agent that had just started notes itself late.
    let mut said = String::new();
    wait_for("everything to be tidied", || {
        for pid in pids() {
            let _ = Command::new("kill").args(["-KILL", &pid]).stderr(Stdio::null()).status();
        }
        said = clean(&folder).0;
        !said.contains("in use ")
            && git(&folder, "worktree list").lines().count() == 1 + said.matches("kept ").count()
    });
    let worktrees = git(&folder, "worktree list --porcelain");
    for path in worktrees.lines().filter_map(|line| line.strip_prefix("worktree ")).skip(1) {
        assert!(Path::new(path).join("new").exists(), "{path} held nothing\n{said}");
    }
    let branches = git(&folder, "for-each-ref --format=%(refname:short) refs/heads");
    assert_eq!(branches.lines().count(), worktrees.matches("worktree ").count(), "{branches}\n{said}");
    let records = fs::read_dir(&place).unwrap().map(|entry| entry.unwrap().path());
    let left = records.filter(|path| path.extension().is_some_and(|end| end == "lock" || end == "tmp"));
    assert_eq!(left.count(), 0);
}

#[test]
fn outside_of_a_repository_isolation_is_refused_and_the_reason_said() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("s.js"), "return await agent('x', {isolation: 'worktree'})").unwrap();
    let output = fanfold()
        .current_dir(folder.path())
        .args(["run", "s.js", "--agent-command", "true"])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(1));
    let said = stderr(&output);
    assert!(
        said.contains("UNSUPPORTED_OPTION") && said.contains("not in the working tree of a git repository"),
        "{said}"
    );
}

/// A repository with a file that passes through a filter, and a script whose agent says what the file holds.
fn filtered(name: &str, smudge: &str) -> PathBuf {
    let folder = repository(name, "cat file");
    fs::write(folder.join(".gitattributes"), "file filter=f\n").unwrap();
    fs::write(folder.join("script.js"), "return await agent('x', {isolation: 'worktree'})").unwrap();
    git(&folder, "add --all");
    git(&folder, "commit --quiet --message second");
    let set = Command::new("git").args(["config", "filter.f.smudge", smudge]).current_dir(&folder).status();
    assert!(set.unwrap().success());
    folder
}

#[test]
fn what_clean_advises_leaves_nothing_to_tidy() {
    let folder = repository("advice", "echo x > x; git add x; git commit -qm x");
    fs::write(folder.join("script.js"), "return await agent('x', {isolation: 'worktree'})").unwrap();
    let output = fanfold().current_dir(&folder).args(["run", "script.js"]).output().unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let (_, said) = clean(&folder);
    let advice = said.lines().find_map(|line| line.split_once("to throw it away: ")).expect("advice").1;
    assert!(Command::new("sh").args(["-c", advice]).current_dir(&folder).status().unwrap().success());
    for said in ["1 worktree without changes removed\n", "no worktrees of Fanfold's here\n"] {
        let output = fanfold().current_dir(&folder).arg("clean").output().unwrap();
        assert_eq!((output.status.code(), stderr(&output)), (Some(0), said));
    }
}

#[test]
fn filters_are_run_unless_an_option_or_the_settings_say_otherwise() {
    let folder = filtered("filters", "sed s/one/smudged/");
    let run = |options: &[&str]| {
        let output =
            fanfold().current_dir(&folder).args(["run", "script.js"]).args(options).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().to_owned()
    };
    assert_eq!(run(&[]), "smudged");
    assert_eq!(run(&["--no-worktree-filters"]), "one");
    fs::write(folder.join("fanfold.toml"), "agentCommand = \"sh agent.sh\"\nworktreeFilters = false\n")
        .unwrap();
    assert_eq!(run(&[]), "one");
}

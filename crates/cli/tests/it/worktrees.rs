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
    let (said, _) = clean(&folder);
    let advice = said.lines().find_map(|line| line.split_once("to throw it away: ")).expect("advice").1;
    assert!(Command::new("sh").args(["-c", advice]).current_dir(&folder).status().unwrap().success());
    for said in ["1 worktree without changes removed\n", "no worktrees of Fanfold's here\n"] {
        let output = fanfold().current_dir(&folder).arg("clean").output().unwrap();
        assert_eq!((output.status.code(), stdout(&output)), (Some(0), said));
    }
}

#[test]
fn filters_are_run_unless_an_option_or_the_settings_say_otherwise() {
    let folder = filtered("filters", "sed s/one/smudged/");
    let run = |options: &[&str]| {
        let output =
            fanfold().current_dir(&folder).args(["run", "script.js"]).args(options).output().unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        stdout(&output).trim().trim_matches('"').to_owned()
    };
    assert_eq!(run(&[]), "smudged");
    assert_eq!(run(&["--no-worktree-filters"]), "one");
    fs::write(folder.join("fanfold.toml"), "agentCommand = \"sh agent.sh\"\nworktreeFilters = false\n")
        .unwrap();
    assert_eq!(run(&[]), "one");
}

#[test]
fn what_the_environment_says_to_git_leads_to_no_other_files() {
    let (folder, other) =
        (repository("environment", "git rev-parse --show-toplevel"), repository("other", ""));
    fs::write(folder.join("script.js"), "return await agent('x', {isolation: 'worktree'})").unwrap();
    fs::write(other.join("file"), "not committed\n").unwrap();
    let output = fanfold()
        .current_dir(&folder)
        .args(["run", "script.js"])
        .env("GIT_DIR", other.join(".git"))
        .env("GIT_WORK_TREE", &other)
        .env("GIT_INDEX_FILE", other.join(".git/index"))
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stdout(&output).contains("environment/.fanfold/worktrees/"), "{}", stdout(&output));
    assert_eq!(fs::read_to_string(other.join("file")).unwrap(), "not committed\n");
    assert_eq!(git(&other, "worktree list").lines().count(), 1);
}

#[test]
fn ctrl_c_while_a_worktree_is_made_ends_git_and_its_filter() {
    let note = Path::new(env!("CARGO_TARGET_TMPDIR")).join("filter-process");
    let _ = fs::remove_file(&note);
    let folder = filtered("interrupted", &format!("echo $$ > {}; sleep 1000; cat", note.display()));
    let child = fanfold()
        .current_dir(&folder)
        .args(["run", "script.js"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    wait_for("the filter", || fs::read_to_string(&note).is_ok_and(|id| id.ends_with('\n')));
    let filter = fs::read_to_string(&note).unwrap();
    let signal = |signal: &str, id: &str| {
        let told = Command::new("kill").args([signal, id.trim()]).stderr(Stdio::null()).status();
        told.unwrap().success()
    };
    assert!(signal("-INT", &child.id().to_string()));
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    wait_for("the end of the filter", || !signal("-0", &filter));
    assert_eq!(git(&folder, "worktree list").lines().count(), 1);
    assert_eq!(git(&folder, "for-each-ref --format=%(refname:short) refs/heads"), "main");
}

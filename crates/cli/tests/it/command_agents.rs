//! Agents that are processes: many at once, and none left behind.
#![cfg(unix)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::fanfold::{fanfold, stderr, stdout};

/// A shell script that stands for an agent. It notes its process, and its helper's, in the folder `$PIDS`.
const AGENT: &str = r#"#!/bin/sh
read -r verb rest
echo $$ > "$PIDS/$$"
case "$verb" in
  fail) echo "cannot: $rest" >&2; exit 3 ;;
  json) echo "Here it is:"; echo '```json'; echo "{\"n\": $rest}"; echo '```' ;;
  sleep) sleep "$rest"; echo "slept $rest" ;;
  hang) trap '' TERM; sleep 1000 & echo $! > "$PIDS/$!"; wait ;;
esac
"#;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(folder.join("pids")).unwrap();
    fs::write(folder.join("agent.sh"), AGENT).unwrap();
    folder
}

fn start(folder: &Path, script: &str, limits: &str) -> Child {
    fs::write(folder.join("script.js"), script).unwrap();
    fs::write(folder.join("fanfold.toml"), "agentCommand = \"sh agent.sh\"\nagentEnv = [\"PIDS\"]\n")
        .unwrap();
    let mut command = fanfold();
    command.current_dir(folder).env("PIDS", folder.join("pids")).args([
        "run",
        "script.js",
        "--json",
        "--limits",
        limits,
    ]);
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("fanfold starts")
}

/// The noted processes that are still there.
fn alive(folder: &Path) -> Vec<String> {
    let noted = fs::read_dir(folder.join("pids")).unwrap();
    let pids = noted.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    // A zombie is not running, but it was not reaped either.
    pids.filter(|pid| Path::new("/proc").join(pid).exists()).collect()
}

fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    let patience = Instant::now() + Duration::from_secs(30);
    while !condition() {
        assert!(Instant::now() < patience, "waited too long for {what}");
        sleep(Duration::from_millis(20));
    }
}

#[test]
fn forty_children_run_eight_at_a_time() {
    let folder = folder("forty");
    let script = "
        const schema = {type: 'object', properties: {n: {type: 'integer'}}, required: ['n']}
        const calls = Array.from({length: 40}, (_, i) => () =>
          i % 4 === 0 ? agent('fail ' + i)
          : i % 4 === 1 ? agent('json ' + i, {schema})
          : agent('sleep 0.0' + i % 10))
        return await parallel(calls)";
    let output = start(&folder, script, r#"{"maxConcurrentAgents": 8}"#).wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let lines: Vec<Value> = stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let last = lines.last().unwrap();
    let (mut now, mut peak) = (0, 0);
    for line in &lines {
        match line["type"].as_str() {
            Some("workflow/agent-start") => now += 1,
            Some("workflow/agent-end") => now -= 1,
            _ => {}
        }
        peak = peak.max(now);
    }
    assert_eq!((now, peak), (0, 8));
    let values = last["value"].as_array().unwrap();
    for (i, value) in values.iter().enumerate() {
        match i % 4 {
            0 => assert_eq!(*value, Value::Null),
            1 => assert_eq!(value["n"], i),
            _ => assert_eq!(*value, format!("slept 0.0{}", i % 10)),
        }
    }
    let failures = last["failures"].as_array().unwrap();
    assert_eq!(failures.len(), 10);
    assert!(
        failures.iter().all(|failure| failure["reason"]
            .as_str()
            .unwrap()
            .contains("exit status 3; standard error: cannot: ")),
        "{failures:?}"
    );
    assert_eq!(alive(&folder), [""; 0]);
}

#[test]
fn ctrl_c_leaves_no_process_behind() {
    let folder = folder("interrupt");
    let script = "return await parallel(Array.from({length: 40}, () => () => agent('hang')))";
    let child = start(&folder, script, r#"{"maxConcurrentAgents": 8}"#);
    wait_for("eight children and their helpers", || alive(&folder).len() >= 16);
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    let last: Value = serde_json::from_str(stdout(&output).lines().last().unwrap()).unwrap();
    assert_eq!((&last["stopReason"], &last["agentsStarted"]), (&"cancelled".into(), &40.into()));
    wait_for("the processes to be gone", || alive(&folder).is_empty());
}

#[test]
fn a_second_ctrl_c_forces_the_end_and_leaves_no_process_behind() {
    let folder = folder("force");
    let script = "return await parallel(Array.from({length: 8}, () => () => agent('hang')))";
    let child = start(&folder, script, r#"{"maxConcurrentAgents": 8, "disposeGraceMs": 600000}"#);
    wait_for("eight children and their helpers", || alive(&folder).len() >= 16);
    interrupt(&child);
    sleep(Duration::from_millis(100));
    interrupt(&child);
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", stderr(&output));
    wait_for("the processes to be gone", || alive(&folder).is_empty());
}

fn interrupt(child: &Child) {
    let status = Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap();
    assert!(status.success());
}

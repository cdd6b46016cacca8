//! What the command says of options and settings that are wrong, and of calls that wait.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;

use crate::fanfold::{fanfold, run, stderr, stdout};

#[test]
fn an_error_names_the_option_or_the_file_and_key() {
    for (args, toml, expected) in [
        (&["--args", "{x"][..], "", "--args: args is not valid JSON"),
        (&["--args", "1e400"], "", "--args: args has the number 1e400, which is too large"),
        (&["--args", r#"{"n": [-1e999]}"#], "", "--args: args has the number -1e999"),
        (&["--args", "@missing.json"], "", "--args @missing.json: failed to read missing.json"),
        (&["--args", "@s.js"], "", "--args @s.js: args is not valid JSON"),
        (&["--limits", r#"{"maxTotalAgents": "six"}"#], "", "--limits: maxTotalAgents: invalid type"),
        (&["--limits", r#"{"maxAgents": 6}"#], "", "--limits: maxAgents: unknown field"),
        (&["--arg", "1"], "", "'--args'"),
        (&[], "agentCommand = \"a 'b\"", "fanfold.toml: agentCommand: a quotation mark"),
        (&[], "agents = 1", "agents = 1"),
        (&[], "[limits]\nmaxTotalAgents = -1", "fanfold.toml: limits: maxTotalAgents"),
        (&[], "[limits]\nmaxTotalAgents = 0", "maxTotalAgents must be a positive integer"),
    ] {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.js"), "return 1").unwrap();
        fs::write(folder.path().join("fanfold.toml"), toml).unwrap();
        let output = fanfold().current_dir(folder.path()).args(["run", "s.js"]).args(args).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{args:?} {toml}");
        let said = stderr(&output);
        assert!(said.contains(expected), "{expected}: {said}");
        assert!(toml.is_empty() || said.contains("fanfold.toml"), "{said}");
    }
}

#[test]
fn numbers_may_be_written_as_javascript_writes_them() {
    let output = run(&["run", "-", "--limits", r#"{"maxFuel": 1e11, "maxTotalAgents": 5.0}"#], "return 1");
    assert_eq!(stdout(&output), "1\n", "{}", stderr(&output));
}

#[test]
fn the_cap_says_what_raises_it() {
    let output =
        run(&["run", "-", "--limits", r#"{"maxTotalAgents": 1}"#], "await agent('a'); await agent('b')");
    assert!(stderr(&output).contains("raise maxTotalAgents"), "{}", stderr(&output));
}

#[test]
fn memory_is_told_in_mebibytes() {
    let output = run(&["run", "-"], "const all = []; while (true) all.push(new Array(1e5).fill(1))");
    assert!(stderr(&output).contains("more than 64 MiB of memory"), "{}", stderr(&output));
}

#[cfg(target_os = "linux")]
#[test]
fn output_that_cannot_be_written_is_a_failure() {
    for script in ["return 1", "log('x'); return await agent('x')"] {
        let mut command = fanfold();
        let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("s.js"), script).unwrap();
        command.current_dir(folder.path()).args(["run", "s.js", "--json"]).stdout(full);
        let output = command.output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
        assert!(stderr(&output).contains("failed to print"), "{}", stderr(&output));
    }
}

#[test]
fn a_run_whose_lines_nobody_reads_any_more_is_cancelled() {
    let folder = tempfile::tempdir().unwrap();
    let script = "for (;;) { log('x'); await agent('sleep:10') }";
    fs::write(folder.path().join("s.js"), script).unwrap();
    let mut command = fanfold();
    command.current_dir(folder.path()).args(["run", "s.js", "--json"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.contains("workflow/start"), "{line}");
    assert_eq!(child.wait().unwrap().code(), Some(130));
}

#[test]
fn args_are_what_their_json_says() {
    let folder = tempfile::tempdir().unwrap();
    let bom = folder.path().join("bom.json");
    fs::write(&bom, "\u{feff}{\"a\": 1}").unwrap();
    let bom = format!("@{}", bom.display());
    for (args, value) in [
        ("-1", "-1"),
        ("-1.5e3", "-1500"),
        ("0", "0"),
        ("\"text\"", "\"text\""),
        ("null", "null"),
        (&bom, "{\n  \"a\": 1\n}"),
    ] {
        let output = run(&["run", "-", "--args", args], "return args");
        assert_eq!(stdout(&output), format!("{value}\n"), "{args}: {}", stderr(&output));
    }
}

#[test]
fn args_that_the_script_does_not_take_are_named_with_their_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("args.json");
    fs::write(&file, r#"{"files": 1}"#).unwrap();
    let script = "export const meta = { name: 'n', description: 'd',
        args: { type: 'object', properties: { files: { type: 'array' } } } }
        return args";
    let output = run(&["run", "-", "--args", &format!("@{}", file.display())], script);
    assert_eq!(output.status.code(), Some(2));
    let said = stderr(&output);
    assert!(said.contains("files") && said.contains("args.json"), "{said}");
}

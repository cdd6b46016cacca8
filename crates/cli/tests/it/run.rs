//! `fanfold run` as people and programs see it.

use std::fs;

use serde_json::Value;

use crate::fanfold::{run, stderr, stdout};

fn last_line(text: &str) -> Value {
    serde_json::from_str(text.lines().last().expect("a line")).expect("JSON")
}

#[test]
fn the_value_is_all_that_stands_on_standard_output() {
    let output = run(&["run", "-"], "phase('p'); log('hello'); return {a: [await agent('x')]}");
    assert_eq!(stdout(&output), "{\n  \"a\": [\n    \"echo:x\"\n  ]\n}\n");
    for part in ["p", "hello", "x"] {
        assert!(stderr(&output).contains(part), "{}", stderr(&output));
    }
    assert_eq!(output.status.code(), Some(0));
}

#[test]
fn a_script_that_fails_says_where() {
    let output = run(&["run", "-"], "const a = 1\nconst b = await agent('x')\n  throw new TypeError('boom')");
    assert_eq!(output.status.code(), Some(1));
    assert_eq!(stdout(&output), "");
    let shown = stderr(&output);
    assert!(shown.contains("TypeError: boom") && shown.contains(":3:"), "{shown}");
}

#[test]
fn a_script_that_does_not_parse_is_shown_with_its_place() {
    let output = run(&["run", "-", "--json"], "const a = 1\nreturn 1 +* 2\n");
    assert_eq!(output.status.code(), Some(2));
    let last = last_line(stdout(&output));
    assert_eq!((&last["error"]["code"], &last["error"]["line"]), (&"SCRIPT_PARSE".into(), &2.into()));
    assert_eq!(last["error"]["column"], 11);

    let output = run(&["run", "-"], "const a = 1\nreturn 1 +* 2\n");
    assert!(
        stderr(&output).contains("return 1 +* 2") && stderr(&output).contains('^'),
        "{}",
        stderr(&output)
    );
}

#[test]
fn an_argument_that_is_wrong_is_told_without_running_anything() {
    for (words, told) in [
        (&["run", "no-such-file.js"][..], "no-such-file.js"),
        (&["run", "-", "--limits", "{"], "--limits"),
        (&["run", "-", "--limits", r#"{"maxTotalAgent": 1}"#], "maxTotalAgent"),
        (&["run", "-", "--limits", r#"{"maxTotalAgents": 0}"#], "maxTotalAgents"),
        (&["run", "-", "--agents", "command"], "--agent-command"),
        (&["run", "-", "--args", "@no-such-file.json"], "no-such-file.json"),
        (&["run", "-", "--with-requests"], "--json"),
        (&["run", "-", "--args", "{"], "args"),
        (&["run", "-", "--meta", "{}"], "meta.name"),
        (&["run"], "SCRIPT"),
    ] {
        let output = run(words, "return 1");
        assert_eq!(output.status.code(), Some(2), "{words:?}");
        assert!(stderr(&output).contains(told), "{words:?}: {}", stderr(&output));
        assert_eq!(stdout(&output), "", "{words:?}");
    }
}

#[test]
fn settings_come_from_the_nearest_file_and_options_win() {
    let folder = format!("{}/settings/below", env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(&folder).unwrap();
    fs::write(format!("{folder}/../fanfold.toml"), "agentCommand = \"sh -c 'echo one'\"\nmodel = \"m\"\n")
        .unwrap();
    let script = format!("{folder}/script.js");
    fs::write(&script, "return await agent('x')").unwrap();
    let run_there = |words: &[&str]| {
        let mut command = crate::fanfold::fanfold();
        command.current_dir(&folder).args(["run", "script.js", "--json"]).args(words);
        let output = command.output().unwrap();
        (output.status.code(), stdout(&output).to_owned(), stderr(&output).to_owned())
    };
    let (status, _, told) = run_there(&[]);
    assert!(status == Some(2) && told.contains("--model"), "a model that nobody reads is refused: {told}");
    let (_, lines, _) = run_there(&["--agent-command", "sh -c 'echo \"$FANFOLD_MODEL\"'"]);
    let last = last_line(&lines);
    assert_eq!((&last["value"], &last["stopReason"]), (&"m".into(), &"completed".into()));
    assert!(lines.lines().next().unwrap().contains("\"name\":\"script\""), "its file's name is its name");
}

#[test]
fn args_are_json_text_or_a_file() {
    let file = format!("{}/args.json", env!("CARGO_TARGET_TMPDIR"));
    fs::write(&file, "[1, 2]").unwrap();
    for (words, value) in [
        (&["--args", r#"{"a":1}"#][..], "{\n  \"a\": 1\n}\n"),
        (&["--args", &format!("@{file}")], "[\n  1,\n  2\n]\n"),
        (&["--args-text", "[1]"], "\"[1]\"\n"),
        (&[], "\"none\"\n"),
    ] {
        let words = [&["run", "-"], words].concat();
        assert_eq!(stdout(&run(&words, "return args ?? 'none'")), value);
    }
}

#[test]
fn the_same_seed_gives_the_same_numbers() {
    let random = |seed: &[&str]| {
        let words = [&["run", "-"], seed].concat();
        stdout(&run(&words, "return [Math.random(), Math.random()]")).to_owned()
    };
    assert_eq!(random(&["--seed", "7"]), random(&["--seed", "7"]));
    assert_ne!(random(&["--seed", "7"]), random(&["--seed", "8"]));
    assert_ne!(random(&[]), random(&[]));
}

#[test]
fn the_text_for_a_model_is_cut_as_asked() {
    let output = run(&["run", "-", "--json", "--max-result-chars", "5"], "return 'abcdefgh'");
    let text = last_line(stdout(&output))["text"].as_str().unwrap().to_owned();
    assert!(text.ends_with("\"abcd\n… [truncated: 5 more characters]"), "{text}");
}

#[test]
fn a_run_can_be_repeated_by_what_its_result_says() {
    let script = "return [Math.random(), Date.now(), new Date().toISOString()]";
    let first = last_line(stdout(&run(&["run", "-", "--json"], script)));
    let (seed, start) = (first["seed"].to_string(), first["startTimeMs"].to_string());
    let again = run(&["run", "-", "--json", "--seed", &seed, "--start-time-ms", &start], script);
    assert_eq!(last_line(stdout(&again))["value"], first["value"]);
}

#[test]
fn the_result_is_the_last_line_however_slow_the_reader_is() {
    let script = "for (let i = 0; i < 2000; i++) log(i + 'x'.repeat(500)); return 'done'";
    let mut command = crate::fanfold::fanfold();
    // More than a pipe holds, and a reader that comes after the grace period.
    command.args(["run", "-", "--json", "--limits", r#"{"disposeGraceMs": 50}"#]);
    command.stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), script.as_bytes()).unwrap();
    std::thread::sleep(std::time::Duration::from_millis(600));
    let output = child.wait_with_output().unwrap();
    let lines: Vec<&str> = stdout(&output).lines().collect();
    assert_eq!(lines.len(), 2003);
    assert_eq!(last_line(lines[2002])["value"], "done");
    assert_eq!(last_line(lines[2001])["type"], "workflow/end");
}

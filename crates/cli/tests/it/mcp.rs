//! `fanfold mcp` as a client starts it; what it serves is tested in `crates/mcp` and `tests/mcp`.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use serde_json::{Value, json};

use crate::fanfold::{fanfold, run, stderr, stdout};

/// Calls the workflow tool once, and gives all that was printed until the server has ended by itself.
fn call(args: &[&str], script: &str) -> Vec<Value> {
    call_of(fanfold(), args, script)
}

/// The same of a command that has its folder.
fn call_of(mut server: Command, args: &[&str], script: &str) -> Vec<Value> {
    server.arg("mcp").args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut server = server.spawn().expect("fanfold starts");
    let mut input = server.stdin.take().expect("its input is piped");
    input.write_all(session(script).as_bytes()).expect("it reads");
    let output = BufReader::new(server.stdout.take().expect("its output is piped"));
    let (mut messages, mut input) = (Vec::new(), Some(input));
    for line in output.lines() {
        let message: Value = serde_json::from_str(&line.expect("it is text")).expect("a line is a message");
        if message["id"] == 2 {
            input.take();
        }
        messages.push(message);
    }
    assert!(server.wait().expect("it ends").success());
    messages
}

/// What a client writes to call the workflow tool once.
fn session(script: &str) -> String {
    let client = json!({"name": "test", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client});
    let arguments = json!({"meta": {"name": "t", "description": "d"}, "script": script});
    let messages = [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": "workflow", "arguments": arguments}}),
    ];
    messages.map(|message| format!("{message}\n")).concat()
}

/// What the call gave.
fn value(messages: &[Value]) -> &Value {
    let answer = messages.iter().find(|message| message["id"] == 2).expect("the call is answered");
    &answer["result"]["structuredContent"]
}

#[test]
fn nothing_but_the_protocol_is_on_standard_output() {
    let messages = call(&[], "log('a line'); return await agent('hello')");
    assert!(messages.iter().all(|message| message["jsonrpc"] == "2.0"), "{messages:?}");
    let value = value(&messages);
    assert_eq!(value["result"], "echo:hello");
    assert!(value["notice"].as_str().unwrap().contains("--agent-command"), "{value}");
}

#[test]
fn agents_that_were_asked_for_need_no_notice() {
    let messages = call(&["--agents", "scripted"], "return await agent('hello')");
    let value = value(&messages);
    assert_eq!((&value["result"], value.get("notice")), (&json!("echo:hello"), None));
}

#[test]
fn the_saved_workflows_of_the_folder_can_be_run_inside() {
    let folder = tempfile::tempdir().unwrap();
    let workflows = folder.path().join(".fanfold/workflows");
    std::fs::create_dir_all(&workflows).unwrap();
    let inner = "export const meta = {name: 'double', description: 'd'}\nreturn args.n * 2";
    std::fs::write(workflows.join("double.js"), inner).unwrap();
    let mut server = fanfold();
    server.current_dir(folder.path());
    let script = "return await workflow('double', {n: 21})";
    let messages = call_of(server, &["--agents", "scripted"], script);
    assert_eq!(value(&messages)["result"], 42, "{messages:?}");
}

/// A folder with these saved workflows.
fn folder(workflows: &[(&str, &str)]) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    let saved = folder.path().join(".fanfold/workflows");
    std::fs::create_dir_all(&saved).unwrap();
    for (name, script) in workflows {
        std::fs::write(saved.join(name), script).unwrap();
    }
    folder
}

/// What a client writes to list the tools and call one.
fn listing(name: &str, arguments: &Value) -> String {
    let call = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": {"name": name, "arguments": arguments}});
    let first = session("return 1");
    let hello: Vec<&str> = first.lines().take(2).collect();
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    format!("{}\n{list}\n{call}\n", hello.join("\n"))
}

const DOUBLE: &str = "export const meta = {name: 'double', description: 'Doubles', \
                      args: {type: 'object', properties: {n: {type: 'integer'}}, required: ['n']}}\nreturn args.n * 2";

#[test]
fn saved_workflows_are_tools_of_their_own_where_they_are_named() {
    let folder = folder(&[
        ("double.js", DOUBLE),
        ("plain.js", "return args"),
        ("broken.js", "export const meta = {name: f()}"),
        ("a b.js", "return 1"),
    ]);
    let serve = |args: &[&str], input: &str| {
        let mut server = fanfold();
        server.current_dir(folder.path()).env("HOME", folder.path()).env_remove("XDG_CONFIG_HOME");
        server.args(["mcp", "--agents", "scripted"]).args(args).stdin(Stdio::piped());
        let mut server = server.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        server.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
        let output = server.wait_with_output().unwrap();
        let lines =
            stdout(&output).lines().map(|line| serde_json::from_str(line).unwrap()).collect::<Vec<Value>>();
        (lines, output)
    };
    let tools = |messages: &[Value]| -> Vec<String> {
        let listed = messages.iter().find(|message| message["id"] == 3).unwrap();
        let tools = listed["result"]["tools"].as_array().unwrap().iter();
        tools.map(|tool| tool["name"].as_str().unwrap().to_owned()).skip(5).collect()
    };
    let input = listing("double", &json!({"n": 21}));
    let (messages, _) = serve(&["--name", "double"], &input);
    assert_eq!(tools(&messages), ["double"]);
    let listed = messages.iter().find(|message| message["id"] == 3).unwrap();
    assert_eq!(listed["result"]["tools"][5]["inputSchema"]["required"], json!(["n"]));
    assert_eq!(value(&messages)["result"], 42, "{messages:?}");
    let (messages, _) = serve(&["--name", "plain", "--name", "double"], &listing("plain", &json!({"a": 1})));
    assert_eq!(tools(&messages), ["plain", "double"]);
    assert_eq!(value(&messages)["result"], json!({"a": 1}), "{messages:?}");

    let (messages, output) = serve(&["--all-workflows"], &listing("double", &json!({"n": "x"})));
    assert_eq!(tools(&messages), ["double", "plain"]);
    assert_eq!(value(&messages)["error"]["path"], "args.n", "{messages:?}");
    for told in ["broken.js is no tool", "a b.js is no tool"] {
        assert!(stderr(&output).contains(told), "{}", stderr(&output));
    }
    for (args, told) in [
        (vec!["--name", "none"], "there is no saved workflow \"none\""),
        (vec!["--name", "broken"], "broken.js is no tool"),
        (vec!["--name", "a b"], "letters, digits, underscores and hyphens"),
        (vec!["--name", "double", "--all-workflows"], "cannot be used with"),
    ] {
        let (messages, output) = serve(&args, "");
        assert!(messages.is_empty() && output.status.code() == Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told), "{args:?}: {}", stderr(&output));
    }
}

/// Whether a process is there.
#[cfg(unix)]
fn lives(pid: &str) -> bool {
    Command::new("kill").args(["-0", pid]).stderr(Stdio::null()).status().unwrap().success()
}

#[cfg(unix)]
#[test]
fn a_client_that_reads_no_more_is_no_reason_to_run_on() {
    use std::time::{Duration, Instant};
    for by_signal in [false, true] {
        let folder = folder(&[]);
        let pid_file = folder.path().join("pid");
        let agent = format!("sh -c 'echo $$ > {}; exec sleep 300'", pid_file.display());
        let mut server = fanfold();
        server.current_dir(folder.path()).args(["mcp", "--agent-command", &agent]);
        let mut server =
            server.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut input = server.stdin.take().unwrap();
        input.write_all(session("return await agent('x')").as_bytes()).unwrap();
        let pid = loop {
            match std::fs::read_to_string(&pid_file) {
                Ok(pid) if pid.ends_with('\n') => break pid.trim().to_owned(),
                _ => std::thread::sleep(Duration::from_millis(20)),
            }
        };
        // The answers fill the pipe, which nobody empties.
        for id in 100..160 {
            let list = json!({"jsonrpc": "2.0", "id": id, "method": "tools/list"});
            input.write_all(format!("{list}\n").as_bytes()).unwrap();
        }
        std::thread::sleep(Duration::from_millis(300));
        if by_signal {
            let told = Command::new("kill").args(["-TERM", &server.id().to_string()]).status().unwrap();
            assert!(told.success());
        } else {
            drop(input);
        }
        // Some seconds, on a machine that has other things to do.
        let late = Instant::now() + Duration::from_secs(60);
        while server.try_wait().unwrap().is_none() || lives(&pid) {
            assert!(Instant::now() < late, "server or agent run on (by signal: {by_signal})");
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

#[test]
fn pages_and_servers_are_told_alike_where_to_listen() {
    for command in ["run", "view", "mcp"] {
        let help = run(&[command, "--help"], "");
        for (option, known) in [
            ("--listen <ADDRESS:PORT>", true),
            ("--host <NAME>", true),
            ("--view-host", false),
            ("--bind", false),
            ("--port", false),
        ] {
            assert_eq!(stdout(&help).contains(option), known, "{command} {option}: {}", stdout(&help));
        }
    }
}

#[test]
fn the_server_listens_where_it_is_told_to_or_not_at_all() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = run(&["mcp", "--transport", "http", "--listen", &address], "");
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let told = format!("failed to listen on {address}; choose another with --listen");
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
}

#[test]
fn a_door_that_would_stand_open_is_refused() {
    for (args, told) in [
        (vec!["--no-token", "--listen", "0.0.0.0:0"], "--no-token is for this machine alone"),
        (vec!["--token-env", "FANFOLD_NO_SUCH_VARIABLE"], "FANFOLD_NO_SUCH_VARIABLE"),
        (vec!["--token-env", "X", "--no-token"], "cannot be used with"),
        (vec!["--model", "m", "--agents", "sampling"], "--model would have no effect"),
    ] {
        let output = run(&[&["mcp", "--transport", "http"][..], &args].concat(), "");
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(stderr(&output).contains(told), "{args:?}: {}", stderr(&output));
    }
    let output = run(&["run", "-", "--agents", "sampling"], "return 1");
    assert!(stderr(&output).contains("fanfold mcp"), "{}", stderr(&output));
}

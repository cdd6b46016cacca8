//! Providers chosen on the command line and in `fanfold.toml`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

use serde_json::{Value, json};

use crate::fanfold::{fanfold, stderr, stdout};

const KEY: &str = "sk-test-0123456789";

/// A server that answers every request with this status and body. Requests are told, heads and bodies.
fn server(status: &'static str, body: &'static str) -> (String, Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/v1", listener.local_addr().unwrap());
    let (told, requests) = channel();
    thread::spawn(move || {
        for connection in listener.incoming() {
            let told = told.clone();
            thread::spawn(move || {
                answer(connection.unwrap(), status, body, |request| told.send(request).unwrap())
            });
        }
    });
    (url, requests)
}

fn answer(mut connection: TcpStream, status: &str, body: &str, tell: impl Fn(String)) {
    let mut reader = BufReader::new(connection.try_clone().unwrap());
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).unwrap() == 0 {
            return;
        }
    }
    let length =
        head.lines().find_map(|line| line.to_lowercase().strip_prefix("content-length: ")?.parse().ok());
    let mut asked = vec![0; length.unwrap_or_default()];
    reader.read_exact(&mut asked).unwrap();
    tell(format!("{head}{}", String::from_utf8(asked).unwrap()));
    let size = body.len();
    let head = format!("HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {size}\r\n");
    write!(connection, "{head}connection: close\r\n\r\n{body}").unwrap();
}

fn folder(name: &str, settings: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("providers-{name}"));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("fanfold.toml"), settings).unwrap();
    folder
}

fn run(folder: &Path, script: &str, args: &[&str], key: Option<&str>) -> Output {
    fs::write(folder.join("script.js"), script).unwrap();
    let mut command = fanfold();
    command.current_dir(folder).args(["run", "script.js"]).args(args).stdin(Stdio::null());
    for variable in ["OPENAI_API_KEY", "ANTHROPIC_API_KEY", "MY_KEY"] {
        command.env_remove(variable);
    }
    if let Some(key) = key {
        command.env("MY_KEY", key);
    }
    command.output().expect("fanfold runs")
}

fn last_line(output: &Output) -> Value {
    serde_json::from_str(stdout(output).lines().last().expect("a line")).expect("JSON")
}

#[test]
fn model_apis_answer_and_are_counted() {
    for (agents, body, header) in [
        (
            "openai",
            r#"{"choices":[{"message":{"content":"hi"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1000,"completion_tokens":2}}"#,
            format!("authorization: Bearer {KEY}"),
        ),
        (
            "anthropic",
            r#"{"content":[{"type":"text","text":"hi"}],"stop_reason":"end_turn","usage":{"input_tokens":1000,"output_tokens":2}}"#,
            format!("x-api-key: {KEY}"),
        ),
    ] {
        let (url, requests) = server("200 OK", body);
        let settings =
            format!("[agents.{agents}]\nbaseUrl = \"{url}\"\napiKeyEnv = \"MY_KEY\"\nmodel = \"m1\"\n");
        let folder = folder(agents, &settings);
        let script = "return await parallel([1, 2].map((n) => () => agent(`say ${n}`)))";
        let output = run(&folder, script, &["--json", "--model", "m2"], Some(KEY));
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let last = last_line(&output);
        assert_eq!(last["value"], json!(["hi", "hi"]));
        assert_eq!(last["usage"], json!({"inputTokens": 2000, "outputTokens": 4}));
        let ends = stdout(&output)
            .lines()
            .filter(|line| line.contains(r#""usage":{"inputTokens":1000,"outputTokens":2}"#));
        assert_eq!(ends.count(), 2);
        for _ in 0..2 {
            let request = requests.recv().unwrap();
            assert!(request.contains(&header) && request.contains(r#""model":"m2""#), "{request}");
        }
        let output = run(&folder, "return await agent('x')", &["--agents", agents], Some(KEY));
        assert!(stderr(&output).contains("1.0k tokens read, 2 written"), "{}", stderr(&output));
        assert!(requests.recv().unwrap().contains(r#""model":"m1""#));
    }
}

#[test]
fn a_refused_key_stops_all_further_agents_and_is_shown_nowhere() {
    let body =
        r#"{"error":{"message":"Incorrect API key provided: sk-test-0123456789","code":"invalid_api_key"}}"#;
    let (url, requests) = server("401 Unauthorized", body);
    let settings = format!("[agents.openai]\nbaseUrl = \"{url}\"\napiKeyEnv = \"MY_KEY\"\nmodel = \"m\"\n");
    let folder = folder("refused", &settings);
    let script = "
        const tries = [1, 2, 3].map((n) => agent(`try ${n}`).catch((error) => `${error.code}: ${error.message}`))
        const first = await Promise.all(tries)
        return [...first, await agent('later').catch((error) => error.code)]";
    let output = run(&folder, script, &["--json", "--limits", r#"{"maxConcurrentAgents": 1}"#], Some(KEY));
    let last = last_line(&output);
    let value = last["value"].as_array().unwrap_or_else(|| panic!("{last}"));
    let told = |n: usize, code: &str| {
        let text = value[n].as_str().unwrap();
        assert!(text.starts_with(code) && text.contains("authentication: openai answered 401: "), "{text}");
    };
    told(0, "AGENT_RESULT: ");
    told(1, "AGENT_START: no more agents start, since agent 1 found: ");
    told(2, "AGENT_START: ");
    assert_eq!((&value[3], &last["agentsStarted"]), (&json!("AGENT_START"), &json!(3)));
    assert_eq!(requests.try_iter().count(), 1, "nothing more is asked");
    assert!(!stdout(&output).contains(KEY) && !stderr(&output).contains(KEY));
}

#[test]
fn what_is_wrong_with_the_settings_names_the_file_and_the_key() {
    for (name, settings, args, key, told) in [
        (
            "no-key",
            "agents = \"openai\"",
            &[][..],
            None,
            "apiKeyEnv of [agents.openai]: the environment variable OPENAI_API_KEY is not set",
        ),
        (
            "own-key",
            "[agents.anthropic]\napiKeyEnv = \"MY_KEY\"",
            &[],
            None,
            "apiKeyEnv of [agents.anthropic]: the environment variable MY_KEY is not set",
        ),
        (
            "bad-key",
            "[agents.openai]\napiKeyEnv = \"MY_KEY\"",
            &[],
            Some("se\ncret"),
            "apiKeyEnv of [agents.openai]: the API key has a character",
        ),
        (
            "model",
            "[agents.openai]\napiKeyEnv = \"MY_KEY\"",
            &[],
            Some(KEY),
            "no model is set: add --model, or model to [agents.openai]",
        ),
        (
            "url",
            "[agents.openai]\napiKeyEnv = \"\"\nbaseUrl = \"localhost\"\nmodel = \"m\"",
            &[],
            None,
            "baseUrl of [agents.openai]: the base URL is not usable",
        ),
        (
            "clear",
            "[agents.openai]\napiKeyEnv = \"MY_KEY\"\nbaseUrl = \"http://models.example\"\nmodel = \"m\"",
            &[],
            Some(KEY),
            "use https://",
        ),
        ("unknown", "[agents.openai]\nbaseURL = \"x\"", &[], None, "baseURL"),
        ("unknown", "[agents.openai]\nbaseURL = \"x\"", &[], None, "fanfold.toml"),
        ("name", "agents = \"opnai\"", &[], None, "opnai"),
        ("permissions", "[agents.acp]\npermissions = \"all\"", &[], None, "all"),
        ("acp", "[agents]\nuse = \"acp\"", &[], None, "--agents acp needs to know which"),
        (
            "scripted",
            "",
            &["--agents", "scripted", "--agent-command", "x"],
            None,
            "--agent-command would have no effect with --agents scripted",
        ),
        (
            "http",
            "agents = \"openai\"",
            &["--agents", "openai", "--agent-command", "x"],
            None,
            "--agent-command would have no effect with --agents openai",
        ),
        (
            "acp-model",
            "[agents.acp]\ncommand = \"x\"",
            &["--model", "m"],
            None,
            "--model would have no effect",
        ),
    ] {
        let folder = folder(name, settings);
        let output = run(&folder, "return 1", args, key);
        assert_eq!(output.status.code(), Some(2), "{name}");
        assert!(stderr(&output).contains(told), "{name}: {}", stderr(&output));
        assert!(!stderr(&output).contains("cret") && !stderr(&output).contains(KEY));
    }
}

#[cfg(unix)]
#[test]
fn a_command_in_the_settings_file_is_found_from_its_folder() {
    use std::os::unix::fs::PermissionsExt as _;

    let folder = folder("relative", "agentCommand = \"./agent.sh --here\"\n");
    fs::write(folder.join("agent.sh"), "#!/bin/sh\necho \"$1 $(basename \"$PWD\")\"\n").unwrap();
    fs::set_permissions(folder.join("agent.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let below = folder.join("below");
    fs::create_dir_all(&below).unwrap();
    let output = run(&below, "return await agent('x')", &[], None);
    // It runs where the user is.
    assert_eq!(stdout(&output), "\"--here below\"\n", "{}", stderr(&output));
}

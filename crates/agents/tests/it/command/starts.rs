//! Commands that can be started, and what is said of those that cannot.

use std::fs;

use fanfold::{AgentRequest, CancellationToken, Subagents as _, Support};
use fanfold_agents::Command;
use serde_json::json;

use super::{run, sh};

async fn start_error(command: &Command) -> String {
    command.start(AgentRequest::new("x"), CancellationToken::new()).await.unwrap_err().to_string()
}

#[tokio::test]
async fn a_line_is_split_as_a_shell_splits_it() {
    let agents = Command::parse(r#"printf '%s|' a "b c" d\ e 'f"g' '' '$HOME' *"#).unwrap();
    let answer = run(&agents, AgentRequest::new("x")).await.unwrap().text;
    assert_eq!(answer, r#"a|b c|d e|f"g||$HOME|*|"#);
}

#[test]
fn a_bad_command_is_refused() {
    for (line, expected) in [
        ("", "the command is empty; give a program and its arguments"),
        (" # claude", "the command is empty; give a program and its arguments"),
        ("'' x", "the command is empty; give a program and its arguments"),
        ("a 'b", r#"a quotation mark in the command "a 'b" is not closed, or it ends in a backslash"#),
    ] {
        assert_eq!(Command::parse(line).unwrap_err().to_string(), expected);
    }
    assert_eq!(
        Command::parse("a").unwrap().honours("modle").unwrap_err().to_string(),
        r#"a command cannot honour "modle"; it can: model, provider, effort, agentType, stallMs"#
    );
}

#[test]
fn an_option_up_to_the_program_is_honoured_where_the_command_or_its_owner_says_so() {
    let mut expected = Support::default();
    (expected.schema, expected.timeout, expected.retries) = (true, true, true);
    expected.instructions = true;
    assert_eq!(Command::parse("claude -p").unwrap().supports(), expected);
    expected.model = true;
    let naming = Command::parse(r#"sh -c 'claude -p ${FANFOLD_MODEL:+--model "$FANFOLD_MODEL"}'"#).unwrap();
    assert_eq!(naming.supports(), expected);
    (expected.provider, expected.effort, expected.agent_type, expected.stall) = (true, true, true, true);
    let mut saying = Command::parse("./agent.sh").unwrap();
    for option in ["model", "provider", "effort", "agentType", "stallMs"] {
        saying = saying.honours(option).unwrap();
    }
    assert_eq!(saying.supports(), expected);
}

#[tokio::test]
async fn a_program_that_cannot_start_is_told_with_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (plain, script, absent) = (path("plain"), path("script"), path("absent"));
    fs::write(&plain, "x").unwrap();
    fs::write(&script, format!("#!{absent}\n")).unwrap();
    let executable = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(&script, executable).unwrap();

    let here = std::env::current_dir().unwrap();
    let cases = [
        (
            "fanfold-no-such-program",
            "there is no such program in PATH; install it, or give its path".to_owned(),
        ),
        ("./no/such", format!("there is no file {}", here.join("./no/such").display())),
        (&*absent, format!("there is no file {absent}")),
        (&*script, "the interpreter that its first line names does not exist; install that".to_owned()),
        (
            &*plain,
            format!(
                "Permission denied (os error 13); it must be executable, and {} accessible",
                here.display()
            ),
        ),
    ];
    for (program, why) in cases {
        let error = start_error(&Command::new([program]).unwrap()).await;
        assert_eq!(error, format!("cannot start {program:?}: {why}"));
    }
    for directory in [&absent, &plain] {
        let error = start_error(&sh(":").directory(directory)).await;
        let why = format!("the working directory {directory} is none; create it, or choose another");
        assert_eq!(error, format!("cannot start \"sh\": {why}"));
    }
}

#[tokio::test]
async fn options_too_long_for_a_process_are_told() {
    let mut request = AgentRequest::new("x");
    request.label = "x".repeat(16 << 20).into();
    let error = sh(":").start(request, CancellationToken::new()).await.unwrap_err().to_string();
    assert_eq!(
        error,
        "cannot start \"sh\": its arguments and environment are too long for this system; \
         shorten the options of agent()"
    );
}

#[tokio::test]
async fn a_schema_that_cannot_be_used_does_not_start() {
    let mut request = AgentRequest::new("x");
    request.options.schema = Some(json!({"type": "object", "required": 3}));
    let error = sh(":").start(request, CancellationToken::new()).await.unwrap_err().to_string();
    assert!(error.starts_with("the schema cannot be used: "), "{error}");
}

//! What a child is given, and what counts as its answer.

use fanfold::{AgentRequest, CancellationToken, Subagents as _};
use fanfold_agents::Command;
use serde_json::json;

use super::{failed, run, say, sh};

#[tokio::test]
async fn the_prompt_goes_in_and_the_answer_comes_out() {
    let agents = Command::parse("cat").unwrap();
    for prompt in ["hello", "🎉\0\u{2028}\u{feff}", " a\nb"] {
        assert_eq!(run(&agents, AgentRequest::new(prompt)).await.unwrap().text, prompt);
    }
}

#[tokio::test]
async fn line_ends_at_the_end_are_trimmed_and_bad_utf8_replaced() {
    for (script, answer) in [
        ("printf 'a\\r\\n\\n'", "a"),
        ("printf '\\n a \\n'", "\n a "),
        ("printf 'a\\377b'", "a\u{fffd}b"),
        (":", ""),
        ("echo no >&2; echo yes", "yes"),
    ] {
        assert_eq!(say(script).await, answer, "{script}");
    }
}

#[tokio::test]
async fn prompts_and_answers_may_be_large_and_cross() {
    let prompt = "0123456789".repeat(300_000);
    assert_eq!(run(&sh("cat"), AgentRequest::new(&*prompt)).await.unwrap().text, prompt);
}

#[tokio::test]
async fn a_child_need_not_read_its_prompt() {
    for script in ["echo done", "exec <&-; echo done", "head -c 1 >/dev/null; echo done"] {
        let prompt = "x".repeat(1 << 20);
        assert_eq!(run(&sh(script), AgentRequest::new(prompt)).await.unwrap().text, "done", "{script}");
    }
}

#[tokio::test]
async fn an_answer_longer_than_allowed_is_a_failure() {
    let agents = sh("yes").max_answer_bytes(1 << 20);
    assert_eq!(
        run(&agents, AgentRequest::new("x")).await,
        failed("answerSize: the answer is longer than 1048576 bytes")
    );
    let agents = sh("printf 1234").max_answer_bytes(4);
    assert_eq!(run(&agents, AgentRequest::new("x")).await.unwrap().text, "1234");
}

#[tokio::test]
async fn a_failure_tells_its_status_and_what_the_child_said_last() {
    for (script, diagnostic) in [
        ("exit 3", "exit: exit status 3"),
        (
            "echo answer; printf ' why\\nso \\n' >&2; exit 3",
            "exit: exit status 3; standard error: why\nso; it had said: answer",
        ),
        ("echo told here; exit 1", "exit: exit status 1; it had said: told here"),
        ("kill -9 $$", "exit: killed by signal 9"),
        ("echo bad >&2; kill -TERM $$", "exit: killed by signal 15; standard error: bad"),
    ] {
        assert_eq!(run(&sh(script), AgentRequest::new("x")).await, failed(diagnostic), "{script}");
    }
    for (stream, name) in [("1", "it had said"), ("2", "standard error")] {
        let script = format!("(yes x | head -n 1000000; echo end) >&{stream}; exit 1");
        let Err(error) = run(&sh(&script), AgentRequest::new("x")).await else { panic!("it must fail") };
        let diagnostic = error.to_string();
        assert!(diagnostic.starts_with(&format!("exit: exit status 1; {name}: …")), "{diagnostic}");
        assert!(diagnostic.ends_with("x\nx\nend"), "{diagnostic}");
        assert!(diagnostic.len() < 1100, "{}", diagnostic.len());
    }
}

#[tokio::test]
async fn the_options_of_the_call_are_in_the_environment() {
    let mut request = AgentRequest::new("x");
    request.run_id = "run-7".into();
    request.seq = 42;
    request.label = "a \0label".into();
    request.phase = Some("map".into());
    let options = &mut request.options;
    options.provider = Some("acme".into());
    options.model = Some("$(large)".into());
    options.effort = Some("high".into());
    options.agent_type = Some("reviewer".into());
    options.timeout_ms = Some(60_000);
    options.stall_ms = Some(30_000);
    options.retries = Some(2);
    let answer = run(&sh("env | grep ^FANFOLD_ | sort"), request).await.unwrap().text;
    assert_eq!(
        answer.lines().collect::<Vec<_>>(),
        [
            "FANFOLD_AGENT_TYPE=reviewer",
            "FANFOLD_ATTEMPT=1",
            "FANFOLD_EFFORT=high",
            "FANFOLD_LABEL=a label",
            "FANFOLD_MODEL=$(large)",
            "FANFOLD_PHASE=map",
            "FANFOLD_PROVIDER=acme",
            "FANFOLD_RETRIES=2",
            "FANFOLD_RUN_ID=run-7",
            "FANFOLD_SEQ=42",
            "FANFOLD_STALL_MS=30000",
            "FANFOLD_TIMEOUT_MS=60000",
        ]
    );
    let mut request = AgentRequest::new("x");
    request.options.schema = Some(json!({"type": "object"}));
    let answer = run(&sh(r#"printf '{"got": %s}' "$FANFOLD_SCHEMA""#), request).await.unwrap();
    assert_eq!(answer.structured, Some(json!({"got": {"type": "object"}})));
}

#[tokio::test]
async fn little_else_is_in_the_environment_unless_passed_by_name() {
    // Cargo sets these for every test.
    let (one, other) = ("CARGO_PKG_NAME", "CARGO_PKG_VERSION");
    let script = "echo ${PATH:+path} $CARGO_PKG_NAME $CARGO_PKG_VERSION $KEY";
    let agents = sh(script);
    assert_eq!(run(&agents, AgentRequest::new("x")).await.unwrap().text, "path");
    let agents = agents.inherit(one).inherit("FANFOLD_NEVER_SET").env("KEY", "secret").env(other, "none");
    assert_eq!(run(&agents, AgentRequest::new("x")).await.unwrap().text, "path fanfold-agents none secret");
    assert!(!format!("{agents:?}").contains("secret"));
}

#[tokio::test]
async fn a_child_works_where_it_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let expected = folder.path().canonicalize().unwrap();
    let agents = sh("pwd -P").directory(folder.path());
    assert_eq!(run(&agents, AgentRequest::new("x")).await.unwrap().text, expected.to_str().unwrap());
    let here = std::env::current_dir().unwrap().canonicalize().unwrap();
    assert_eq!(say("pwd -P").await, here.to_str().unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn forty_children_run_at_once() {
    let folder = tempfile::tempdir().unwrap();
    // Each waits for all.
    let script = "touch $FANFOLD_SEQ; until [ $(ls | wc -l) -ge 40 ]; do sleep 0.1; done; echo $FANFOLD_SEQ";
    let agents = sh(script).directory(folder.path());
    let mut children = Vec::new();
    for seq in 1..=40 {
        let mut request = AgentRequest::new("x");
        request.seq = seq;
        children.push(agents.start(request, CancellationToken::new()).await.unwrap());
    }
    let answers = futures::future::join_all(children.into_iter().map(|child| child.result)).await;
    for (seq, answer) in (1..).zip(answers) {
        assert_eq!(answer.unwrap().text, format!("{seq}"));
    }
}

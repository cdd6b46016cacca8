//! Children that are to answer with a value.

use std::fs;
use std::path::Path;

use fanfold::AgentRequest;
use serde_json::json;

use super::{failed, run, sh};

fn request() -> AgentRequest {
    let mut request = AgentRequest::new("How many?");
    request.options.schema =
        Some(json!({"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}));
    request
}

/// A child that notes each prompt in the folder.
fn noting(folder: &Path, script: &str) -> fanfold_agents::Command {
    sh(&format!("cat > prompt-$FANFOLD_ATTEMPT; {script}")).directory(folder)
}

#[tokio::test]
async fn the_value_is_taken_from_the_answer() {
    let folder = tempfile::tempdir().unwrap();
    let answer = run(&noting(folder.path(), r#"echo 'So: {"n": 3}.'"#), request()).await.unwrap();
    assert_eq!(answer.structured, Some(json!({"n": 3})));
    let prompt = fs::read_to_string(folder.path().join("prompt-1")).unwrap();
    assert!(prompt.starts_with("How many?\n"), "{prompt}");
    assert!(prompt.contains(r#""required":["n"]"#), "{prompt}");
}

#[tokio::test]
async fn a_bad_value_is_asked_for_again_with_what_is_wrong() {
    let folder = tempfile::tempdir().unwrap();
    let script = r#"[ $FANFOLD_ATTEMPT = 2 ] && echo '{"n": 4}' || echo '{"n": "four"}'"#;
    let answer = run(&noting(folder.path(), script), request()).await.unwrap();
    assert_eq!(answer.structured, Some(json!({"n": 4})));
    let prompt = fs::read_to_string(folder.path().join("prompt-2")).unwrap();
    assert!(prompt.starts_with("How many?\n"), "{prompt}");
    for part in [r#"{"n": "four"}"#, r#"- /n: value is not of type "integer""#] {
        assert!(prompt.contains(part), "{prompt}");
    }
    assert!(!folder.path().join("prompt-3").exists());
}

#[tokio::test]
async fn it_is_asked_for_only_so_often() {
    for (attempts, times) in [(0, "1 time"), (1, "1 time"), (3, "3 times")] {
        let folder = tempfile::tempdir().unwrap();
        let agents = noting(folder.path(), r#"echo "{\"m\": $FANFOLD_ATTEMPT}""#).schema_attempts(attempts);
        let diagnostic = format!(
            "schema: no answer satisfied the schema, asked {times}; the last: (root): \"n\" is a required property; \
             it had said: {{\"m\": {}}}",
            attempts.max(1)
        );
        assert_eq!(run(&agents, request()).await, failed(&diagnostic));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), attempts.max(1) as usize);
    }
}

#[tokio::test]
async fn a_failure_between_attempts_is_a_failure_unless_retried() {
    // Bad value, failure; bad value again since the retry starts afresh, good value.
    let script = r#"case $FANFOLD_ATTEMPT in 2) exit 9;; 4) echo '{"n": 1}';; *) echo no;; esac"#;
    let folder = tempfile::tempdir().unwrap();
    let agents = noting(folder.path(), script).schema_attempts(2);
    assert_eq!(run(&agents, request()).await, failed("exit: exit status 9"));
    let mut request = request();
    request.options.retries = Some(1);
    assert_eq!(run(&agents, request).await.unwrap().structured, Some(json!({"n": 1})));
    let prompt = |attempt| fs::read_to_string(folder.path().join(format!("prompt-{attempt}"))).unwrap();
    assert_eq!(prompt(1), prompt(3));
    assert_eq!(prompt(2), prompt(4));
}

//! Which part of an answer counts: each file in `tests/answers` is what an agent prints.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fanfold::{AgentRequest, Answer, ChildError};
use fanfold_agents::Command;
use serde_json::{Value, json};

use super::run;

/// What is taken from a file.
enum Taken {
    /// This value, by the first answer.
    Value(Value),
    /// No value, however often it is asked for, for this reason.
    Nothing(&'static str),
    /// This text, of a call without a schema.
    Text(&'static str),
    /// No text, for this reason.
    NoText(&'static str),
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/answers")
}

fn taken() -> Vec<(&'static str, Taken)> {
    use Taken::{NoText, Nothing, Text, Value};
    let severity = |n: u32| Value(json!({"severity": n}));
    vec![
        ("think-fence.txt", severity(4)),
        ("think-upper.txt", severity(4)),
        ("thinking-tag.txt", severity(4)),
        ("think-twice.txt", severity(4)),
        ("think-no-answer.txt", Nothing("there is no JSON in the answer after its reasoning")),
        ("think-unclosed.txt", Nothing("whose tag is never closed")),
        ("think-wrong-type.txt", Nothing("/severity: value is not of type \"integer\"")),
        ("think-not-opened.txt", severity(4)),
        ("think-attributes.txt", severity(4)),
        ("think-behind.txt", severity(4)),
        ("think-in-fence.txt", severity(4)),
        ("think-in-string.txt", Value(json!({"severity": 4, "why": "the page shows <think> and </think>"}))),
        ("thought-tag.txt", Nothing("there is no JSON in the answer after its reasoning")),
        ("coloured.txt", severity(4)),
        ("coloured-8-bit.txt", severity(4)),
        ("coloured-link.txt", Value(json!({"severity": 4, "why": "see the log"}))),
        ("coloured-cut.txt", Nothing("a terminal escape code, and not a whole one")),
        ("raw-breaks.txt", Nothing("a line break within a string; write it as \\n (line 1, column ")),
        ("raw-breaks-bare.txt", Nothing("a line break within a string; write it as \\n (line 1, column ")),
        ("raw-tab.txt", Nothing("a tab within a string; write it as \\t (line 2, column ")),
        ("python.txt", Nothing("key must be a string (line 1, column 2 of the value")),
        ("list.txt", Nothing("(root): value is not of type \"object\"")),
        ("example-behind.txt", severity(4)),
        ("example-before.txt", severity(4)),
        ("corrected.txt", severity(4)),
        ("corrected-wrongly.txt", severity(4)),
        ("think-no-answer.txt", Text("I cannot say.")),
        ("think-not-opened.txt", Text("{\"severity\":4}")),
        ("think-unclosed.txt", NoText("reasoning came, 48 characters of it")),
        (
            "think-in-prose.txt",
            Text("Models put <think> and </think> around what they think.\nSo does this one."),
        ),
        ("coloured.txt", Text("{\"severity\": 4}")),
    ]
}

#[test]
fn each_file_says_what_is_taken_from_it() {
    let files: BTreeSet<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|file| file.unwrap().file_name().to_string_lossy().into_owned())
        .collect();
    let named: BTreeSet<String> = taken().into_iter().map(|(name, _)| name.to_owned()).collect();
    assert_eq!(files, named);
}

#[tokio::test]
async fn an_answer_is_read_by_the_rule() {
    for (name, taken) in taken() {
        let agents = Command::new(["cat", name]).unwrap().directory(folder()).schema_attempts(2);
        let mut request = AgentRequest::new("How bad is it?");
        if matches!(taken, Taken::Value(_) | Taken::Nothing(_)) {
            request.options.schema = Some(json!({
                "type": "object", "properties": {"severity": {"type": "integer"}, "why": {"type": "string"}},
                "required": ["severity"],
            }));
        }
        let outcome = run(&agents, request).await;
        match taken {
            Taken::Value(value) => assert_eq!(outcome.unwrap().structured, Some(value), "{name}"),
            Taken::Text(text) => assert_eq!(outcome, Ok(Answer::text(text)), "{name}"),
            Taken::Nothing(words) => {
                let Err(ChildError::Failed(reason)) = outcome else { panic!("{name}: {outcome:?}") };
                let told = &reason.message;
                assert!(told.contains("asked 2 times") && told.contains(words), "{name}: {reason}");
            }
            Taken::NoText(words) => {
                let Err(ChildError::Failed(reason)) = outcome else { panic!("{name}: {outcome:?}") };
                assert!(reason.message.contains(words), "{name}: {reason}");
            }
        }
    }
}

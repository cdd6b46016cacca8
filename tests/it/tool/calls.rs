//! Calls that wait for their run: what they take, how they end, what they say.

use fanfold::{CancellationToken, ErrorCode, EventKind, event_stream};
use fanfold_tool::{Call, ToolError};
use futures::StreamExt as _;
use serde_json::{Value, json};

use super::assistant::{Assistant, arguments, by, tool};
use crate::support::{engine, limits};

#[tokio::test]
async fn a_call_by_nobody_is_refused_whatever_it_says() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    for arguments in [arguments("return 1"), json!(null)] {
        let error = tool.execute(&arguments, Call::anonymous()).await.unwrap_err();
        assert_eq!(error.text(), "Error: workflow tool requires a calling agent (exec.agent was undefined)");
    }
}

#[tokio::test]
async fn a_call_that_is_cancelled_returns_when_its_children_have_stopped() {
    let (engine, scripted) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    for before in [true, false] {
        let agent = Assistant::new();
        let cancel = CancellationToken::new();
        let (observer, mut events) = event_stream();
        if before {
            cancel.cancel();
        }
        let canceller = cancel.clone();
        let cancel_once_a_child_runs = tokio::spawn(async move {
            while let Some(event) = events.next().await {
                if let EventKind::AgentStart { .. } = event.kind {
                    canceller.cancel();
                }
            }
        });
        let call = by(&agent).cancel_with(cancel).observe(observer);
        let error = tool.execute(&arguments("return await agent('hang:')"), call).await.unwrap_err();
        assert_eq!(scripted.running(), 0);
        assert_eq!(error.text(), "Error: workflow run was cancelled (cancelled by the caller)");
        assert_eq!(
            scripted.requests().len(),
            usize::from(!before),
            "a script that was cancelled first runs nothing"
        );
        assert_eq!(agent.records().len(), if before { 2 } else { 4 });
        cancel_once_a_child_runs.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_call_that_is_dropped_takes_its_run_along() {
    let (engine, scripted) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    let agent = Assistant::new();
    let (observer, mut events) = event_stream();
    let arguments = arguments("return await agent('hang:')");
    let mut call = Box::pin(tool.execute(&arguments, by(&agent).observe(observer)));
    loop {
        tokio::select! {
            _ = &mut call => panic!("it hangs"),
            event = events.next() => {
                if let Some(EventKind::AgentStart { .. }) = event.map(|event| event.kind) {
                    break;
                }
            }
        }
    }
    drop(call);
    let last = events.collect::<Vec<_>>().await.pop().expect("an end");
    assert!(matches!(last.kind, EventKind::End { .. }), "{last:?}");
    assert_eq!(scripted.running(), 0);
    assert!(agent.records().len() <= 2, "a missing tail is legal");
}

#[tokio::test]
async fn a_script_that_cannot_start_is_told_with_its_place_and_leaves_no_record() {
    let (engine, _) = engine(limits(json!({"maxScriptBytes": 1000})));
    let tool = tool(&engine, json!({}));
    let header = "export const meta = {name: 'h', description: 'd'}\n";
    let long = format!("return '{}'", "x".repeat(1000));
    for (arguments, code, place) in [
        (arguments("return 1 +\n  )"), ErrorCode::ScriptParse, Some((2, 3))),
        (json!({"script": format!("{header}return 1 +\n  )")}), ErrorCode::ScriptParse, Some((3, 3))),
        (json!({"script": "export const meta = {name: f()}"}), ErrorCode::MetaInvalid, Some((1, 28))),
        (json!({"script": "return 1"}), ErrorCode::MetaInvalid, None),
        (arguments(&long), ErrorCode::OutputLimit, None),
        (
            json!({"script": format!("{header}return 1"), "meta": {"name": "other", "description": "d"}}),
            ErrorCode::MetaInvalid,
            Some((1, 28)),
        ),
    ] {
        let agent = Assistant::new();
        let error = tool.execute(&arguments, by(&agent)).await.unwrap_err();
        let told = error.error().expect("an error of the workflow");
        assert_eq!(told.code, Some(code), "{error}");
        assert_eq!(told.line.zip(told.column), place, "{error}");
        if let Some((line, column)) = place {
            assert!(error.text().ends_with(&format!("(line {line}, column {column})")), "{error}");
        }
        assert_eq!(agent.records(), []);
    }
}

#[tokio::test]
async fn a_header_is_taken_for_metadata_and_lines_stay_the_authors() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    let agent = Assistant::new();
    let script = "\u{feff}#!/usr/bin/env fanfold\r\n// a comment\r\n'use strict'\r\nexport const meta = {\r\n  name: 'old', description: 'd',\r\n}\r\n";
    for meta in [json!(null), json!({"name": "old", "description": "d"})] {
        let mut arguments = json!({"script": format!("{script}return args.n"), "args": "{\"n\": 5}"});
        if !meta.is_null() {
            arguments["meta"] = meta;
        }
        let answer = tool.execute(&arguments, by(&agent)).await.unwrap();
        assert_eq!(answer.text, "workflow \"old\" completed (0 agents).\nReturn value:\n5");
    }
    let arguments = json!({"script": format!("{script}\r\nthrow new Error('boom')")});
    let error = tool.execute(&arguments, by(&agent)).await.unwrap_err();
    assert!(error.text().starts_with("Error: workflow run failed: Error: boom\n"), "{error}");
    assert_eq!(error.error().and_then(|error| error.line), Some(8));
}

#[tokio::test]
async fn only_the_text_of_a_long_value_is_cut_and_never_inside_a_character() {
    let (engine, _) = engine(limits(json!({})));
    let agent = Assistant::new();
    // Twelve characters: two quotes, an emoji of five, an e and its accent, a letter outside the basic plane twice, x.
    let value = "👩\u{200d}👩\u{200d}👧e\u{301}𝒳𝒳x";
    let shown = serde_json::to_string(value).unwrap();
    let arguments = arguments(&format!("return {shown}"));
    for chars in 1..=13 {
        let tool = tool(&engine, json!({"maxResultChars": chars}));
        let answer = tool.execute(&arguments, by(&agent)).await.unwrap();
        assert_eq!(answer.value.result.get(), shown, "the canonical value is whole");
        let begin = "workflow \"test\" completed (0 agents).\nReturn value:\n";
        let kept: String = shown.chars().take(chars).collect();
        let expected = match 12usize.saturating_sub(chars) {
            0 => format!("{begin}{shown}"),
            omitted => format!("{begin}{kept}\n… [truncated: {omitted} more characters]"),
        };
        assert_eq!(answer.text, expected);
    }
}

#[tokio::test]
async fn failed_agents_ride_the_value_and_the_text_if_asked_for() {
    let (engine, _) = engine(limits(json!({})));
    let agent = Assistant::new();
    let arguments = arguments("return [await agent('fail:no luck', {label: 'a'}), await agent('x')]");
    let plain = "workflow \"test\" completed (2 agents).\nReturn value:\n[\n  null,\n  \"echo:x\"\n]";
    for (note, text) in
        [(false, plain.to_owned()), (true, format!("{plain}\nFailed agents (1):\n- #1 a failed: no luck"))]
    {
        let tool = tool(&engine, json!({"noteFailures": note}));
        let answer = tool.call("workflow", &arguments, by(&agent)).await.unwrap();
        assert_eq!(answer.text, text);
        let mut value = answer.value;
        let run_id = value.as_object_mut().and_then(|value| value.remove("runId")).expect("a run id");
        assert!(run_id.as_str().is_some_and(|id| !id.is_empty()));
        let failures = json!([{"seq": 1, "label": "a", "reason": "no luck"}]);
        assert_eq!(value, json!({"agentsStarted": 2, "result": [null, "echo:x"], "failures": failures}));
    }
    let none =
        tool(&engine, json!({})).call("workflow", &self::arguments("return 1"), by(&agent)).await.unwrap();
    assert_eq!(none.value.get("failures"), None);
}

#[tokio::test]
async fn values_come_back_as_json_has_them() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({}));
    let agent = Assistant::new();
    let args = json!({"z": 1, "a": [1.5, 1e21, 12_345_678_901_u64, -7], "": "é\u{2028}\u{0}", "__proto__": {"x": null}});
    let mut arguments = arguments("return args");
    arguments["args"] = args.clone();
    let answer = tool.call("workflow", &arguments, by(&agent)).await.unwrap();
    assert_eq!(answer.value["result"], args);
    let keys: Vec<&String> = answer.value["result"].as_object().unwrap().keys().collect();
    assert_eq!(keys, ["z", "a", "", "__proto__"], "in their order");
}

#[tokio::test]
async fn a_call_may_choose_its_provider_and_the_agent_is_the_parent() {
    let scripted = fanfold_agents::Scripted::new();
    let engine = fanfold::Engine::builder()
        .provider("spawn", fanfold_agents::Scripted::new())
        .provider("mine", scripted.clone())
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .build()
        .unwrap();
    let tool = tool(&engine, json!({}));
    let agent = Assistant::new();
    let arguments = arguments("return await agent('x')");
    tool.execute(&arguments, by(&agent).provider("mine")).await.unwrap();
    assert_eq!(scripted.requests()[0].parent.as_deref(), Some("assistant-1"));
    let error = tool.execute(&arguments, by(&agent).provider("theirs")).await.unwrap_err();
    assert!(error.text().contains("there is no provider \"theirs\" (registered: mine, spawn)"), "{error}");
}

#[tokio::test]
async fn a_tool_that_is_not_there_is_told_with_those_that_are() {
    let (engine, _) = engine(limits(json!({})));
    let tool = tool(&engine, json!({"toolName": "orchestrate"}));
    for name in ["workflow", "orchestrate_start", ""] {
        let error = tool.call(name, &Value::Null, by(&Assistant::new())).await.unwrap_err();
        assert!(matches!(error, ToolError::UnknownTool { .. }), "{error}");
        assert_eq!(error.text(), format!("Error: there is no tool {name:?} (there are: orchestrate)"));
    }
}

#[tokio::test]
async fn the_example_that_a_model_is_shown_runs() {
    let (engine, scripted) = engine(limits(json!({"maxConcurrentAgents": 4})));
    let tool = tool(&engine, json!({}));
    let description = tool.definition().description;
    let example =
        description.split("```js\n").nth(1).and_then(|rest| rest.split("```").next()).expect("an example");
    let mut arguments = arguments(example);
    arguments["args"] = json!({"files": ["a.js", "b.js"]});
    let answer = tool.call("workflow", &arguments, by(&Assistant::new())).await.unwrap();
    // Scripted agents have no findings to give: they fail, which the example is prepared for.
    let failed = |file: &str| json!({"file": file, "failed": true, "findings": []});
    assert_eq!(answer.value["result"], json!([failed("a.js"), failed("b.js")]));
    assert_eq!(scripted.requests().len(), 2);
}

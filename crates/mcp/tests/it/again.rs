//! A client that gave up, or lost its connection, calls again: what runs is found and not paid twice.

use std::time::Duration;

use fanfold_agents::Scripted;
use serde_json::{Value, json};

use crate::wire::{Wire, arguments, server, text, until};

/// How many agents have been started, by the ids that they have.
async fn agents_paid(client: &mut Wire) -> u64 {
    let list = client.call("workflow_status", json!({})).await["structuredContent"]["runs"].clone();
    let count = |run: &Value| {
        let agents = run["agents"].as_object().unwrap().values();
        agents.map(|count| count.as_u64().unwrap()).sum::<u64>()
    };
    list.as_array().unwrap().iter().map(count).sum()
}

fn value(answer: &Value) -> &Value {
    &answer["result"]["structuredContent"]
}

async fn runs(agents: &Scripted, count: usize) {
    until(|| agents.running() == count).await;
}

#[tokio::test]
async fn an_equal_call_joins_the_run_that_goes_on() {
    for modern in [false, true] {
        let (server, agents) = server(|_, _| {});
        let mut client = match modern {
            false => Wire::connect(&server, json!({})).await,
            true => Wire::connect_modern(&server, json!({})),
        };
        let script = "return await agent('sleep:400')";
        let first = client.begin(script).await;
        runs(&agents, 1).await;
        let status = client.call("workflow_status", json!({})).await;
        let run_id = status["structuredContent"]["runs"][0]["runId"].clone();
        assert!(text(&status).contains(run_id.as_str().unwrap()), "{status}");
        let second = client.begin(script).await;
        let answers = [client.answer(first).await, client.answer(second).await];
        for answer in &answers {
            assert_eq!(
                (&value(answer)["runId"], &value(answer)["result"]),
                (&run_id, &json!("slept")),
                "{answer}"
            );
        }
        assert_eq!(value(&answers[0]).get("notice"), None);
        let notice = value(&answers[1])["notice"].as_str().unwrap();
        assert!(notice.contains("an equal call had started this run"), "{notice}");
        assert!(answers[1]["result"]["content"][1]["text"].as_str().unwrap().contains(notice));
        assert_eq!(agents_paid(&mut client).await, 1);
    }
}

#[tokio::test]
async fn calls_at_the_same_moment_make_one_run() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let mut calls = Vec::new();
    for _ in 0..8 {
        calls.push(client.begin("return await agent('sleep:100')").await);
    }
    let mut ids = std::collections::BTreeSet::new();
    for call in calls {
        ids.insert(value(&client.answer(call).await)["runId"].to_string());
    }
    assert_eq!((ids.len(), agents_paid(&mut client).await), (1, 1));
}

#[tokio::test]
async fn calls_that_differ_in_anything_have_runs_of_their_own() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let mut other = Wire::connect(&server, json!({})).await;
    let base = arguments("return await agent('hang:')");
    let with = |name: &str, value: Value| {
        let mut arguments = base.clone();
        arguments[name] = value;
        arguments
    };
    for arguments in [base.clone(), with("args", json!({"n": 1})), with("args", json!({"n": 2}))] {
        client.ask("tools/call", json!({"name": "workflow", "arguments": arguments})).await;
    }
    runs(&agents, 3).await;
    // In the background, and by somebody else.
    client.call("workflow_start", base.clone()).await;
    runs(&agents, 4).await;
    let theirs = other.call("workflow_start", base).await["structuredContent"]["runId"].clone();
    let list = other.call("workflow_status", json!({})).await["structuredContent"]["runs"].clone();
    assert_eq!((list.as_array().unwrap().len(), &list[0]["runId"]), (1, &theirs), "{list}");
    let list = client.call("workflow_status", json!({})).await["structuredContent"]["runs"].clone();
    assert_eq!(list.as_array().unwrap().len(), 4, "{list}");
}

#[tokio::test]
async fn a_run_ends_with_the_last_call_that_waits_for_it() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let script = "return await agent('hang:')";
    let (first, second) = (client.begin(script).await, client.begin(script).await);
    runs(&agents, 1).await;
    client.cancel(first).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(agents.running(), 1, "one call waits still");
    client.cancel(second).await;
    runs(&agents, 0).await;
    // A run that was stopped is no answer.
    let third = client.begin(script).await;
    runs(&agents, 1).await;
    client.cancel(third).await;
    runs(&agents, 0).await;
}

#[tokio::test]
async fn a_run_that_a_client_was_told_of_goes_on_when_an_equal_call_is_cancelled() {
    let (server, agents) = server(|_, options| options.answer_within = Some(Duration::from_millis(20)));
    let mut client = Wire::connect(&server, json!({})).await;
    let script = "return await agent('hang:')";
    let told = client.run(script).await["structuredContent"].clone();
    assert_eq!(told["state"], "running");
    let params = json!({"name": "workflow", "arguments": arguments(script), "_meta": {"progressToken": 1}});
    let again = client.ask("tools/call", params).await;
    client.cancel(again).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert_eq!(agents.running(), 1);
    let joined = client.run(script).await["structuredContent"].clone();
    assert_eq!((&joined["runId"], &joined["state"]), (&told["runId"], &json!("running")));
    client.call("workflow_cancel", json!({"runId": told["runId"]})).await;
    let anew = client.run(script).await["structuredContent"].clone();
    assert_ne!(anew["runId"], told["runId"], "one that was stopped is not found");
}

#[tokio::test]
async fn a_result_that_was_read_is_no_answer_to_the_next_call() {
    let (server, _) = server(|_, options| options.answer_within = Some(Duration::from_millis(20)));
    let mut client = Wire::connect(&server, json!({})).await;
    let quick = "return await agent('x')";
    let (one, two) = (client.run(quick).await, client.run(quick).await);
    assert_ne!(one["structuredContent"]["runId"], two["structuredContent"]["runId"]);
    // One that was too slow for its call is found until it is read.
    let slow = "return await agent('sleep:200')";
    let run_id = client.run(slow).await["structuredContent"]["runId"].clone();
    client.call("workflow_status", json!({"runId": run_id})).await;
    let status = async |client: &mut Wire| {
        client.call("workflow_status", json!({"runId": run_id})).await["structuredContent"]["state"].clone()
    };
    while status(&mut client).await == "running" {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let found = client.run(slow).await["structuredContent"].clone();
    assert_eq!((&found["runId"], &found["result"]), (&run_id, &json!("slept")));
    let anew = client.run(slow).await["structuredContent"].clone();
    assert_ne!(anew["runId"], run_id);
}

#[tokio::test]
async fn a_failure_is_told_once_by_whichever_way() {
    let (server, _) = server(|_, options| options.answer_within = Some(Duration::from_millis(20)));
    let mut client = Wire::connect(&server, json!({})).await;
    for by_status in [false, true] {
        let script = format!("await agent('sleep:100'); throw new Error('boom {by_status}')");
        let run_id = client.run(&script).await["structuredContent"]["runId"].clone();
        let listed = async |client: &mut Wire| {
            let runs = client.call("workflow_status", json!({})).await["structuredContent"]["runs"].clone();
            runs.as_array().unwrap().iter().find(|run| run["runId"] == run_id).unwrap()["state"].clone()
        };
        while listed(&mut client).await == "running" {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        if by_status {
            let status = client.call("workflow_status", json!({"runId": run_id})).await;
            assert_eq!(status["structuredContent"]["state"], "error");
        } else {
            let found = client.run(&script).await;
            let value = &found["structuredContent"];
            assert_eq!((&value["runId"], &value["state"]), (&run_id, &json!("error")), "{found}");
            assert!(value["notice"].as_str().unwrap().contains("an equal call"), "{found}");
        }
        let anew = client.run(&script).await["structuredContent"].clone();
        assert_ne!(anew["runId"], run_id);
    }
}

#[tokio::test]
async fn a_start_that_is_asked_for_again_is_told_the_run_that_it_started() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let script = arguments("return await agent('sleep:100')");
    let first = client.call("workflow_start", script.clone()).await;
    let again = client.call("workflow_start", script.clone()).await;
    let run_id = &first["structuredContent"]["runId"];
    assert_eq!(again["structuredContent"]["runId"], *run_id);
    assert!(again["structuredContent"]["notice"].as_str().unwrap().contains("an equal call"), "{again}");
    assert!(agents.running() <= 1);
    let page = client.call("workflow_result", json!({"runId": run_id, "waitMs": 60000})).await;
    assert_eq!(page["structuredContent"]["page"], "\"slept\"");
    let anew = client.call("workflow_start", script).await;
    assert_ne!(anew["structuredContent"]["runId"], *run_id);
}

#[tokio::test]
async fn a_long_call_that_became_a_task_is_found_by_an_equal_one() {
    let (server, agents) = server(|_, _| {});
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Wire::connect_modern(&server, tasks);
    let call = json!({"name": "workflow", "arguments": arguments("return await agent('hang:')")});
    let first = client.request("tools/call", call.clone()).await;
    let again = client.request("tools/call", call.clone()).await;
    assert_eq!(first["result"]["taskId"], again["result"]["taskId"]);
    assert_eq!(agents.running(), 1);
    client.request("tasks/cancel", json!({"taskId": first["result"]["taskId"]})).await;
    let anew = client.request("tools/call", call).await;
    assert_ne!(first["result"]["taskId"], anew["result"]["taskId"]);
}

#[tokio::test]
async fn the_first_progress_message_says_which_run_it_is() {
    for modern in [false, true] {
        let (server, _) = server(|_, _| {});
        let mut client = match modern {
            false => Wire::connect(&server, json!({})).await,
            true => Wire::connect_modern(&server, json!({})),
        };
        let call = json!({
            "name": "workflow",
            "arguments": arguments("return await agent('a')"),
            "_meta": {"progressToken": "here"},
        });
        let answer = client.request("tools/call", call).await;
        let first = client.unread().iter().find(|it| it["method"] == "notifications/progress").unwrap();
        let told = first["params"]["message"].as_str().unwrap();
        assert_eq!(told, format!("run {}", value(&answer)["runId"].as_str().unwrap()));
    }
}

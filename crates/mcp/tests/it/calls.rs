//! Calls of the tools and what clients hear meanwhile.

use std::time::Duration;

use fanfold_mcp::Agents;
use serde_json::{Value, json};

use crate::wire::{Wire, arguments, server, text};

#[tokio::test]
async fn every_tool_says_what_it_takes_and_gives() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let listed = client.request("tools/list", json!({})).await;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 5);
    for tool in tools {
        assert_eq!(
            (&tool["inputSchema"]["type"], &tool["outputSchema"]["type"]),
            (&json!("object"), &json!("object"))
        );
        let schemas = format!("{}{}", tool["inputSchema"], tool["outputSchema"]);
        assert!(!schemas.contains("\"format\"") && !schemas.contains("$ref"), "{schemas}");
    }
    let required = &tools[0]["outputSchema"]["required"];
    assert_eq!(*required, json!(["state"]));
    assert_eq!(tools[2]["annotations"]["readOnlyHint"], true);
}

#[tokio::test]
async fn an_answer_is_text_and_value_in_both_kinds_of_protocol() {
    let (server, _) = server(|_, _| {});
    let script = "return { said: await agent('hello') }";
    let expected = "workflow \"test\" completed (1 agent).\nReturn value:\n{\n  \"said\": \"echo:hello\"\n}";
    let mut old = Wire::connect(&server, json!({})).await;
    let mut new = Wire::connect_modern(&server, json!({}));
    for client in [&mut old, &mut new] {
        let result = client.run(script).await;
        assert_eq!(text(&result), expected);
        let value = &result["structuredContent"];
        assert_eq!((&value["state"], &value["agentsStarted"]), (&json!("completed"), &json!(1)));
        assert_eq!(value["result"], json!({"said": "echo:hello"}));
    }
}

#[tokio::test]
async fn what_a_model_did_wrong_it_is_told_by_the_name_of_what_it_called() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let result = client.call("workflow", json!({"script": 1})).await;
    assert_eq!(result["isError"], true);
    let told = "Error: the arguments of workflow are not valid: ";
    assert!(text(&result).starts_with(told), "{result}");
    let result = client.call("workflow_start", json!({"script": 1})).await;
    assert!(text(&result).contains("workflow_start"), "{result}");
    let answer = client.request("tools/call", json!({"name": "nothing", "arguments": {}})).await;
    assert_eq!(answer["error"]["code"], -32602);
}

#[tokio::test]
async fn progress_grows_and_ends_before_the_answer() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let params = json!({
        "name": "workflow",
        "arguments": arguments("phase('Look'); await agent('a'); await agent('b'); return 1"),
        "_meta": {"progressToken": "here"},
    });
    client.request("tools/call", params).await;
    let told: Vec<&Value> = client
        .unread()
        .iter()
        .filter(|it| it["method"] == "notifications/progress")
        .map(|it| &it["params"])
        .collect();
    assert!(told.iter().all(|it| it["progressToken"] == "here"));
    let numbers: Vec<f64> = told.iter().map(|it| it["progress"].as_f64().unwrap()).collect();
    assert!(numbers.is_sorted_by(|one, next| one < next), "{numbers:?}");
    let last = told.last().unwrap();
    assert_eq!((&last["message"], &last["total"]), (&json!("Look: 2 of 2 agents done"), &json!(2.0)));
}

#[tokio::test]
async fn logs_come_at_the_level_that_was_asked_for_and_before_the_answer() {
    let (server, _) = server(|_, _| {});
    let logged = |client: &Wire| -> Vec<Value> {
        let messages = client.unread().iter().filter(|it| it["method"] == "notifications/message");
        messages.map(|it| it["params"]["data"]["message"].clone()).collect()
    };
    let mut old = Wire::connect(&server, json!({})).await;
    old.run("log('one'); return 1").await;
    old.request("logging/setLevel", json!({"level": "warning"})).await;
    old.run("log('two'); await agent('x', {effort: 'high'}); return 1").await;
    assert_eq!(logged(&old), ["one"]);

    let mut new = Wire::connect_modern(&server, json!({}));
    new.run("log('three'); return 1").await;
    let meta = json!({"io.modelcontextprotocol/logLevel": "debug"});
    let params = json!({"name": "workflow", "arguments": arguments("log('four'); return 1"), "_meta": meta});
    new.request("tools/call", params).await;
    assert_eq!(logged(&new), ["four"]);
}

#[tokio::test]
async fn a_long_value_is_cut_and_read_to_its_end_in_pages() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let result = client.run("return 'é'.repeat(120000)").await;
    let value = &result["structuredContent"];
    assert!(value.get("result").is_none());
    let run_id = value["runId"].as_str().unwrap();
    let rest = format!(
        "Run {run_id}. Read the rest: workflow_result {{\"runId\": \"{run_id}\", \"offset\": 50000}}"
    );
    assert!(text(&result).contains("\n… [truncated: 70002 more characters]\n"));
    assert!(text(&result).ends_with(&rest));
    let (mut json_text, mut offset) = (String::new(), json!(0));
    while !offset.is_null() {
        let page = client.call("workflow_result", json!({"runId": run_id, "offset": offset})).await;
        json_text.push_str(page["structuredContent"]["page"].as_str().unwrap());
        offset = page["structuredContent"]["nextOffset"].clone();
    }
    assert_eq!(serde_json::from_str::<String>(&json_text).unwrap(), "é".repeat(120_000));
}

#[tokio::test]
async fn a_call_that_takes_too_long_is_answered_and_its_run_goes_on() {
    let (server, agents) = server(|_, options| options.answer_within = Some(Duration::from_millis(20)));
    let mut client = Wire::connect(&server, json!({})).await;
    let result = client.run("await agent('sleep:300'); return 'late'").await;
    let value = &result["structuredContent"];
    assert_eq!(value["state"], "running");
    assert!(text(&result).contains("workflow_result"), "{result}");
    assert!(agents.running() <= 1);
    let page = client.call("workflow_result", json!({"runId": value["runId"], "waitMs": 60000})).await;
    assert_eq!(page["structuredContent"]["page"], "\"late\"");
}

#[tokio::test]
async fn a_long_call_is_a_task_for_clients_that_know_tasks() {
    let (server, _) = server(|_, _| {});
    let mut client =
        Wire::connect_modern(&server, json!({"extensions": {"io.modelcontextprotocol/tasks": {}}}));
    let script = "await agent('sleep:1300'); return 'late'";
    let created =
        client.request("tools/call", json!({"name": "workflow", "arguments": arguments(script)})).await;
    let created = &created["result"];
    assert_eq!((&created["resultType"], &created["status"]), (&json!("task"), &json!("working")));
    assert_eq!(created["ttlMs"], Value::Null);
    let task_id = created["taskId"].clone();
    let state = loop {
        let state = client.request("tasks/get", json!({"taskId": task_id})).await["result"].clone();
        if state["status"] != "working" {
            break state;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    };
    assert_eq!((&state["status"], &state["createdAt"]), (&json!("completed"), &created["createdAt"]));
    assert_eq!(state["result"]["structuredContent"]["result"], "late");
    assert!(state["ttlMs"].as_u64().unwrap() > 3_600_000);
    let unknown = client.request("tasks/get", json!({"taskId": "none"})).await;
    assert_eq!(unknown["error"]["code"], -32602);
}

#[tokio::test]
async fn a_run_is_a_task_as_long_as_it_is_kept_however_many_come_after_it() {
    let (server, _) = server(|_, _| {});
    let tasks = json!({"extensions": {"io.modelcontextprotocol/tasks": {}}});
    let mut client = Wire::connect_modern(&server, tasks);
    let mut started = Vec::new();
    for script in ["await agent('hang:')", "return 'not read yet'"] {
        let run = client.call("workflow_start", arguments(script)).await;
        started.push(run["structuredContent"]["runId"].clone());
    }
    let mut other = Wire::connect_modern(&server, json!({}));
    let first = other.run("return 1").await["structuredContent"]["runId"].clone();
    for round in 0..64 {
        let mut calls = Vec::new();
        for n in 0..16 {
            calls.push(other.begin(&format!("return 1 // {round} {n}")).await);
        }
        for call in calls {
            assert_eq!(other.answer(call).await["result"]["structuredContent"]["result"], 1);
        }
    }
    for (run_id, status) in started.iter().zip(["working", "completed"]) {
        let task = client.request("tasks/get", json!({"taskId": run_id})).await;
        assert_eq!(task["result"]["status"], status, "{task}");
    }
    let forgotten = client.request("tasks/get", json!({"taskId": first})).await;
    assert_eq!(forgotten["error"]["code"], -32602, "{forgotten}");
}

#[tokio::test]
async fn a_client_that_did_not_say_it_knows_tasks_gets_none() {
    let (server, _) = server(|_, options| options.answer_within = Some(Duration::from_millis(1)));
    let mut client = Wire::connect_modern(&server, json!({}));
    let result = client.run("await agent('sleep:50'); return 1").await;
    assert_eq!(result["structuredContent"]["state"], "running");
    assert!(client.request("tasks/get", json!({"taskId": "x"})).await["error"]["code"].is_i64());
}

#[tokio::test]
async fn canned_answers_are_said_to_be_canned() {
    let (server, _) = server(|sampling, options| {
        options.agents = Agents::ClientOr(sampling.clone(), "nobody works here".into());
    });
    let mut client = Wire::connect(&server, json!({})).await;
    let result = client.run("return await agent('x')").await;
    assert_eq!(result["structuredContent"]["notice"], "nobody works here");
    assert_eq!(result["content"][1]["text"], "Note: nobody works here.");
    let result = client.run("return 1").await;
    assert_eq!(result["structuredContent"].get("notice"), None, "no agent had a part in it");
}

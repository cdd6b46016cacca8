//! Text and `structuredContent` each say all that a model needs: some clients show it the one alone, some the other.

use fanfold::Schema;
use serde_json::{Value, json};

use crate::wire::{Wire, arguments, server};

fn all_text(result: &Value) -> String {
    let blocks = result["content"].as_array().unwrap().iter();
    blocks.map(|block| block["text"].as_str().unwrap()).collect::<Vec<_>>().join("\n")
}

#[tokio::test]
async fn either_half_leads_to_every_character_of_a_long_value() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let result = client.run("return 'y'.repeat(120000)").await;
    let value = &result["structuredContent"];
    let first = value["page"].as_str().unwrap();
    assert_eq!(
        (first.len(), &value["nextOffset"], &value["total"]),
        (50_000, &json!(50_000), &json!(120_002))
    );
    assert_eq!(value.get("result"), None);
    assert!(all_text(&result).contains(first));
    let (mut whole, mut offset) = (first.to_owned(), value["nextOffset"].clone());
    while !offset.is_null() {
        let page = client.call("workflow_result", json!({"runId": value["runId"], "offset": offset})).await;
        let (text, page) = (all_text(&page), page["structuredContent"].clone());
        assert!(text.contains(page["page"].as_str().unwrap()), "{text:.200}");
        whole.push_str(page["page"].as_str().unwrap());
        offset = page["nextOffset"].clone();
    }
    assert_eq!(serde_json::from_str::<String>(&whole).unwrap(), "y".repeat(120_000));
}

#[tokio::test]
async fn either_half_says_that_agents_failed_and_neither_is_long_for_it() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let script = "return (await parallel(Array.from({ length: 300 }, (_, i) => () => \
                  agent(`fail:no licence ${'x'.repeat(1000)}`, { label: `a${i}` })))).filter(Boolean).length";
    let started =
        client.call("workflow_start", arguments(script)).await["structuredContent"]["runId"].clone();
    let read = client.call("workflow_result", json!({"runId": started, "waitMs": 60000})).await;
    for result in [client.run(script).await, read] {
        let (text, value) = (all_text(&result), &result["structuredContent"]);
        let failed = text.split_once("300 agents failed:\n- 300 agents failed: no licence xxx");
        assert!(failed.is_some_and(|(_, rest)| rest.contains("… (first: #")), "{text:.500}");
        assert_eq!(value["failures"].as_array().unwrap().len(), 50);
        assert_eq!((&value["moreFailures"], &value["agentsStarted"]), (&json!(250), &json!(300)));
        assert!(text.len() < 50_000 && value.to_string().len() < 50_000);
    }
    let one = client.run("return [await agent('fail:no luck')]").await;
    assert_eq!(all_text(&one).split('\n').next_back(), Some("- #1 fail:no luck failed: no luck"), "{one}");
    assert_eq!(one["content"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn either_half_of_an_error_says_why_and_which_run_it_was() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let started = client.call("workflow_start", arguments("throw new Error('boom in the back')")).await;
    let run_id = started["structuredContent"]["runId"].clone();
    let failed = client.run("await agent('a'); await agent('fail:no luck'); throw new Error('boom')").await;
    let read = client.call("workflow_result", json!({"runId": run_id, "waitMs": 60000})).await;
    for (result, why) in [(&failed, "boom"), (&read, "boom in the back")] {
        let value = &result["structuredContent"];
        assert_eq!((&result["isError"], &value["state"]), (&json!(true), &json!("error")), "{result}");
        assert!(value["error"]["message"].as_str().unwrap().contains(why), "{value}");
        let run_id = value["runId"].as_str().unwrap();
        let text = all_text(result);
        assert!(text.starts_with("Error: workflow run failed: ") && text.contains(why), "{text}");
        assert!(text.contains(run_id), "{text}");
        let status = client.call("workflow_status", json!({"runId": run_id})).await;
        assert_eq!(status["structuredContent"]["state"], "error");
    }
    assert_eq!(failed["structuredContent"]["agentsStarted"], 2);
    assert_eq!(failed["structuredContent"]["failures"][0]["reason"], "no luck");
    assert!(all_text(&failed).contains("1 agent failed:\n- #2 fail:no luck failed"), "{failed}");
    for (name, arguments, code) in [
        ("workflow", json!({"script": 1}), json!("INVALID_ARGUMENT")),
        ("workflow", json!({"script": "```js\nreturn 1\n```"}), json!("SCRIPT_PARSE")),
        ("workflow", arguments("return ]"), json!("SCRIPT_PARSE")),
        ("workflow_start", json!({}), json!("INVALID_ARGUMENT")),
        ("workflow_status", json!({"runId": "none"}), json!(null)),
        ("workflow_result", json!({"runId": "none"}), json!(null)),
        ("workflow_cancel", json!({"runId": "none"}), json!(null)),
    ] {
        let result = client.call(name, arguments).await;
        let value = &result["structuredContent"];
        assert_eq!((&result["isError"], &value["state"]), (&json!(true), &json!("error")), "{result}");
        assert_eq!(value["error"]["code"], code, "{result}");
        let message = value["error"]["message"].as_str().unwrap();
        assert!(all_text(&result).contains(message), "{result}");
    }
}

#[tokio::test]
async fn whatever_a_tool_gives_is_what_its_schema_says() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let listed = client.request("tools/list", json!({})).await["result"]["tools"].clone();
    let schema = |name: &str| {
        let tool = listed.as_array().unwrap().iter().find(|tool| tool["name"] == name).unwrap();
        Schema::new(&tool["outputSchema"]).unwrap()
    };
    let started = client.call("workflow_start", arguments("return 'y'.repeat(60000)")).await;
    let of = json!({"runId": started["structuredContent"]["runId"]});
    let none = json!({"runId": "none"});
    for (name, arguments) in [
        ("workflow", arguments("return {said: [await agent('x'), await agent('fail:no')]}")),
        ("workflow", arguments("return null")),
        ("workflow", arguments("return 'y'.repeat(60000) // again")),
        ("workflow", arguments("throw new Error('boom')")),
        ("workflow", json!({})),
        ("workflow_start", arguments("return 1")),
        ("workflow_start", json!({})),
        ("workflow_status", of.clone()),
        ("workflow_status", json!({})),
        ("workflow_status", none.clone()),
        ("workflow_result", json!({"runId": of["runId"], "waitMs": 60000})),
        ("workflow_result", json!({"runId": of["runId"], "offset": 70000})),
        ("workflow_result", none.clone()),
        ("workflow_cancel", of.clone()),
        ("workflow_cancel", none),
    ] {
        let result = client.call(name, arguments).await;
        let violations = schema(name).violations(&result["structuredContent"]);
        assert!(violations.is_empty(), "{name}: {violations:?}: {result:.500}");
    }
    assert!(!schema("workflow_result").violations(&json!({"page": "1"})).is_empty(), "it says something");
}

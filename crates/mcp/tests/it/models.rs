//! The client's own model as the agents.

use fanfold_mcp::Agents;
use serde_json::{Value, json};

use crate::wire::{Wire, arguments, server, text, until};

fn said(text: &str) -> Value {
    json!({"model": "m", "role": "assistant", "content": {"type": "text", "text": text}})
}

async fn client_with_model() -> Wire {
    let (server, _) = server(|sampling, options| options.agents = Agents::Client(sampling.clone()));
    Wire::connect(&server, json!({"sampling": {}})).await
}

fn question(message: &Value) -> bool {
    message["method"] == "sampling/createMessage"
}

#[tokio::test]
async fn a_client_with_a_model_is_asked_by_each_agent() {
    let mut client = client_with_model().await;
    let id = client.begin("return await parallel(['a', 'b'].map((word) => () => agent(word)))").await;
    for _ in 0..2 {
        let asked = client.next(question).await;
        let word = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
        let answer = said(&format!("you said {word}"));
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": answer})).await;
    }
    let answer = client.answer(id).await;
    assert_eq!(answer["result"]["structuredContent"]["result"], json!(["you said a", "you said b"]));
}

#[tokio::test]
async fn a_value_that_does_not_fit_is_asked_for_again() {
    let mut client = client_with_model().await;
    let schema = "{ type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }";
    let id = client.begin(&format!("return await agent('count', {{ schema: {schema} }})")).await;
    for (answer, wrong) in [("many", false), (r#"{"n": "x"}"#, true), (r#"It is {"n": 3}."#, true)] {
        let asked = client.next(question).await;
        let prompt = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert!(prompt.contains("JSON Schema"));
        assert_eq!(prompt.contains("It does not satisfy the schema"), wrong, "{prompt}");
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": said(answer)})).await;
    }
    assert_eq!(client.answer(id).await["result"]["structuredContent"]["result"], json!({"n": 3}));
}

#[tokio::test]
async fn reasoning_of_the_clients_model_is_no_part_of_its_answer() {
    let mut client = client_with_model().await;
    let schema =
        "{ type: 'object', properties: { n: { type: 'integer', nullable: true } }, required: ['n'] }";
    let id = client
        .begin(&format!("return [await agent('count'), await agent('count', {{ schema: {schema} }})]"))
        .await;
    for (answer, asks_for_null) in
        [("<think>so</think>\nmany", false), (r#"<think>{"n": 1}</think>{"n": null}"#, true)]
    {
        let asked = client.next(question).await;
        let prompt = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
        assert_eq!(prompt.contains(r#"["integer","null"]"#), asks_for_null, "{prompt}");
        client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": said(answer)})).await;
    }
    let result = client.answer(id).await["result"]["structuredContent"]["result"].clone();
    assert_eq!(result, json!(["many", {"n": null}]));
}

#[tokio::test]
async fn the_instructions_of_a_kind_of_agent_come_before_the_prompt() {
    let mut client = client_with_model().await;
    let id = client.begin("return await agent('Look.', { agentType: 'reviewer' })").await;
    let asked = client.next(question).await;
    let prompt = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
    let place = |text: &str| prompt.find(text).unwrap_or_else(|| panic!("{text}: {prompt}"));
    assert!(place("Be strict.") < place("Look."));
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "result": said("seen")})).await;
    assert_eq!(client.answer(id).await["result"]["structuredContent"]["result"], "seen");
}

#[tokio::test]
async fn a_client_that_refuses_makes_the_agent_fail_and_not_the_run() {
    let mut client = client_with_model().await;
    let id = client.begin("return [await agent('x')]").await;
    let asked = client.next(question).await;
    let error = json!({"code": -1, "message": "User rejected sampling request"});
    client.send(json!({"jsonrpc": "2.0", "id": asked["id"], "error": error})).await;
    let answer = client.answer(id).await;
    let value = &answer["result"]["structuredContent"];
    assert_eq!(value["result"], json!([null]));
    let failure = &value["failures"][0];
    assert_eq!(failure["kind"], "refusal");
    assert_eq!(failure["reason"], "refusal: the MCP client refused: User rejected sampling request");
}

#[tokio::test]
async fn a_question_that_nobody_waits_for_is_taken_back() {
    let mut client = client_with_model().await;
    client.begin("agent('x', { timeoutMs: 50 }); return await agent('y')").await;
    let (first, second) = (client.next(question).await, client.next(question).await);
    let asked_x = if first["params"]["messages"][0]["content"]["text"] == "x" { first } else { second };
    let taken_back = client.next(|it| it["method"] == "notifications/cancelled").await;
    assert_eq!(taken_back["params"]["requestId"], asked_x["id"]);
}

#[tokio::test]
async fn without_a_model_an_agent_cannot_start_and_the_error_says_what_to_do() {
    let (server, _) = server(|sampling, options| options.agents = Agents::Client(sampling.clone()));
    let mut client = Wire::connect(&server, json!({})).await;
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
    let result = client.run("return await agent('x')").await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("AGENT_START") && text(&result).contains("--agent-command"), "{result}");
}

#[tokio::test]
async fn a_client_of_the_new_protocol_finds_the_questions_in_the_answer() {
    let (server, agents) = server(|sampling, options| options.agents = Agents::Client(sampling.clone()));
    let mut client = Wire::connect_modern(&server, json!({"sampling": {}}));
    let script = "const words = await parallel(['a', 'b'].map((word) => () => agent(word))); return [words, await agent('c')]";
    let mut params = json!({"name": "workflow", "arguments": arguments(script)});
    let mut rounds = 0;
    let result = loop {
        let answer = client.request("tools/call", params.clone()).await;
        let result = answer["result"].clone();
        if result["resultType"] != "input_required" {
            break result;
        }
        rounds += 1;
        let answers: serde_json::Map<String, Value> = result["inputRequests"]
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, asked)| {
                assert_eq!(asked["method"], "sampling/createMessage");
                let text = asked["params"]["messages"][0]["content"]["text"].as_str().unwrap();
                (name.clone(), said(&text.to_uppercase()))
            })
            .collect();
        params["inputResponses"] = Value::Object(answers);
        params["requestState"] = result["requestState"].clone();
    };
    assert_eq!(result["structuredContent"]["result"], json!([["A", "B"], "C"]));
    assert_eq!(rounds, 2, "agents that ask at once are answered at once");
    assert_eq!(agents.requests().len(), 0);
}

#[tokio::test]
async fn an_answer_that_was_lost_is_asked_for_again() {
    let (server, _) = server(|sampling, options| options.agents = Agents::Client(sampling.clone()));
    let mut client = Wire::connect_modern(&server, json!({"sampling": {}}));
    let params = json!({"name": "workflow", "arguments": arguments("return await agent('a')")});
    let first = client.request("tools/call", params.clone()).await["result"].clone();
    let mut again = params.clone();
    again["requestState"] = first["requestState"].clone();
    let second = client.request("tools/call", again.clone()).await["result"].clone();
    assert_eq!(second["inputRequests"], first["inputRequests"]);
    let name = first["inputRequests"].as_object().unwrap().keys().next().unwrap().clone();
    again["inputResponses"] = json!({name: said("here")});
    let last = client.request("tools/call", again).await["result"].clone();
    assert_eq!(last["structuredContent"]["result"], "here");
}

#[tokio::test]
async fn a_state_that_nobody_gave_is_an_error() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect_modern(&server, json!({}));
    for state in ["1 no-such-run", "x y"] {
        let params = json!({"name": "workflow", "arguments": arguments("return 1"), "requestState": state});
        let result = client.request("tools/call", params).await["result"].clone();
        assert_eq!(result["isError"], true, "{result}");
    }
    until(|| agents.running() == 0).await;
}

//! Whatever ends a call, a client or the server ends runs and agents too.

use serde_json::json;

use crate::wire::{Wire, arguments, server, text, until};

#[tokio::test]
async fn a_cancelled_call_stops_its_run() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let id = client.begin("return await agent('hang:')").await;
    until(|| agents.running() == 1).await;
    client
        .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
        .await;
    until(|| agents.running() == 0).await;
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
}

#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let first = client.begin("return await agent('hang:')").await;
    let second = client.begin("return await agent('hang:')").await;
    until(|| agents.running() == 2).await;
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
    for id in [first, second] {
        client
            .send(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id}}))
            .await;
    }
    until(|| agents.running() == 0).await;
}

#[tokio::test]
async fn a_client_that_goes_takes_its_runs_along() {
    for modern in [false, true] {
        let (server, agents) = server(|_, _| {});
        let mut client = match modern {
            false => Wire::connect(&server, json!({})).await,
            true => Wire::connect_modern(&server, json!({})),
        };
        client.call("workflow_start", arguments("return await agent('hang:')")).await;
        client.begin("return await agent('hang:')").await;
        until(|| agents.running() == 2).await;
        drop(client);
        until(|| agents.running() == 0).await;
    }
}

#[tokio::test]
async fn one_client_that_goes_leaves_the_runs_of_others_alone() {
    let (server, agents) = server(|_, _| {});
    let (mut one, mut other) =
        (Wire::connect(&server, json!({})).await, Wire::connect(&server, json!({})).await);
    one.call("workflow_start", arguments("return await agent('hang:')")).await;
    let kept = other.call("workflow_start", arguments("return await agent('hang:')")).await;
    until(|| agents.running() == 2).await;
    drop(one);
    until(|| agents.running() == 1).await;
    let status = other.call("workflow_status", json!({"runId": kept["structuredContent"]["runId"]})).await;
    assert_eq!(status["structuredContent"]["state"], "running");
}

#[tokio::test]
async fn a_client_that_closes_at_once_is_still_answered() {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let (server, _) = server(|_, _| {});
    let client = json!({"name": "pipe", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let call = json!({"name": "workflow", "arguments": arguments("return 'quick'")});
    let mut input =
        format!("{}\n", json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}));
    input += &format!("{}\n", json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    input += &format!("{}\n", json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}));
    let (mut ours, theirs) = tokio::io::duplex(1 << 16);
    ours.write_all(input.as_bytes()).await.unwrap();
    ours.shutdown().await.unwrap();
    let (reader, writer) = tokio::io::split(theirs);
    server.serve(reader, writer, fanfold::CancellationToken::new()).await.unwrap();
    let mut output = String::new();
    ours.read_to_string(&mut output).await.unwrap();
    // With the value, unless the machine is slow.
    assert!(output.lines().any(|line| line.contains("\"id\":2")), "{output}");
}

#[tokio::test]
async fn a_server_that_stops_leaves_no_agent_behind() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    client.call("workflow_start", arguments("return await agent('hang:')")).await;
    client.begin("return await agent('hang:')").await;
    until(|| agents.running() == 2).await;
    client.stop.cancel();
    client.served.await.unwrap().unwrap();
    server.shutdown().await;
    assert_eq!(agents.running(), 0);
}

#[tokio::test]
async fn a_server_that_has_shut_down_starts_nothing() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    server.shutdown().await;
    let result = client.run("return 1").await;
    assert_eq!(result["isError"], true);
    assert!(text(&result).contains("shutting down"), "{result}");
}

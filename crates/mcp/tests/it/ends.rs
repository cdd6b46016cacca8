//! Whatever ends a call, a client or the server ends runs and agents too.

use serde_json::json;

use crate::wire::{Wire, arguments, server, text, until};

#[tokio::test]
async fn a_cancelled_call_stops_its_run() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let id = client.begin("return await agent('hang:')").await;
    until(|| agents.running() == 1).await;
    client.cancel(id).await;
    until(|| agents.running() == 0).await;
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
}

#[tokio::test]
async fn calls_do_not_wait_for_each_other() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let first = client.begin("return await agent('hang: 1')").await;
    let second = client.begin("return await agent('hang: 2')").await;
    until(|| agents.running() == 2).await;
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
    for id in [first, second] {
        client.cancel(id).await;
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

/// What a client asks for that reads nothing: answers that fill whatever is between the two.
async fn ask_and_do_not_read(client: &mut Wire) {
    for _ in 0..60 {
        client.ask("tools/list", json!({})).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_no_more_and_closes_ends_server_and_agents() {
    for modern in [false, true] {
        let (server, agents) = server(|_, _| {});
        let mut client = match modern {
            false => Wire::connect(&server, json!({})).await,
            true => Wire::connect_modern(&server, json!({})),
        };
        client
            .ask(
                "tools/call",
                json!({"name": "workflow_start", "arguments": arguments("await agent('hang:')")}),
            )
            .await;
        client.begin("return await agent('hang: 2')").await;
        until(|| agents.running() == 2).await;
        ask_and_do_not_read(&mut client).await;
        client.close().await;
        (&mut client.served).await.unwrap().unwrap();
        until(|| agents.running() == 0).await;
    }
}

#[tokio::test]
async fn a_client_that_reads_no_more_does_not_keep_the_server_from_stopping() {
    let (server, agents) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    client.begin("return await agent('hang:')").await;
    until(|| agents.running() == 1).await;
    ask_and_do_not_read(&mut client).await;
    client.stop.cancel();
    (&mut client.served).await.unwrap().unwrap();
    server.shutdown().await;
    assert_eq!(agents.running(), 0);
}

#[tokio::test]
async fn a_client_that_reads_no_more_is_heard_and_holds_no_other_up() {
    let (server, agents) = server(|_, _| {});
    let (mut stuck, mut other) =
        (Wire::connect(&server, json!({})).await, Wire::connect(&server, json!({})).await);
    let id = stuck.begin("log('x'.repeat(1000)); return await agent('hang:')").await;
    until(|| agents.running() == 1).await;
    ask_and_do_not_read(&mut stuck).await;
    assert_eq!(other.run("return 1").await["structuredContent"]["result"], 1);
    stuck.cancel(id).await;
    until(|| agents.running() == 0).await;
    // And once it reads, all its answers are there.
    for id in 3..63 {
        assert!(stuck.answer(id).await["result"]["tools"].is_array());
    }
}

#[tokio::test]
async fn a_client_that_closes_its_output_has_gone() {
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
    let (server, agents) = server(|_, _| {});
    let ((mut input, reader), (writer, output)) = (tokio::io::duplex(1 << 16), tokio::io::duplex(1 << 16));
    let served = tokio::spawn({
        let server = server.clone();
        async move { server.serve(reader, writer, fanfold::CancellationToken::new()).await }
    });
    let client = json!({"name": "pipe", "version": "1"});
    let hello = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
    let call = json!({"name": "workflow_start", "arguments": arguments("await agent('hang:')")});
    for message in [
        json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello}),
        json!({"jsonrpc": "2.0", "method": "notifications/initialized"}),
        json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}),
    ] {
        input.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }
    let mut output = BufReader::new(output).lines();
    while !output.next_line().await.unwrap().unwrap().contains("\"id\":2") {}
    until(|| agents.running() == 1).await;
    drop(output);
    input.write_all(b"{\"jsonrpc\":\"2.0\",\"id\":3,\"method\":\"ping\"}\n").await.unwrap();
    served.await.unwrap().unwrap();
    until(|| agents.running() == 0).await;
}

//! What is no message, or hardly one: it has an answer, and the next message too.

use serde_json::{Value, json};

use crate::wire::{Wire, arguments, server};

const META: &str = r#""meta":{"name":"t","description":"t"}"#;

fn tools_call(params: &str) -> String {
    format!(r#"{{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{params}}}"#)
}

fn workflow(rest: &str) -> String {
    tools_call(&format!(r#"{{"name":"workflow","arguments":{{{META},{rest}}}}}"#))
}

/// What comes back, as (code, id) or as the value.
fn told(answer: &Value) -> Value {
    match &answer["error"]["code"] {
        Value::Null => answer["result"]["structuredContent"]["result"].clone(),
        code => json!([code, answer["id"]]),
    }
}

fn nested(levels: usize) -> String {
    format!("{}{}", "[".repeat(levels), "]".repeat(levels))
}

#[tokio::test]
async fn every_line_has_an_answer_whatever_is_wrong_with_it() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let parse = json!([-32700, null]);
    let params = json!([-32602, 5]);
    let long = workflow(&format!(r#""script":"return 1","args":{{"a":"{}"}}"#, "x".repeat(17 << 20)));
    for (line, expected) in [
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping""#.to_owned(), parse.clone()),
        ("nonsense".to_owned(), parse.clone()),
        ("Content-Length: 52\r".to_owned(), parse.clone()),
        (r#"[{"jsonrpc":"2.0","id":5,"method":"ping"}]"#.to_owned(), parse.clone()),
        ("[]".to_owned(), parse.clone()),
        (workflow(r#""script":"return '\ud83d'""#), json!("\u{fffd}")),
        (workflow(r#""script":"return '\ud83d\ude00' + '\\ud83d'.length""#), json!("😀1")),
        (workflow(r#""script":"return args.a","args":{"a":"\ude00x"}"#), json!("\u{fffd}x")),
        (workflow(&format!(r#""script":"return 1","args":{{"a":{}}}"#, nested(150))), params.clone()),
        (workflow(&format!(r#""script":"return 1","args":{{"a":{}}}"#, nested(99))), json!(1)),
        (workflow(&format!(r#""script":"return 1","args":{}"#, nested(100_000))), params.clone()),
        (tools_call(r#"{"name":"workflow","arguments":[]}"#), params.clone()),
        (tools_call(r#"{"name":"workflow","arguments":"{}"}"#), params.clone()),
        (tools_call(r#"{"name":"workflow","arguments":7}"#), params.clone()),
        (tools_call(r#"{"name":7}"#), params.clone()),
        (tools_call("{}"), params.clone()),
        (tools_call("[]"), params.clone()),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#.to_owned(), params.clone()),
        (tools_call("null"), params.clone()),
        (tools_call(r#"{"name":"workflow","arguments":null}"#), json!(null)),
        (tools_call(r#"{"name":"no_such_tool"}"#), params.clone()),
        (
            r#"{"jsonrpc":"2.0","id":5,"method":"logging/setLevel","params":{"level":9}}"#.to_owned(),
            params.clone(),
        ),
        (r#"{"jsonrpc":"2.0","id":5,"method":"no/such"}"#.to_owned(), json!([-32601, 5])),
        (r#"{"id":5,"method":"ping"}"#.to_owned(), json!([-32600, 5])),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#.to_owned(), json!([-32600, null])),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#.to_owned(), json!([-32600, null])),
        ("5".to_owned(), json!([-32600, null])),
        (long, json!([-32700, 5])),
        ("\u{feff}".to_owned() + &workflow(r#""script":"return 2""#), json!(2)),
    ] {
        let answer = client.answer_to(line.as_bytes()).await;
        assert_eq!(told(&answer), expected, "{}: {answer}", &line[..line.len().min(200)]);
    }
    let answer = client.answer_to(b"{\"jsonrpc\":\"2.0\",\"id\":5,\"method\":\"caf\xE9\"}").await;
    assert_eq!(told(&answer), parse, "{answer}");
    assert_eq!(client.run("return 'still there'").await["structuredContent"]["result"], "still there");
}

#[tokio::test]
async fn an_error_says_what_was_wrong() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    for (line, words) in [
        (tools_call(r#"{"name":"workflow","arguments":[]}"#), "arguments must be an object"),
        (tools_call(r#"{"arguments":{}}"#), "missing field `name`"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"tools/call"}"#.to_owned(), "they are missing"),
        ("[1]".to_owned(), "send each message on its own"),
        (r#"{"jsonrpc":"2.0","id":5,"method":"ping""#.to_owned(), "not valid JSON"),
    ] {
        let answer = client.answer_to(line.as_bytes()).await;
        assert!(answer["error"]["message"].as_str().unwrap().contains(words), "{answer}");
    }
}

#[tokio::test]
async fn what_wants_no_answer_gets_none_and_disturbs_nothing() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let before = client.unread().len();
    for line in [
        "".to_owned(),
        "  \r".to_owned(),
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no"}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","id":99,"result":{}}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/no_such","params":[]}"#.to_owned(),
        r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":7}"#.to_owned(),
        format!(r#"{{"jsonrpc":"2.0","method":"notifications/progress","params":{}}}"#, nested(150)),
    ] {
        client.send_bytes(format!("{line}\n").as_bytes()).await;
    }
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
    assert_eq!(client.unread().len(), before, "{:?}", client.unread());
}

#[tokio::test]
async fn a_client_may_stumble_before_it_introduces_itself() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect_modern(&server, json!({}));
    let answer = client.answer_to(b"{\"jsonrpc\":").await;
    assert_eq!(told(&answer), json!([-32700, null]), "{answer}");
    assert_eq!(client.run("return 1").await["structuredContent"]["result"], 1);
}

#[tokio::test]
async fn the_last_line_needs_no_end() {
    let (server, _) = server(|_, _| {});
    let mut client = Wire::connect(&server, json!({})).await;
    let call = json!({"name": "workflow", "arguments": arguments("return 'quick'")});
    let line = json!({"jsonrpc": "2.0", "id": 77, "method": "tools/call", "params": call}).to_string();
    client.send_bytes(line.as_bytes()).await;
    client.close().await;
    // With the value, unless the machine is slow.
    assert!(client.answer(77).await["result"].is_object());
}

//! Saved workflows as tools of their own.

use fanfold::{ErrorCode, Meta};
use fanfold_mcp::SavedWorkflow;
use serde_json::{Value, json};

use crate::wire::{Wire, server, text};

const ADD: &str = "export const meta = {name: 'add', description: 'Adds up', whenToUse: 'for sums', \
                   phases: [{title: 'Count'}], args: {type: 'object', required: ['n'], \
                   properties: {n: {type: 'array', items: {type: 'integer'}}}}}\n\
                   return [await agent('x'), args.n.reduce((a, b) => a + b, 0)]";

fn meta(value: Value) -> Meta {
    Meta::from_value(&value).unwrap()
}

fn saved() -> Vec<SavedWorkflow> {
    let args = json!({"type": "object", "required": ["n"],
        "properties": {"n": {"type": "array", "items": {"type": "integer"}}}});
    let add = json!({"name": "add", "description": "Adds up", "whenToUse": "for sums",
        "phases": [{"title": "Count"}], "args": args});
    let plain = Meta::new("plain", "Gives its args");
    vec![SavedWorkflow::new(meta(add), ADD).unwrap(), SavedWorkflow::new(plain, "return args").unwrap()]
}

#[tokio::test]
async fn a_saved_workflow_is_a_tool_whose_arguments_are_its_args() {
    let (server, _) = server(|_, options| options.saved = saved());
    for modern in [false, true] {
        let mut client = match modern {
            false => Wire::connect(&server, json!({})).await,
            true => Wire::connect_modern(&server, json!({})),
        };
        let listed = client.request("tools/list", json!({})).await["result"]["tools"].clone();
        let tools = listed.as_array().unwrap();
        assert_eq!(tools.len(), 7);
        let (add, plain) = (&tools[5], &tools[6]);
        assert_eq!((&add["name"], &plain["name"]), (&json!("add"), &json!("plain")));
        assert_eq!(add["inputSchema"]["properties"]["n"]["items"], json!({"type": "integer"}));
        assert_eq!(plain["inputSchema"], json!({"type": "object"}));
        assert_eq!(add["outputSchema"], tools[0]["outputSchema"]);
        let description = add["description"].as_str().unwrap();
        for told in ["Adds up", "for sums", "Count", "workflow_result"] {
            assert!(description.contains(told), "{told}: {description}");
        }
        let result = client.call("add", json!({"n": [1, 2, 3]})).await;
        assert_eq!(result["structuredContent"]["result"], json!(["echo:x", 6]), "{result}");
        assert!(text(&result).starts_with("workflow \"add\" completed (1 agent)."), "{result}");
        let result = client.call("plain", json!({"any": {"thing": null}})).await;
        assert_eq!(result["structuredContent"]["result"], json!({"any": {"thing": null}}));
        let result = client.request("tools/call", json!({"name": "plain"})).await["result"].clone();
        assert_eq!(result["structuredContent"]["result"], json!({}), "{result}");
    }
}

#[tokio::test]
async fn args_that_a_saved_workflow_does_not_take_are_refused_with_their_path() {
    let (server, _) = server(|_, options| options.saved = saved());
    let mut client = Wire::connect(&server, json!({})).await;
    for (args, path) in
        [(json!({}), "args"), (json!({"n": 1}), "args.n"), (json!({"n": [1, "2"]}), "args.n[1]")]
    {
        let result = client.call("add", args).await;
        assert_eq!(result["isError"], true, "{result}");
        let error = &result["structuredContent"]["error"];
        assert_eq!((&error["code"], &error["path"]), (&json!("INVALID_ARGUMENT"), &json!(path)), "{result}");
        assert!(text(&result).contains(path), "{result}");
    }
}

#[tokio::test]
async fn equal_calls_of_a_saved_workflow_share_a_run() {
    let slow = Meta::new("slow", "Sleeps");
    let slow = SavedWorkflow::new(slow, "return await agent('sleep:300')").unwrap();
    let (server, agents) = server(|_, options| options.saved = vec![slow]);
    let mut client = Wire::connect(&server, json!({})).await;
    let mut calls = Vec::new();
    for args in [json!({}), json!({}), json!({"n": 1})] {
        calls.push(client.ask("tools/call", json!({"name": "slow", "arguments": args})).await);
    }
    crate::wire::until(|| agents.running() == 2).await;
    let mut ids = Vec::new();
    for call in calls {
        ids.push(client.answer(call).await["result"]["structuredContent"]["runId"].clone());
    }
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
}

#[test]
fn a_name_that_no_tool_can_have_is_refused() {
    for name in ["has space", "naïve", "a/b", &"x".repeat(65)] {
        let error = SavedWorkflow::new(Meta::new(name, "d"), "return 1").unwrap_err();
        assert_eq!(
            (error.code, error.path.as_deref()),
            (Some(ErrorCode::InvalidArgument), Some("meta.name"))
        );
        assert!(error.message.contains("rename it"), "{error}");
    }
    for name in ["workflow", "workflow_result", "twice"] {
        let engine = fanfold::Engine::builder()
            .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
            .build()
            .unwrap();
        let tool = || SavedWorkflow::new(Meta::new(name, "d"), "return 1").unwrap();
        let mut options = fanfold_mcp::ServerOptions::default();
        options.saved = vec![tool(), tool()];
        let config = fanfold_tool::ToolConfig::default();
        let error = fanfold_mcp::Server::new(engine, config, options).unwrap_err();
        assert!(error.message.contains("another tool of this name"), "{error}");
    }
}

//! What a workflow says of its args, and what becomes of args that are not that.

use fanfold::{ErrorCode, Meta, StopReason};
use serde_json::{Value, json};

use crate::support::{engine, limits, run};

const SCRIPT: &str = "export const meta = {name: 'add', description: 'adds', args: {type: 'object', required: ['n'], \
                      properties: {n: {type: 'integer'}, list: {type: 'array', items: {type: 'string'}}}}}\n\
                      return await agent(`${args.n}`)";

#[tokio::test]
async fn args_are_checked_before_the_run_starts() {
    let (engine, agents) = engine(limits(json!({})));
    for (args, path, told) in [
        (None, "args", "\"n\" is a required property"),
        (Some(json!({})), "args", "\"n\" is a required property"),
        (Some(json!(null)), "args", "is not of type \"object\""),
        (Some(json!("{\"n\": 1}")), "args", "is not of type \"object\""),
        (Some(json!({"n": "1"})), "args.n", "is not of type \"integer\""),
        (Some(json!({"n": 1, "list": ["a", 2]})), "args.list[1]", "is not of type \"string\""),
        // Large ones are checked elsewhere, and as well.
        (Some(json!({"n": 1, "list": vec![json!("x".repeat(1000)); 100], "more": 1})), "", ""),
        (Some(json!({"n": "x".repeat(100_000)})), "args.n", "is not of type \"integer\""),
    ] {
        let mut request = fanfold::StartRequest::new(SCRIPT);
        if let Some(args) = &args {
            request = request.args(args.clone());
        }
        let started = run(&engine, request).await;
        if path.is_empty() {
            assert_eq!(started.unwrap().0.value.get(), "\"echo:1\"");
            continue;
        }
        let error = started.unwrap_err();
        let code_and_path = (error.code, error.path.as_deref());
        assert_eq!(code_and_path, (Some(ErrorCode::InvalidArgument), Some(path)), "{error}");
        assert!(error.message.contains("meta.args") && error.message.contains(told), "{error}");
    }
    assert_eq!(agents.running(), 0);
}

#[tokio::test]
async fn args_are_checked_against_metadata_beside_the_script_too() {
    let (engine, _) = engine(limits(json!({})));
    let mut meta = Meta::new("add", "adds");
    meta.args = json!({"type": "object", "properties": {"n": {"type": "integer"}}}).as_object().cloned();
    let request = |args: Value| fanfold::StartRequest::new("return args").meta(meta.clone()).args(args);
    let (result, _) = run(&engine, request(json!({"n": 1, "other": true}))).await.unwrap();
    assert_eq!(result.value.get(), "{\"n\":1,\"other\":true}");
    let error = run(&engine, request(json!({"n": 1.5}))).await.unwrap_err();
    assert_eq!(error.path.as_deref(), Some("args.n"), "{error}");
    // Nothing must be there, so nothing is missed.
    let (result, _) =
        run(&engine, fanfold::StartRequest::new("return typeof args").meta(meta)).await.unwrap();
    assert_eq!(result.value.get(), "\"undefined\"");
}

#[tokio::test]
async fn a_script_can_catch_that_a_workflow_takes_other_args() {
    let (engine, _) = engine(limits(json!({})));
    let script = format!(
        "const script = {SCRIPT:?}\n\
         const given = await workflow({{ script }}, {{ n: 2 }})\n\
         try {{ await workflow({{ script }}, {{ n: 'two' }}) }}\n\
         catch (error) {{ return [given, error.code, error.path, error.message] }}"
    );
    let request = fanfold::StartRequest::new(script).meta(Meta::new("test", "a test"));
    let (result, _) = run(&engine, request).await.unwrap();
    assert_eq!(result.stop_reason, StopReason::Completed, "{:?}", result.error);
    let value: Value = serde_json::from_str(result.value.get()).unwrap();
    assert_eq!((&value[0], &value[1]), (&json!("echo:2"), &json!("INVALID_ARGUMENT")), "{value}");
    assert!(value[3].as_str().unwrap().contains("args.n"), "{value}");
}

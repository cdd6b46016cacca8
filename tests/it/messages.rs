//! Mistakes that people make, and what they are told.

use serde_json::json;

use crate::support::{engine, limits, run};

#[tokio::test]
async fn a_mistake_is_named_together_with_the_way_out() {
    let (engine, _) = engine(limits(json!({})));
    for (script, told) in [
        ("return await parallel([agent('a'), agent('b')])", "got a promise: write () => agent(…)"),
        ("return await parallel(agent('a'))", "takes an array of functions, got a promise"),
        ("return {x: agent('a')}", "x is a promise: await it"),
        ("return {first: undefined}", "first is undefined"),
        ("return await agent('x', {lable: 'y'})", "has no option \"lable\" (it has: label,"),
        ("return await pipeline(['a'], agent)", "options must be an object"),
    ] {
        let request = fanfold::StartRequest::new(script).meta(fanfold::Meta::new("test", "a test"));
        let (result, _) = run(&engine, request).await.expect("it starts");
        let error = result.error.expect("a mistake kills the script");
        assert!(error.message.contains(told), "{script}: {error}");
    }
}

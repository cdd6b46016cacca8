//! What a script cannot make the host believe, whatever it does to its own world.

use fanfold::{ErrorCode, EventKind, StopReason};
use serde_json::json;

use crate::support::{engine, limits, run};

/// Scripts that meddle with what the hooks are made of, and what must come of them all the same.
#[tokio::test]
async fn prototypes_have_no_say_in_errors() {
    let (engine, _) = engine(limits(json!({})));
    let accessors = "for (const name of ['code', 'message', 'path'])
        Object.defineProperty(Object.prototype, name, {get() { return 'CANCELLED' }, set() {}, configurable: true});";
    let throwing = "for (const name of ['code', 'message'])
        Object.defineProperty(Object.prototype, name, {set() { throw new Error('x') }, configurable: true});";
    for (meddling, call, code) in [
        (accessors, "await agent('', {})", ErrorCode::InvalidArgument),
        (accessors, "await agent('x', {label: () => 1})", ErrorCode::InvalidArgument),
        (throwing, "await agent('', {})", ErrorCode::InvalidArgument),
        ("Object.prototype.get = () => 1;", "await parallel([() => agent(5)])", ErrorCode::InvalidArgument),
        ("Object.prototype.get = () => 1;", "await agent('x', {foo: 1})", ErrorCode::UnsupportedOption),
        (
            "Error.prepareStackTrace = (e) => { Object.freeze(e) };",
            "await agent('', {})",
            ErrorCode::InvalidArgument,
        ),
    ] {
        let request = request(&format!("{meddling}\n{call}"));
        let (result, _) = run(&engine, request).await.expect("it starts");
        let error = result.error.expect("misuse kills the script");
        assert_eq!(error.code, Some(code), "{meddling} {call}: {error}");
    }
}

#[tokio::test]
async fn the_stack_hands_nobody_the_hooks_own_functions() {
    let (engine, _) = engine(limits(json!({})));
    let script = "let got = 0
        Error.prepareStackTrace = (e, frames) => { got += frames.length; return '' }
        try { phase(1) } catch {}
        return [got, typeof Error.captureStackTrace === 'function' ? typeof new Error().stack : 'string']";
    let (result, _) = run(&engine, request(script)).await.expect("it starts");
    assert_eq!(result.value.get(), r#"[0,"string"]"#);
}

#[tokio::test]
async fn a_script_that_has_settled_runs_no_more() {
    let (engine, _) = engine(limits(json!({"syncTimeoutMs": 200})));
    for trap in [
        "Object.defineProperty(Array.prototype, '0', {set() { log('late'); agent('late') }, configurable: true})",
        "Object.defineProperty(Array.prototype, '0', {set() { while (true) {} }, configurable: true})",
        "Promise.reject({toString() { while (true) {} }})",
    ] {
        let script = format!("Promise.reject(new Error('x')); {trap}; return 1");
        let (result, events) = run(&engine, request(&script)).await.expect("it starts");
        assert_eq!((result.stop_reason, result.value.get()), (StopReason::Completed, "1"), "{trap}");
        assert!(!events.iter().any(|event| matches!(event.kind, EventKind::Log { .. })), "{trap}");
        assert!(result.warnings.iter().any(|warning| warning.contains("Error: x")), "{:?}", result.warnings);
    }
}

fn request(script: &str) -> fanfold::StartRequest {
    fanfold::StartRequest::new(script).meta(fanfold::Meta::new("test", "a test"))
}

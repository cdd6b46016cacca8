//! The conformance cases through the library.

use std::collections::BTreeMap;

use fanfold::{Meta, StartRequest, text};
use fanfold_tests::conformance::{Case, Observed, cases, check};
use serde_json::Value;

use crate::support;

#[tokio::test]
async fn every_case_passes_on_a_current_thread_runtime() {
    run_all().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_case_passes_on_a_multi_thread_runtime() {
    run_all().await;
}

async fn run_all() {
    let cases = cases();
    let mut observed = BTreeMap::new();
    for case in &cases {
        observed.insert(case.name.clone(), run(case).await);
    }
    check(&cases, &observed);
}

async fn run(case: &Case) -> Observed {
    let (engine, scripted) = support::engine(support::limits(case.limits()));
    let mut request = StartRequest::new(&case.script).cancel_with(case.cancellation());
    if let Some(args) = &case.args {
        request = request.args(args.clone());
    }
    let ran = match Meta::from_value(&case.meta) {
        Ok(meta) => support::run(&engine, request.meta(meta)).await,
        Err(error) => Err(error),
    };
    let name = case.meta["name"].as_str().unwrap_or_default();
    let (result, events) = match ran {
        Ok((result, events)) => (Ok(result), events),
        Err(error) => (Err(error), Vec::new()),
    };
    Observed {
        text: result
            .as_ref()
            .map(|r| text::render(name, r, text::DEFAULT_MAX_RESULT_CHARS))
            .unwrap_or_default(),
        result,
        events,
        requests: scripted.requests().iter().map(asked).collect(),
        sees_failed_starts: true,
        records: None,
    }
}

/// A request without what is told in events.
pub(crate) fn asked(request: &fanfold::AgentRequest) -> Value {
    let mut asked = serde_json::to_value(request).expect("requests serialise");
    for name in ["label", "phase"] {
        asked.as_object_mut().expect("an object").shift_remove(name);
    }
    asked
}

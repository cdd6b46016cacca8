//! When events happened, by a clock of the host that is set back.

use std::sync::atomic::{AtomicBool, Ordering};

use fanfold::Engine;
use fanfold_agents::Scripted;

use crate::support;

const BEGAN: u64 = 1_700_000_000_000;
const HOURS: u64 = 2 * 3600 * 1000;

#[tokio::test]
async fn times_of_events_never_go_back_and_durations_are_right() {
    let set_back = AtomicBool::new(false);
    let clock = move || if set_back.swap(true, Ordering::Relaxed) { BEGAN - HOURS } else { BEGAN };
    let engine = Engine::builder()
        .provider("spawn", Scripted::new())
        .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
        .clock(clock)
        .build()
        .expect("the engine builds");
    let script = "await agent('sleep:100'); return await agent('sleep:100')";
    let (result, events) = support::run(&engine, support::request(script)).await.expect("it starts");
    let times: Vec<u64> = events.iter().map(|event| event.at).collect();
    assert!(times.is_sorted() && times[0] >= BEGAN, "{times:?}");
    let took = times[times.len() - 1] - times[0];
    assert!((200..HOURS).contains(&took), "{times:?}");
    assert_eq!(result.start_time_ms, BEGAN);
}

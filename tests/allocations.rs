//! How often the host allocates, for each call of `agent()` and for each event: the same on every machine, so that a
//! host which has become slower fails a test.
//!
//! A binary of its own, since it counts what the whole process allocates.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicU64, Ordering};

use fanfold::{
    AgentRequest, Answer, CancellationToken, Child, Engine, Event, Limits, Meta, Observer, StartError,
    StartRequest, StopReason, Subagents,
};
use futures::future::BoxFuture;

struct Counting;

static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

// SAFETY: the system's allocator does the work, with what it is given.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: by the contract of this function.
        unsafe { System.dealloc(start, layout) }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: by the contract of this function.
        unsafe { System.realloc(start, layout, size) }
    }
}

/// Answers at once, with three allocations of its own: two boxes and an id.
struct Agents;

impl Subagents for Agents {
    fn start(
        &self,
        request: AgentRequest,
        _: CancellationToken,
    ) -> BoxFuture<'static, Result<Child, StartError>> {
        Box::pin(async move { Ok(Child::new("child", async move { Ok(Answer::text(request.prompt)) })) })
    }
}

/// Looks at events and keeps nothing.
struct Watch;

impl Observer for Watch {
    fn event(&self, _: &Meta, event: &Event) {
        std::hint::black_box(event);
    }
}

struct Lab {
    runtime: tokio::runtime::Runtime,
    engine: Engine,
}

impl Lab {
    fn new() -> Self {
        let limits = serde_json::from_value::<Limits>(serde_json::json!({"maxConcurrentAgents": 16}));
        let engine = Engine::builder()
            .provider("spawn", Agents)
            .limits(limits.expect("valid limits"))
            .cache_directory(concat!(env!("CARGO_TARGET_TMPDIR"), "/fanfold-cache"))
            .build()
            .expect("the engine builds");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        Self { runtime: runtime.expect("a runtime"), engine }
    }

    /// Allocations while a script runs that does something `n` times.
    fn allocations(&self, script: &str, n: u32, watched: bool) -> u64 {
        let script = script.replace("COUNT", &n.to_string());
        let run = || {
            let mut request = StartRequest::new(&*script).meta(Meta::new("count", "counts"));
            if watched {
                request = request.observe(Watch);
            }
            let before = ALLOCATIONS.load(Ordering::Relaxed);
            self.runtime.block_on(async {
                let run = self.engine.start(request).await.expect("the script starts");
                let result = run.result().await;
                assert_eq!(result.stop_reason, StopReason::Completed, "{:?}", result.error);
                run.dispose().await;
            });
            ALLOCATIONS.load(Ordering::Relaxed) - before
        };
        // The first run's program is compiled, that of the second was kept.
        run();
        run()
    }

    /// Allocations for each time that a script does something.
    fn each(&self, script: &str, watched: bool) -> f64 {
        let (few, many) = (100, 900);
        let more = self.allocations(script, many, watched) - self.allocations(script, few, watched);
        more as f64 / f64::from(many - few)
    }
}

#[test]
fn the_host_allocates_no_more_than_it_did() {
    let lab = Lab::new();
    let sequence = "for (let i = 0; i < COUNT; i++) await agent('x')";
    let parallel = "await parallel(Array.from({ length: COUNT }, () => () => agent('x')))";
    let log = "for (let i = 0; i < COUNT; i++) log('a line')";
    let figures = [
        ("a call in sequence", lab.each(sequence, false), 34.5),
        ("a call in parallel", lab.each(parallel, false), 34.0),
        ("a log line that nobody sees", lab.each(log, false), 2.1),
        ("a log line that is watched", lab.each(log, true), 2.1),
        // Two events.
        ("a call that is watched", lab.each(sequence, true), 36.0),
    ];
    let faults: Vec<String> = figures
        .iter()
        .filter(|(_, allocations, most)| allocations > most)
        .map(|(what, allocations, most)| format!("{what}: {allocations:.2} allocations, at most {most}"))
        .collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

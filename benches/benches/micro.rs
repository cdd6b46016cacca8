//! Micro-benchmarks of the engine: `cargo bench`, or `cargo bench --bench micro -- FILTER` for some.
//!
//! All but `throughput` run on one thread, script and agents together, so that what is measured is work and not the
//! waking of threads. Sandboxes come from a pool, as in a service that wants speed. For memory and for other engines
//! there is `cargo xtask bench`.

use std::cell::Cell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};
use std::sync::LazyLock;

use divan::counter::{BytesCount, ItemsCount};
use divan::{Bencher, black_box};
use fanfold::{Engine, Meta, Run, RunResult, StartRequest, StopReason};
use fanfold_benches::{Agents, limits, request};
use futures::future::join_all;
use peer_protocol::Job;
use tokio::runtime::{Builder, Runtime};

fn main() {
    divan::main();
}

const CACHE: &str = concat!(env!("CARGO_TARGET_TMPDIR"), "/bench-cache");

static ENGINE: LazyLock<Engine> = LazyLock::new(|| {
    let builder = Engine::builder().provider("spawn", Agents::default()).limits(limits(16));
    builder.pool(512).cache_directory(CACHE).build().expect("the engine builds")
});

thread_local! {
    static RUNTIME: Runtime = Builder::new_current_thread().enable_time().build().expect("a runtime");
    static NONCE: Cell<u64> = const { Cell::new(0) };
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    RUNTIME.with(|runtime| runtime.block_on(future))
}

/// A text that no run has had before.
fn fresh(script: &str) -> String {
    NONCE.set(NONCE.get() + 1);
    format!("{script}\n// {}", NONCE.get())
}

async fn run(request: StartRequest) -> std::sync::Arc<RunResult> {
    let run = ENGINE.start(request).await.expect("the script starts");
    let result = run.result().await;
    assert_eq!(result.stop_reason, StopReason::Completed, "{:?}", result.error);
    result
}

fn bench_script(bencher: Bencher<'_, '_>, script: &str) {
    block_on(run(request(script)));
    bencher.bench_local(|| block_on(run(request(script))));
}

// ── Runs ────────────────────────────────────────────────────────────────────────────────────────────────────

#[divan::bench]
fn trivial_new_text(bencher: Bencher<'_, '_>) {
    bencher.with_inputs(|| fresh("return 1")).bench_local_values(|script| block_on(run(request(script))));
}

#[divan::bench]
fn trivial_same_text(bencher: Bencher<'_, '_>) {
    bench_script(bencher, "return 1");
}

#[divan::bench]
fn one_agent(bencher: Bencher<'_, '_>) {
    bench_script(bencher, "return await agent('x')");
}

#[divan::bench(sample_count = 30)]
fn a_thousand_agents_in_parallel(bencher: Bencher<'_, '_>) {
    bench_script(
        bencher.counter(ItemsCount::new(1000_u32)),
        "return (await parallel(Array.from({ length: 1000 }, (_, i) => () => agent('x' + i)))).length",
    );
}

#[divan::bench(sample_count = 30)]
fn a_thousand_agents_in_sequence(bencher: Bencher<'_, '_>) {
    bench_script(
        bencher.counter(ItemsCount::new(1000_u32)),
        "for (let i = 0; i < 1000; i++) await agent('x')",
    );
}

#[divan::bench(sample_count = 30)]
fn a_pipeline_of_3_stages_over_300_items(bencher: Bencher<'_, '_>) {
    bench_script(
        bencher.counter(ItemsCount::new(900_u32)),
        "const items = Array.from({ length: 300 }, (_, i) => i);
         return (await pipeline(items, (i) => agent('a' + i), (p) => agent('b' + p), (p) => agent('c' + p))).length",
    );
}

#[divan::bench(sample_count = 30)]
fn a_result_of_1_mib(bencher: Bencher<'_, '_>) {
    bench_script(bencher.counter(BytesCount::new(1_usize << 20)), "return 'x'.repeat(1 << 20)");
}

#[divan::bench(sample_count = 30)]
fn args_of_1_mib(bencher: Bencher<'_, '_>) {
    let words: Vec<String> = (0..1 << 17).map(|i| format!("{:05}", i % 100_000)).collect();
    let args = serde_json::to_string(&words).expect("words are JSON");
    bencher
        .counter(BytesCount::of_str(&args))
        .with_inputs(|| request("return args.length").args_json(args.clone()))
        .bench_local_values(|request| block_on(run(request)));
}

#[divan::bench]
fn a_thousand_log_lines(bencher: Bencher<'_, '_>) {
    bench_script(
        bencher.counter(ItemsCount::new(1000_u32)),
        "for (let i = 0; i < 1000; i++) log('line ' + i)",
    );
}

#[divan::bench(sample_count = 10)]
fn fib_27(bencher: Bencher<'_, '_>) {
    bench_script(bencher, "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(27)");
}

// ── Parsing ─────────────────────────────────────────────────────────────────────────────────────────────────

#[divan::bench(args = [6, 200], sample_count = 30)]
fn parse_kib(bencher: Bencher<'_, '_>, kib: usize) {
    let line = "{ const answer = await agent(`Read ${args.file} and list what is wrong`, { label: 'read' }); log(answer) }\n";
    let script = line.repeat(kib * 1024 / line.len());
    bencher.counter(BytesCount::of_str(&script)).with_inputs(|| fresh(&script)).bench_local_refs(|script| {
        block_on(async { black_box(ENGINE.check(script, Some(Meta::new("a", "b"))).await) })
    });
}

// ── Cancelling ──────────────────────────────────────────────────────────────────────────────────────────────

/// A run that is at its agent, or computes.
fn started(script: &str) -> Run {
    block_on(async {
        let run = ENGINE.start(request(script)).await.expect("the script starts");
        // More than any start takes.
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        run
    })
}

fn bench_cancel(bencher: Bencher<'_, '_>, script: &str) {
    bencher.with_inputs(|| started(script)).bench_local_values(|run| {
        block_on(async {
            run.cancel("enough");
            run.result().await
        })
    });
}

#[divan::bench(sample_count = 50)]
fn cancel_parked(bencher: Bencher<'_, '_>) {
    bench_cancel(bencher, "return await agent('hang')");
}

#[divan::bench(sample_count = 20)]
fn cancel_spinning(bencher: Bencher<'_, '_>) {
    bench_cancel(bencher, "for (;;) {}");
}

// ── Processors and processes ────────────────────────────────────────────────────────────────────────────────

#[divan::bench(args = [1, 2], sample_count = 20)]
fn throughput(bencher: Bencher<'_, '_>, threads: usize) {
    const RUNS: usize = 256;
    let runtime =
        Builder::new_multi_thread().worker_threads(threads).enable_time().build().expect("a runtime");
    bencher.counter(ItemsCount::new(RUNS)).bench_local(|| {
        runtime.block_on(async {
            let runs = (0..RUNS).map(|_| tokio::spawn(run(request("return await agent('x')"))));
            join_all(runs).await
        })
    });
}

/// A process that has the sandbox in its cache.
#[divan::bench(sample_count = 20)]
fn process_start_to_first_agent(bencher: Bencher<'_, '_>) {
    let park = || {
        let mut process =
            Command::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../target/release/examples/contender"))
                .args([CACHE, "16", "0"])
                .stdin(Stdio::piped())
                .stdout(Stdio::piped())
                .spawn()
                .expect("the process starts");
        let job = Job::Park { script: "return await agent('hang')".into(), count: 1 };
        let job = serde_json::to_string(&job).expect("a job is JSON");
        let mut jobs = process.stdin.take().expect("its input is a pipe");
        writeln!(jobs, "{job}").expect("it takes a job");
        let lines = BufReader::new(process.stdout.take().expect("its output is a pipe")).lines();
        assert_eq!(lines.take(2).count(), 2, "it says hello and what came of the job");
        drop(jobs);
        process.wait().expect("it ends")
    };
    park();
    bencher.bench_local(park);
}

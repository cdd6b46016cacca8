//! Timers that mean harm: without end, without number, and in the way of the run's end.

use std::time::Duration;

use fanfold::ErrorCode::{CpuLimit, Deadlock, InvalidArgument, OutputLimit, TimeLimit};
use fanfold::{Limits, StartRequest, StopReason, event_stream};
use serde_json::json;

use super::on_both_runtimes;
use super::row::{Row, check, row};
use crate::support;

const HEADER: &str = "export const meta = { name: 't', description: 'timers' };";

fn timed(name: &'static str, body: &str) -> Row {
    row(36, name, format!("{HEADER}\n{body}")).with_header()
}

pub(super) fn rows() -> Vec<Row> {
    let nothing = "(resolve) => setTimeout(resolve, 1)";
    vec![
        timed("they fire in the order of their times", "
            const seen = [];
            setTimeout(() => seen.push('c'), 30); setTimeout(() => seen.push('a'), 10); setTimeout(() => seen.push('b'), 10);
            await new Promise((resolve) => setTimeout(resolve, 40)); return seen.join('')")
            .gives(json!("abc")),
        timed("time is what timers say", "
            const start = Date.now(); await new Promise((resolve) => setTimeout(resolve, 25));
            return [Date.now() - start, new Date() - start]")
            .gives(json!([25, 25])),
        timed("one that sets itself for ever computes its fuel away", "
            const again = () => { for (let i = 0; i < 1e6; i++); setTimeout(again, 0) }; again(); await new Promise(() => {})")
            .limit("maxFuel", 500_000_000)
            .fails(CpuLimit),
        timed("one that spins", &format!("await new Promise({nothing}); setTimeout(() => {{ while (true) {{}} }}); await new Promise(() => setTimeout(() => {{}}, 1e6))"))
            .fails(TimeLimit),
        timed("too many", "for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e6)").limit("maxTimers", 100).fails(OutputLimit),
        timed("cleared ones are none", "for (let i = 0; i < 30_000; i++) clearTimeout(setTimeout(() => {}, 1e6)); return 1").gives(json!(1)),
        timed("what is cleared never fires", "
            const t = setTimeout(() => log('never'), 5); clearTimeout(t); clearTimeout(t); clearTimeout('x'); clearTimeout();
            await new Promise((resolve) => setTimeout(resolve, 20)); return 1")
            .gives(json!(1)),
        timed("a wait for one that was cleared", "await new Promise((resolve) => clearTimeout(setTimeout(resolve, 1e6)))").fails(Deadlock),
        timed("a wait for one that settles nothing", "setTimeout(() => {}, 5); await new Promise(() => {})").fails(Deadlock),
        timed("those that wait when the script ends are forgotten", "setTimeout(() => { throw 1 }, 1e9); return 1").gives(json!(1)),
        timed("one that throws harms nothing", "
            setTimeout(() => { throw new Error('mine') }, 1); await new Promise((resolve) => setTimeout(resolve, 10)); return 1")
            .gives(json!(1))
            .warns("unhandled rejection: Error: mine"),
        timed("what is no function", "setTimeout('globalThis.x = 1', 1)").fails(InvalidArgument),
        timed("delays that are none", "
            await Promise.all([undefined, null, NaN, -5, '7', 0.5, {}, -Infinity].map((ms) => new Promise((r) => setTimeout(r, ms)))); return 1")
            .gives(json!(1)),
        timed("a delay that never ends", "setTimeout(() => {}, Infinity)").fails(InvalidArgument),
        timed("a delay that throws", "setTimeout(() => {}, { valueOf() { throw new Error('mine') } })").throws("Error: mine"),
        timed("overwritten intrinsics", "
            Map.prototype.get = Map.prototype.set = Map.prototype.delete = () => { throw 1 }; Reflect.apply = null;
            return await new Promise((resolve) => setTimeout(resolve, 1, 'mine'))")
            .gives(json!("mine")),
        timed("a console that is handed anything", "
            const cycle = {}; cycle.self = cycle;
            console.log(cycle, Symbol('s'), 1n, new Proxy({}, { get() { throw 1 } }), { toJSON() { throw 1 } }, Object.create(null));
            console.log({ toString() { throw 1 } }); return 1")
            .gives(json!(1)),
        timed("a console without end", "for (;;) console.log('x')").limit("maxNarrationEvents", 50).fails(OutputLimit),
        timed("URLs that are none", "
            return ['', 'x', 'http://', 'http://[', 'http://a:99999', '\\ud800', 'http://\\u0000'].map((url) => URL.canParse(url))")
            .gives(json!([false, false, false, false, false, false, false])),
        timed("long URLs", "
            const u = new URL('https://e.com/' + 'é'.repeat(1e5)); for (let i = 0; i < 5; i++) u.searchParams.append('k'.repeat(1e4), i); return u.href.length > 6e5")
            .gives(json!(true)),
    ]
}

async fn timers_keep_the_limits() {
    check(rows()).await;
}

/// A script that waits for a timer is told nothing by its agents: it ends all the same, and at once.
async fn a_cancelled_run_does_not_wait_for_its_timers() {
    let (engine, _) = support::engine(Limits::default());
    for wait in ["await wait", "try { await wait } finally { await new Promise((r) => setTimeout(r, 1e9)) }"]
    {
        let script =
            format!("{HEADER} log('ready'); const wait = new Promise((r) => setTimeout(r, 1e9)); {wait}");
        let (observer, events) = event_stream();
        let run = engine.start(StartRequest::new(script).observe(observer)).await.expect("it starts");
        let mut events = Box::pin(events);
        use futures::StreamExt as _;
        while let Some(event) = events.next().await {
            if matches!(event.kind, fanfold::EventKind::Log { .. }) {
                break;
            }
        }
        run.cancel("enough");
        // Far less than the timer takes; the grace is 5 s.
        let result =
            tokio::time::timeout(Duration::from_secs(4), run.result()).await.expect("it ends at once");
        assert_eq!(result.stop_reason, StopReason::Cancelled);
    }
}

on_both_runtimes! {
    36: timers_keep_the_limits,
    36: a_cancelled_run_does_not_wait_for_its_timers,
}

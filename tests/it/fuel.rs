//! What scripts cost, in fuel: the same on every machine, so that a sandbox which has become slower fails a test.

use fanfold::{Limits, StopReason};

use crate::support;

/// How far a figure may be off, in percent, in either direction: an improvement is to be written down too.
const TOLERANCE_PERCENT: u64 = 3;

/// Scripts and the fuel that they use.
const FIGURES: &[(&str, u64, &str)] = &[
    ("nothing", 45_353, "return 1"),
    ("one agent", 85_115, "return await agent('x')"),
    ("1,000 agents in sequence", 34_844_053, "for (let i = 0; i < 1000; i++) await agent('x')"),
    (
        "1,000 agents in parallel",
        45_945_945,
        "return (await parallel(Array.from({ length: 1000 }, (_, i) => () => agent('x' + i)))).length",
    ),
    (
        "a pipeline of 3 stages over 300 items",
        35_557_394,
        "const items = Array.from({ length: 300 }, (_, i) => i);
         return (await pipeline(items, (i) => agent('a' + i), (p) => agent('b' + p), (p) => agent('c' + p))).length",
    ),
    (
        "100 agents with options and values",
        8_245_318,
        "const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
         let sum = 0;
         for (let i = 0; i < 100; i++) sum += (await agent(`json:{\"n\":${i}}`, { label: 'x', phase: 'p', schema })).n;
         return sum",
    ),
    ("1,000 log lines", 4_420_276, "for (let i = 0; i < 1000; i++) log('line ' + i)"),
    (
        "10,000 objects as a result",
        241_971_628,
        "return Array.from({ length: 10000 }, (_, i) => ({ id: i, name: `item ${i}`, tags: ['a', 'b'] }))",
    ),
    ("a result of 1 MiB", 87_446_759, "return 'x'.repeat(1 << 20)"),
    ("computation", 16_395_664, "const f = (n) => n < 2 ? n : f(n - 1) + f(n - 2); return f(20)"),
];

#[tokio::test]
async fn scripts_cost_what_they_did() {
    let (engine, _) = support::engine(Limits::default());
    let mut faults = Vec::new();
    for (name, expected, script) in FIGURES {
        let request = support::request(script).seed(1).start_time_ms(0);
        let (result, _) = support::run(&engine, request).await.expect("the script starts");
        assert_eq!(result.stop_reason, StopReason::Completed, "{name}: {:?}", result.error);
        let used = result.fuel_used;
        if used.abs_diff(*expected) * 100 > expected * TOLERANCE_PERCENT {
            faults.push(format!("{name}: {used}, was {expected}"));
        }
    }
    assert!(faults.is_empty(), "if this is meant, write it down in FIGURES:\n{}", faults.join("\n"));
}

#[tokio::test]
async fn a_run_costs_the_same_every_time() {
    let (engine, _) = support::engine(Limits::default());
    let script = "return await pipeline([1, 2, 3], (i) => agent('a' + i), (p) => p.length)";
    let mut figures = Vec::new();
    // The first run's program is compiled, that of the others was kept.
    for _ in 0..3 {
        let request = support::request(script).seed(1).start_time_ms(0);
        let (result, _) = support::run(&engine, request).await.expect("the script starts");
        figures.push(result.fuel_used);
    }
    assert_eq!(figures, [figures[0]; 3]);
}

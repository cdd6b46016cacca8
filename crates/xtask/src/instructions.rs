//! How many instructions a run takes, by Valgrind: the host, Wasmtime and the guest together, which fuel and allocations
//! do not count. Nearly the same on every machine, so that what has become slower fails.
//!
//! Counted in the profile of the tests, which is built anyway: what is compared is today with before, and not with
//! a clock.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, bail, ensure};

use crate::{report, workspace};

/// How far a figure may be off, in percent, in either direction: an improvement is to be written down too. Between
/// compilers and processors some percent are usual.
const TOLERANCE_PERCENT: u64 = 10;

/// What is counted, and instructions for each run in thousands. Taken with rustc 1.95 on x86-64.
const FIGURES: &[(&str, u64, &[&str])] = &[
    ("a trivial run, new text", 919, &["return 1", "--fresh"]),
    ("the same text again", 507, &["return 1"]),
    ("100 agents in sequence", 17_930, &["for (let i = 0; i < 100; i++) await agent('x')"]),
    (
        "100 agents in parallel",
        19_761,
        &["return (await parallel(Array.from({ length: 100 }, (_, i) => () => agent('x' + i)))).length"],
    ),
    (
        "a pipeline of 3 stages over 30 items",
        16_845,
        &["const items = Array.from({ length: 30 }, (_, i) => i);
           return (await pipeline(items, (i) => agent('a' + i), (p) => agent('b' + p), (p) => agent('c' + p))).length"],
    ),
    ("100 log lines", 2253, &["for (let i = 0; i < 100; i++) log('line ' + i)"]),
    ("a result of 64 KiB", 20_123, &["return 'x'.repeat(1 << 16)"]),
];

/// Counts, and compares with what was written down.
pub(crate) fn run() -> Result<()> {
    let root = workspace();
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--locked", "--example", "repeat"]).env_remove("CARGO_TARGET_DIR");
    let built = cargo.current_dir(&root).status();
    ensure!(built.context("failed to run cargo")?.success(), "the example does not compile");
    report("compiling the sandbox under Valgrind, unless it is there: a minute");
    count(&root, &["return 1"], 1)?;
    let mut faults = Vec::new();
    for (name, expected, args) in FIGURES {
        let (few, many) = (5, 25);
        let more = count(&root, args, many)?.saturating_sub(count(&root, args, few)?);
        let thousands = more / u64::from(many - few) / 1000;
        report(&format!("{name}: {thousands} thousand instructions, were {expected}"));
        if thousands.abs_diff(*expected) * 100 > expected * TOLERANCE_PERCENT {
            faults.push(*name);
        }
    }
    if !faults.is_empty() {
        bail!("more or fewer than before: {}. If this is meant, write it down in FIGURES", faults.join("; "));
    }
    Ok(())
}

/// The instructions of a process that runs a script so many times.
fn count(root: &Path, args: &[&str], times: u32) -> Result<u64> {
    let valgrind = Command::new("valgrind")
        .args(["--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null"])
        .arg(root.join("target/debug/examples/repeat"))
        .arg("--cache")
        .arg(root.join("target/valgrind-cache"))
        .args(args)
        .arg(times.to_string())
        .output()
        .context("failed to run valgrind; is it installed?")?;
    let told = String::from_utf8_lossy(&valgrind.stderr);
    ensure!(valgrind.status.success(), "the run under valgrind failed:\n{told}");
    // ==123== I   refs:      87,437,415
    let refs =
        told.lines().find_map(|line| line.split_once("I   refs:")).map(|(_, refs)| refs.replace(',', ""));
    let refs = refs.with_context(|| format!("valgrind gave no count:\n{told}"))?;
    refs.trim().parse().with_context(|| format!("not a count: {refs}"))
}

//! Measures: builds what `compare` (in `benches/`) compares, and runs it.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, Result, ensure};

/// Measures Fanfold, and with `--peers` its peers beside it. `args` go to `compare`.
pub(crate) fn run(args: &[String]) -> Result<()> {
    let root = crate::workspace();
    // Of all default members, so that features are those of every other build.
    let programs = ["--example", "compare", "--example", "contender", "--example", "floor"];
    run_in(&root, "cargo", &[&["build", "--release"], &programs[..]].concat())?;
    if args.iter().any(|arg| arg == "--peers") {
        // Their dependencies are not Fanfold's.
        let manifest = "benches/peers/codewhale/Cargo.toml";
        let codewhale =
            ["build", "--release", "--locked", "--manifest-path", manifest, "--target-dir", "target/peers"];
        run_in(&root, "cargo", &codewhale)?;
        let node = root.join("benches/peers/node");
        if !node.join("node_modules").exists() {
            run_in(&node, "npm", &["ci", "--no-audit", "--no-fund"])?;
        }
    }
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    run_in(&root, "target/release/examples/compare", &args)
}

fn run_in(folder: &Path, program: &str, args: &[&str]) -> Result<()> {
    let status = Command::new(program).args(args).current_dir(folder).status();
    ensure!(status.with_context(|| format!("failed to run {program}"))?.success(), "{program} failed");
    Ok(())
}

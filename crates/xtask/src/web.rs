//! The npm package `fanfold-types`: compile crates/web, bind it, put it into `web/`.
//!
//! 1. cargo builds `crates/web` for wasm32-unknown-unknown.
//! 2. wasm-bindgen makes JavaScript and TypeScript of what it exports.
//! 3. Both go into `web/`, where the rest of the package is written by hand.

use std::path::Path;
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, bail, ensure};
use wasm_bindgen_cli_support::Bindgen;

use crate::{report, workspace};

const PACKAGE: &str = "web";
const NAME: &str = "fanfold_types";
const MADE: [&str; 3] = ["fanfold_types.js", "fanfold_types.d.ts", "fanfold_types_bg.wasm"];

/// Builds the package and writes it, or compares it with the committed one.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = workspace();
    let made = root.join("target/web-package");
    bind(&compile(&root)?, &made)?;
    for name in MADE {
        let built = fs::read(made.join(name)).with_context(|| format!("{name} was not made"))?;
        let path = root.join(PACKAGE).join(name);
        if !check {
            fs::write(&path, &built)?;
        } else if fs::read(&path).with_context(|| format!("failed to read {PACKAGE}/{name}"))? != built {
            bail!(
                "{PACKAGE}/{name} is not what the sources give (see {}). Run `cargo xtask web` with the pinned \
                 toolchain (tools/install-guest-toolchain) and commit it",
                made.join(name).display()
            );
        }
    }
    report(&format!("{} {PACKAGE}/{{{}}}", if check { "up to date:" } else { "wrote" }, MADE.join(", ")));
    Ok(())
}

/// Step 1, by Debian's Rust for WebAssembly, or by rustup's where that is not installed.
fn compile(root: &Path) -> Result<Vec<u8>> {
    let target = root.join("target/web");
    let cargo_home = env::var("CARGO_HOME")
        .or_else(|_| env::var("HOME").map(|home| format!("{home}/.cargo")))
        .context("neither CARGO_HOME nor HOME is set")?;
    let flags = [
        format!("--remap-path-prefix={cargo_home}=/cargo"),
        format!("--remap-path-prefix={}=/fanfold", root.display()),
    ];
    let debian = Path::new("/usr/lib/rustlib/src/rust/library/Cargo.lock").exists();
    let mut cargo = Command::new(if debian { "/usr/bin/cargo" } else { "cargo" });
    for name in ["RUSTFLAGS", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR"] {
        cargo.env_remove(name);
    }
    cargo.arg("build");
    if debian {
        cargo
            .env("RUSTC", "/usr/bin/rustc")
            .env("RUSTC_BOOTSTRAP", "1")
            .env("CARGO_TARGET_WASM32_UNKNOWN_UNKNOWN_LINKER", "wasm-ld-22")
            .arg("-Zbuild-std=std,panic_abort");
    }
    let status = cargo
        .current_dir(root.join("crates/web"))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .args(["--locked", "--release", "--target", "wasm32-unknown-unknown", "--target-dir"])
        .arg(&target)
        .status()
        .context("failed to run cargo for the web package")?;
    ensure!(
        status.success(),
        "the web package does not compile; its toolchain: tools/install-guest-toolchain (Debian), or the rustup \
         target wasm32-unknown-unknown"
    );
    Ok(fs::read(target.join("wasm32-unknown-unknown/release/fanfold_web.wasm"))?)
}

/// Step 2. The target `web` is the one that browsers, bundlers and Node all load: a module that is handed its wasm.
fn bind(wasm: &[u8], out: &Path) -> Result<()> {
    Bindgen::new()
        .input_bytes(NAME, wasm.to_vec())
        .web(true)?
        .typescript(true)
        // The page and bundlers find the wasm beside the code.
        .omit_default_module_path(false)
        .remove_name_section(true)
        .remove_producers_section(true)
        .generate(out)
        .context("wasm-bindgen failed")
}

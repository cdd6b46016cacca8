//! The guest component: compile, initialise, componentise.
//!
//! 1. cargo builds `crates/guest` for wasm32-wasip1.
//! 2. Wizer runs its initialisation and keeps the memory, so that every instance starts with QuickJS and the
//!    hooks ready.
//! 3. wit-component makes it a component, with an adapter of constants in place of WASI.
//!
//! Each step is reproducible: the same sources and toolchain give the same bytes in any folder.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context as _, Result, anyhow, bail, ensure};
use wasmtime::{Caller, Engine, Extern, Linker, Module, Store};
use wit_component::{ComponentEncoder, StringEncoding, embed_component_metadata};

const COMPONENT: &str = "crates/engine/component/workflow.wasm";
const ADAPTER: &str = include_str!("adapter.wat");

/// Room for QuickJS's recursion: 5,000 frames of a script. The default of 1 MiB gives 600.
const STACK_BYTES: u32 = 8 << 20;

/// Builds the component and writes it, or compares it with the committed one.
pub(crate) fn run(check: bool) -> Result<()> {
    let root = workspace();
    let core = compile(&root)?;
    let component = componentize(&initialize(&core)?)?;
    let path = root.join(COMPONENT);
    if check {
        let committed = fs::read(&path).with_context(|| format!("failed to read {COMPONENT}"))?;
        if committed != component {
            let rebuilt = root.join("target/workflow.rebuilt.wasm");
            fs::write(&rebuilt, &component)?;
            bail!(
                "{COMPONENT} is not what the sources give ({} bytes committed, {} built; see {}). Run \
                 `cargo xtask guest` with the pinned toolchain (tools/install-guest-toolchain) and commit it",
                committed.len(),
                component.len(),
                rebuilt.display()
            );
        }
        report(&format!("{COMPONENT} is up to date"));
    } else {
        fs::create_dir_all(path.parent().context("the component has a folder")?)?;
        fs::write(&path, &component)?;
        report(&format!("wrote {COMPONENT}, {} bytes", component.len()));
    }
    Ok(())
}

#[expect(clippy::print_stdout, reason = "a build tool talks to its user")]
fn report(line: &str) {
    println!("{line}");
}

pub(crate) fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .ancestors()
        .nth(2)
        .expect("the crate is two levels deep")
        .to_path_buf()
}

/// Step 1: the core module, by Debian's Rust for WebAssembly, or by rustup's where that is not installed.
fn compile(root: &Path) -> Result<Vec<u8>> {
    let target = root.join("target/guest");
    let cargo_home = env::var("CARGO_HOME")
        .map(PathBuf::from)
        .or_else(|_| env::var("HOME").map(|home| Path::new(&home).join(".cargo")))?;
    let mut flags = vec![
        format!("-Clink-arg=-zstack-size={STACK_BYTES}"),
        format!("--remap-path-prefix={}=/cargo", cargo_home.display()),
        format!("--remap-path-prefix={}=/fanfold", root.display()),
    ];
    let debian = Path::new("/usr/bin/rustc");
    let has_debian = Path::new("/usr/lib/rustlib/src/rust/library/Cargo.lock").exists();
    let mut cargo = if has_debian {
        let sdk = debian_wasi_sdk(&target)?;
        flags.extend(["-Clink-self-contained=no".into(), "-L/usr/lib/wasm32-wasi".into()]);
        let mut cargo = Command::new("/usr/bin/cargo");
        cargo
            .env("RUSTC", debian)
            .env("RUSTC_BOOTSTRAP", "1")
            .env("WASI_SDK", sdk)
            .env("LIBCLANG_PATH", "/usr/lib/llvm-22/lib")
            .env("CARGO_TARGET_WASM32_WASIP1_LINKER", "wasm-ld-22")
            .args(["build", "-Zbuild-std=std,panic_abort"]);
        cargo
    } else {
        ensure!(
            env::var_os("WASI_SDK").is_some(),
            "no toolchain for the guest: run tools/install-guest-toolchain (Debian), or install the target \
             wasm32-wasip1 and set WASI_SDK to a wasi-sdk"
        );
        let mut cargo = Command::new("cargo");
        cargo.arg("build");
        cargo
    };
    // What the calling cargo and its user set for the host must not reach the guest.
    for name in ["RUSTFLAGS", "RUSTUP_TOOLCHAIN", "RUSTC_WRAPPER", "CARGO_BUILD_TARGET", "CARGO_TARGET_DIR"] {
        cargo.env_remove(name);
    }
    let status = cargo
        .current_dir(root.join("crates/guest"))
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"))
        .args(["--locked", "--release", "--target", "wasm32-wasip1", "--target-dir"])
        .arg(&target)
        .status()
        .context("failed to run cargo for the guest")?;
    ensure!(status.success(), "the guest does not compile");
    Ok(fs::read(target.join("wasm32-wasip1/release/fanfold_guest.wasm"))?)
}

/// A folder shaped like a wasi-sdk, made of links to Debian's tools, for rquickjs-sys.
#[cfg(unix)]
fn debian_wasi_sdk(target: &Path) -> Result<PathBuf> {
    let sdk = target.join("wasi-sdk");
    for (link, to) in [
        ("bin/clang", "/usr/bin/clang-22"),
        ("bin/ar", "/usr/bin/llvm-ar-22"),
        ("share/wasi-sysroot/include", "/usr/include/wasm32-wasi"),
    ] {
        ensure!(Path::new(to).exists(), "{to} is missing: run tools/install-guest-toolchain");
        let link = sdk.join(link);
        fs::create_dir_all(link.parent().context("a link has a folder")?)?;
        let _ = fs::remove_file(&link);
        std::os::unix::fs::symlink(to, &link)?;
    }
    Ok(sdk)
}

#[cfg(not(unix))]
fn debian_wasi_sdk(_target: &Path) -> Result<PathBuf> {
    bail!("Debian's toolchain is found on Debian alone")
}

/// Step 2: runs `wizer-initialize` and makes what it left the module's initial memory.
fn initialize(core: &[u8]) -> Result<Vec<u8>> {
    let engine = Engine::default();
    let mut store = Store::new(&engine, ());
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    let initialized = runtime.block_on(wasmtime_wizer::Wizer::new().run(
        &mut store,
        core,
        async |store, module: &Module| {
            let mut linker = Linker::new(module.engine());
            wasi_constants(&mut linker)?;
            linker.define_unknown_imports_as_traps(module)?;
            linker.instantiate_async(store, module).await
        },
    ));
    initialized.map_err(|error| anyhow!("failed to initialise the guest: {error:?}"))
}

/// Answers, while the guest initialises, what the adapter answers later.
fn wasi_constants(linker: &mut Linker<()>) -> wasmtime::Result<()> {
    const WASI: &str = "wasi_snapshot_preview1";
    linker.func_wrap(
        WASI,
        "random_get",
        |mut caller: Caller<'_, ()>, start: u32, length: u32| -> wasmtime::Result<i32> {
            memory(&mut caller, start, length)?.fill(7);
            Ok(0)
        },
    )?;
    linker.func_wrap(WASI, "environ_get", |_: u32, _: u32| 0)?;
    linker.func_wrap(
        WASI,
        "environ_sizes_get",
        |mut caller: Caller<'_, ()>, count: u32, bytes: u32| -> wasmtime::Result<i32> {
            memory(&mut caller, count, 4)?.fill(0);
            memory(&mut caller, bytes, 4)?.fill(0);
            Ok(0)
        },
    )?;
    Ok(())
}

fn memory<'a>(caller: &'a mut Caller<'_, ()>, start: u32, length: u32) -> wasmtime::Result<&'a mut [u8]> {
    let memory = caller.get_export("memory").and_then(Extern::into_memory);
    let memory = memory.ok_or_else(|| wasmtime::Error::msg("the guest exports no memory"))?;
    let range = start as usize..start as usize + length as usize;
    memory.data_mut(caller).get_mut(range).ok_or_else(|| wasmtime::Error::msg("the guest gave a bad address"))
}

/// Step 3: the component. It imports the workflow world and nothing else.
fn componentize(core: &[u8]) -> Result<Vec<u8>> {
    let mut adapter = wat::parse_str(ADAPTER)?;
    let mut empty = wit_parser::Resolve::default();
    let package = empty.push_str("adapter.wit", "package fanfold:adapter; world adapter {}")?;
    let world = empty.select_world(&[package], None)?;
    embed_component_metadata(&mut adapter, &empty, world, StringEncoding::UTF8, false)?;
    ComponentEncoder::default()
        .module(core)?
        .adapter("wasi_snapshot_preview1", &adapter)?
        .validate(true)
        .encode()
        .context("failed to make a component of the guest")
}

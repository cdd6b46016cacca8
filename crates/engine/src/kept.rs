//! The compiled sandbox, kept in a folder between processes.
//!
//! A file is mapped and not read: what a process never uses of it costs nothing, and processes share the rest.

use std::fs;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;
use wasmtime::Engine;
use wasmtime::component::Component;

/// Loads what an earlier process compiled, or compiles it and keeps it if it can be written there.
///
/// # Errors
/// When Wasmtime does not compile it.
pub(crate) fn component(engine: &Engine, wasm: &[u8], folder: &Path) -> wasmtime::Result<Component> {
    let file = file(engine, wasm, folder);
    #[expect(unsafe_code, reason = "the sandbox is machine code, and comes from a file")]
    // SAFETY: whoever sets the folder vouches for what is in it. A file gets its name when all of it is written, is
    // never changed, and says of which Wasmtime and settings it is, which is checked.
    let kept = unsafe { Component::deserialize_file(engine, &file) };
    if let Ok(component) = kept {
        return Ok(component);
    }
    let component = Component::new(engine, wasm)?;
    // Without it the next start is as slow as this one was.
    let _ = component.serialize().map(|code| write(&file, &code));
    Ok(component)
}

/// A name for every sandbox and settings.
fn file(engine: &Engine, wasm: &[u8], folder: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    wasm.hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    folder.join(format!("sandbox-{:016x}.cwasm", hasher.finish()))
}

/// Writes a file that others see whole or not at all.
fn write(file: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = file.with_extension(format!("{}.tmp", Uuid::new_v4()));
    let written = (|| {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        let mut to = fs::File::create_new(&unfinished)?;
        to.write_all(bytes)?;
        to.sync_all()?;
        fs::rename(&unfinished, file)
    })();
    if written.is_err() {
        let _ = fs::remove_file(&unfinished);
    }
    written
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    /// A component without anything, and one with a section of no meaning.
    const WASM: &[u8] = b"\0asm\x0d\0\x01\0";
    const OTHER: &[u8] = b"\0asm\x0d\0\x01\0\0\x02\x01a";

    fn folder(name: &str) -> PathBuf {
        std::env::temp_dir().join(format!("fanfold-kept-{name}-{}", Uuid::new_v4()))
    }

    #[test]
    fn what_was_compiled_is_found_again() {
        let (engine, folder) = (Engine::default(), folder("again"));
        let file = file(&engine, WASM, &folder);
        component(&engine, WASM, &folder).unwrap();
        let first = fs::metadata(&file).unwrap().modified().unwrap();
        component(&engine, WASM, &folder).unwrap();
        assert_eq!(fs::metadata(&file).unwrap().modified().unwrap(), first, "it is not written again");
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "and nothing else is");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn engines_that_start_together_do_not_disturb_each_other() {
        let folder = folder("together");
        thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(|| {
                    for _ in 0..20 {
                        component(&Engine::default(), WASM, &folder).unwrap();
                    }
                });
            }
        });
        assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "nothing unfinished is left");
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn what_is_broken_is_compiled_and_kept_anew() {
        let (engine, folder) = (Engine::default(), folder("broken"));
        let file = file(&engine, WASM, &folder);
        fs::create_dir_all(&folder).unwrap();
        fs::write(&file, "half a file").unwrap();
        component(&engine, WASM, &folder).unwrap();
        assert!(fs::metadata(&file).unwrap().len() > 1000);
        fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn other_sandboxes_and_other_settings_have_other_files() {
        let fueled = Engine::new(wasmtime::Config::new().consume_fuel(true)).unwrap();
        let engine = Engine::default();
        let folder = Path::new("x");
        assert_ne!(file(&engine, WASM, folder), file(&fueled, WASM, folder));
        assert_ne!(file(&engine, WASM, folder), file(&engine, OTHER, folder));
        assert_eq!(file(&engine, WASM, folder), file(&Engine::default(), WASM, folder));
    }

    #[test]
    fn a_folder_that_cannot_be_written_to_keeps_nothing() {
        let folder = folder("file");
        fs::write(&folder, "not a folder").unwrap();
        assert!(component(&Engine::default(), WASM, &folder).is_ok());
        fs::remove_file(folder).unwrap();
    }
}

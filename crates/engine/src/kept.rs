//! The component cache: the compiled sandbox, kept in a folder between processes.
//!
//! A file is mapped: processes share it. It is machine code, so it is mapped only if it is of this user or of root,
//! writable for its owner alone, and as it was written: a checksum of everything before it stands at its end.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

use uuid::Uuid;
use wasmtime::Engine;
use wasmtime::component::Component;

/// The form of the files. Another one needs other names.
const FORMAT: &str = "code, checksum";

/// Bytes of the checksum at a file's end.
const CHECKSUM_BYTES: usize = size_of::<u64>();

/// Loads what an earlier process compiled, or compiles it and keeps it if it can be written there. Also says why a file
/// that was there was not used.
///
/// # Errors
/// When Wasmtime does not compile it.
pub(crate) fn component(
    engine: &Engine,
    wasm: &[u8],
    folder: &Path,
) -> wasmtime::Result<(Component, Option<String>)> {
    let file = file(engine, wasm, folder);
    let unusable = match load(engine, &file) {
        Ok(component) => return Ok((component, None)),
        Err(unusable) => unusable,
    };
    let component = Component::new(engine, wasm)?;
    // Without it the next start is as slow as this one was.
    let written = component.serialize().and_then(|code| Ok(write(&file, &code)?));
    let warning = unusable.map(|reason| {
        let became = match written {
            Ok(()) => "it was made anew".to_owned(),
            Err(error) => format!("it could not be made anew: {error:#}; remove it"),
        };
        format!("the compiled sandbox in the cache, {}, {reason}; {became}", file.display())
    });
    Ok((component, warning))
}

/// The component in a file. The error is the reason why a file that is there cannot be used.
fn load(engine: &Engine, path: &Path) -> Result<Component, Option<String>> {
    let mut file = File::open(path).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => None,
        _ => Some(format!("cannot be read: {error}")),
    })?;
    check(&mut file)?;
    #[expect(unsafe_code, reason = "the sandbox is machine code, and comes from a file")]
    // SAFETY: the file is of this user or of root, others cannot write to it, and all of it is as an engine of this
    // Wasmtime and these settings wrote it. A file gets its name when all of it is written, and is never changed.
    let component = unsafe { Component::deserialize_file(engine, path) };
    component.map_err(|error| Some(format!("cannot be loaded: {error:#}")))
}

/// Checks whose a file is, who may write to it, and that it is as it was written.
fn check(file: &mut File) -> Result<(), String> {
    let unreadable = |error: io::Error| format!("cannot be read: {error}");
    let metadata = file.metadata().map_err(unreadable)?;
    if !metadata.is_file() {
        return Err("is not a file".into());
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::MetadataExt as _;
        let owner = metadata.uid();
        if owner != 0 && owner != rustix::process::geteuid().as_raw() {
            return Err(format!("belongs to another user (uid {owner})"));
        }
        if metadata.mode() & 0o022 != 0 {
            return Err(format!("can be written by other users (mode {:o})", metadata.mode() & 0o7777));
        }
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(unreadable)?;
    match bytes.split_last_chunk::<CHECKSUM_BYTES>() {
        Some((code, sum)) if checksum(code) == *sum => Ok(()),
        _ => Err("is damaged".into()),
    }
}

fn checksum(code: &[u8]) -> [u8; CHECKSUM_BYTES] {
    let mut hasher = DefaultHasher::new();
    hasher.write(code);
    hasher.finish().to_le_bytes()
}

/// A name for every sandbox and settings.
fn file(engine: &Engine, wasm: &[u8], folder: &Path) -> PathBuf {
    let mut hasher = DefaultHasher::new();
    FORMAT.hash(&mut hasher);
    wasm.hash(&mut hasher);
    engine.precompile_compatibility_hash().hash(&mut hasher);
    folder.join(format!("sandbox-{:016x}.cwasm", hasher.finish()))
}

/// Writes a file that others see whole or not at all, and that its owner alone can write to.
fn write(file: &Path, code: &[u8]) -> io::Result<()> {
    let unfinished = file.with_extension(format!("{}.tmp", Uuid::new_v4()));
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let written = (|| {
        fs::create_dir_all(file.parent().unwrap_or(Path::new(".")))?;
        let mut to = options.open(&unfinished)?;
        to.write_all(code)?;
        to.write_all(&checksum(code))?;
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
        assert_eq!(component(&engine, WASM, &folder).unwrap().1, None);
        let good = fs::read(&file).unwrap();
        let longer = [&good[..], b"more"].concat();
        let mut changed: Vec<Vec<u8>> = vec![Vec::new(), b"half a file".into(), good[1..].into(), longer];
        changed.extend((0..good.len()).step_by(good.len() / 16).chain([good.len() - 1]).map(|at| {
            let mut bytes = good.clone();
            bytes[at] ^= 1;
            bytes
        }));
        for bytes in changed {
            fs::write(&file, &bytes).unwrap();
            let (_, warning) = component(&engine, WASM, &folder).unwrap();
            let warning = warning.unwrap();
            assert!(warning.contains("is damaged; it was made anew"), "{warning}");
            assert!(warning.contains(&file.display().to_string()), "{warning}");
            assert_eq!(fs::read(&file).unwrap().len(), good.len());
            assert_eq!(component(&engine, WASM, &folder).unwrap().1, None, "one warning is enough");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn a_file_that_others_may_have_written_is_made_anew() {
        use std::os::unix::fs::PermissionsExt as _;

        let (engine, folder) = (Engine::default(), folder("others"));
        let file = file(&engine, WASM, &folder);
        component(&engine, WASM, &folder).unwrap();
        let mode = || fs::metadata(&file).unwrap().permissions().mode() & 0o7777;
        assert_eq!(mode(), 0o600);
        for others in [0o620, 0o602, 0o666] {
            fs::set_permissions(&file, fs::Permissions::from_mode(others)).unwrap();
            let warning = component(&engine, WASM, &folder).unwrap().1.unwrap();
            assert!(
                warning.contains(&format!("can be written by other users (mode {others:o})")),
                "{warning}"
            );
            assert_eq!(mode(), 0o600);
        }
        fs::set_permissions(&file, fs::Permissions::from_mode(0o444)).unwrap();
        assert_eq!(component(&engine, WASM, &folder).unwrap().1, None, "it may be readable for all");
        // Only root can give a file away.
        if std::os::unix::fs::chown(&file, Some(12_345), None).is_ok() {
            let warning = component(&engine, WASM, &folder).unwrap().1.unwrap();
            assert!(warning.contains("belongs to another user (uid 12345)"), "{warning}");
        }
        fs::remove_dir_all(folder).unwrap();
    }

    #[cfg(unix)]
    #[test]
    fn what_stands_in_the_way_of_a_file_is_told() {
        let (engine, folder) = (Engine::default(), folder("way"));
        let file = file(&engine, WASM, &folder);
        fs::create_dir_all(&file).unwrap();
        let warning = component(&engine, WASM, &folder).unwrap().1.unwrap();
        assert!(warning.contains("is not a file; it could not be made anew"), "{warning}");
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

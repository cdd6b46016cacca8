//! The compiled sandbox in the cache folder.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Output;

use crate::fanfold::{fanfold, stderr, stdout};

const SCRIPT: &str = "export const meta = { name: 'a', description: 'a' }; return await agent('x')";

fn start(cache: &Path) -> Output {
    let script = cache.join("s.js");
    fs::write(&script, SCRIPT).unwrap();
    fanfold().env("XDG_CACHE_HOME", cache).arg("run").arg(script).output().unwrap()
}

/// The largest file of the cache.
fn sandbox(cache: &Path) -> PathBuf {
    let files = fs::read_dir(cache.join("fanfold")).unwrap().map(|entry| entry.unwrap().path());
    files.max_by_key(|file| fs::metadata(file).unwrap().len()).unwrap()
}

#[test]
fn a_damaged_sandbox_is_told_once_and_made_anew() {
    let folder = tempfile::tempdir().unwrap();
    let cache = folder.path();
    assert!(start(cache).status.success());
    let file = sandbox(cache);
    let good = fs::read(&file).unwrap();
    // In its middle is machine code; in its last part is data.
    for at in [good.len() / 3, good.len() - 20_000] {
        let mut bytes = good.clone();
        for byte in &mut bytes[at..at + 4096] {
            *byte = byte.wrapping_mul(31).wrapping_add(7);
        }
        fs::write(&file, bytes).unwrap();
        for told in [true, false] {
            let output = start(cache);
            assert_eq!(
                (output.status.code(), stdout(&output)),
                (Some(0), "\"echo:x\"\n"),
                "{}",
                stderr(&output)
            );
            let said = stderr(&output).matches("is damaged; it was made anew").count();
            assert_eq!(said, usize::from(told), "{}", stderr(&output));
        }
    }
}

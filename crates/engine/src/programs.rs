//! Compiled programs, kept by their text: a script that is run again is not parsed again.
//!
//! Bytecode is trusted by the guest. What is in here was compiled by this engine and never leaves the process, and a
//! program is found by all of its text, not by a digest of it that another text might share.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use lru::LruCache;

/// Most programs, and most bytes of text and bytecode together; the least recently used go first.
const MAX_PROGRAMS: NonZeroUsize = NonZeroUsize::new(256).expect("256 is not 0");
const MAX_BYTES: usize = 16 << 20;

pub(crate) struct Programs(Mutex<Kept>);

struct Kept {
    programs: LruCache<Arc<str>, Arc<[u8]>>,
    bytes: usize,
}

impl Default for Programs {
    fn default() -> Self {
        Self(Mutex::new(Kept { programs: LruCache::new(MAX_PROGRAMS), bytes: 0 }))
    }
}

impl Programs {
    /// The program of a text that was compiled before.
    pub(crate) fn get(&self, text: &str) -> Option<Arc<[u8]>> {
        self.kept().programs.get(text).cloned()
    }

    /// Keeps what a text was compiled to.
    pub(crate) fn put(&self, text: &str, program: Arc<[u8]>) {
        let size = text.len() + program.len();
        if size > MAX_BYTES / 4 {
            // It would drive out too many others.
            return;
        }
        let mut kept = self.kept();
        kept.bytes += size;
        if let Some((text, program)) = kept.programs.push(text.into(), program) {
            kept.bytes -= text.len() + program.len();
        }
        while kept.bytes > MAX_BYTES {
            let Some((text, program)) = kept.programs.pop_lru() else { return };
            kept.bytes -= text.len() + program.len();
        }
    }

    /// Nothing that holds the lock can panic half-way.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(programs: &Programs) -> (usize, usize) {
        let kept = programs.kept();
        (kept.bytes, kept.programs.iter().map(|(text, program)| text.len() + program.len()).sum())
    }

    #[test]
    fn what_was_used_least_recently_is_forgotten_first() {
        let programs = Programs::default();
        for i in 0..=MAX_PROGRAMS.get() {
            programs.put(&format!("script {i}"), vec![i as u8].into());
            // The first one stays in use.
            assert!(programs.get("script 0").is_some());
        }
        assert!(programs.get("script 1").is_none());
        assert_eq!(programs.get("script 256").as_deref(), Some(&[0][..]));
        let (counted, kept) = bytes(&programs);
        assert_eq!(counted, kept);
    }

    #[test]
    fn all_programs_together_are_bounded_in_size() {
        let programs = Programs::default();
        let large: Arc<[u8]> = vec![0; MAX_BYTES / 5].into();
        for i in 0..20 {
            programs.put(&format!("script {i}"), large.clone());
            // Once more: counted once.
            programs.put(&format!("script {i}"), large.clone());
        }
        let (counted, kept) = bytes(&programs);
        assert_eq!(counted, kept);
        assert!(kept <= MAX_BYTES && kept > MAX_BYTES / 2, "{kept}");
        programs.put("too large", vec![0; MAX_BYTES / 2].into());
        assert!(programs.get("too large").is_none());
    }
}

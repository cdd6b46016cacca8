//! The time that moves with the timers alone, and seeded randomness: replaying a run sees the same values.

use std::cell::Cell;

thread_local! {
    static NOW_MS: Cell<u64> = const { Cell::new(0) };
    static RANDOM: Cell<u64> = const { Cell::new(0) };
}

/// Sets what `Date` and `Math.random` start from.
pub(crate) fn start(now_ms: u64, seed: u64) {
    NOW_MS.set(now_ms);
    RANDOM.set(seed);
}

/// A timer has fired: it is later now.
pub(crate) fn advance(now_ms: u64) {
    NOW_MS.set(NOW_MS.get().max(now_ms));
}

/// The next number of `Math.random`: the upper 53 bits of SplitMix64 (Steele, Lea and Flood, 2014).
pub(crate) fn random() -> f64 {
    let state = RANDOM.get().wrapping_add(0x9e37_79b9_7f4a_7c15);
    RANDOM.set(state);
    let mut z = state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^= z >> 31;
    (z >> 11) as f64 / (1u64 << 53) as f64
}

#[repr(C)]
struct Timeval {
    seconds: i64,
    microseconds: i64,
}

/// libc's `gettimeofday`, which is all that QuickJS knows of time. Being defined here it replaces the one in
/// wasi-libc, so no path leads from `Date` to a real clock.
///
/// # Safety
/// `now` must point to a `timeval`, as its only caller, QuickJS, sees to.
#[unsafe(no_mangle)]
unsafe extern "C" fn gettimeofday(now: *mut Timeval, _zone: *mut core::ffi::c_void) -> i32 {
    let ms = NOW_MS.get();
    let value = Timeval { seconds: (ms / 1000) as i64, microseconds: (ms % 1000 * 1000) as i64 };
    // SAFETY: the caller gives a valid pointer; wasi-libc's timeval is two 64-bit numbers (the second is a
    // `suseconds_t`, which is `long long` there).
    unsafe { now.write(value) };
    0
}

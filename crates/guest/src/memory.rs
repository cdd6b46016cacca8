//! Memory for a sandbox that lives for one run: pieces of a few sizes, each size with a list of what is free.
//!
//! QuickJS makes and frees tens of small pieces for each `await`, and wasi-libc's allocator takes longer for a piece
//! than QuickJS to fill it. Here either takes a few instructions. What is freed is used again for pieces of its size
//! alone; what is larger than [`LARGEST`] is wasi-libc's.
//!
//! New pieces come from one region, one after the other. So a run writes to few pages of memory, and a run that waits
//! keeps few: pages that it only reads are shared with all others.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::UnsafeCell;
use std::ptr;

/// Pieces have sizes that are multiples of this, and this alignment.
const STEP: usize = 16;
/// The largest piece.
const LARGEST: usize = 512;
/// What is taken from wasi-libc at a time.
const REGION: usize = 64 << 10;
/// The region that a run begins with. It is there from the start: most runs never ask the host for memory.
const FIRST_REGION: usize = 256 << 10;
/// Memory is shared in units of this.
const PAGE: usize = 4096;

pub(crate) struct Memory(UnsafeCell<State>);

struct State {
    /// Free pieces by their size, in steps.
    free: [*mut Free; LARGEST / STEP + 1],
    /// The region: where its unused part begins, and how long that is.
    unused: *mut u8,
    left: usize,
}

struct Free {
    next: *mut Free,
}

// SAFETY: the sandbox has one thread.
unsafe impl Sync for Memory {}

impl Memory {
    pub(crate) const fn new() -> Self {
        let free = [ptr::null_mut(); LARGEST / STEP + 1];
        Self(UnsafeCell::new(State { free, unused: ptr::null_mut(), left: 0 }))
    }

    /// Begins a region that no earlier piece is in, at the start of a page, and forgets what is free elsewhere.
    pub(crate) fn begin_anew(&self) {
        let Ok(layout) = Layout::from_size_align(FIRST_REGION, PAGE) else { return };
        // SAFETY: the layout has a size. Nobody else refers to the state: there is one thread, and nothing below calls
        // this allocator.
        unsafe {
            let region = System.alloc(layout);
            if !region.is_null() {
                let free = [ptr::null_mut(); LARGEST / STEP + 1];
                *self.0.get() = State { free, unused: region, left: FIRST_REGION };
            }
        }
    }
}

/// The size of a piece in steps; none for what is wasi-libc's.
fn steps(size: usize, align: usize) -> Option<usize> {
    (size <= LARGEST && align <= STEP).then(|| size.div_ceil(STEP))
}

impl State {
    fn take(&mut self, steps: usize) -> *mut u8 {
        let piece = self.free[steps];
        if !piece.is_null() {
            // SAFETY: pieces in the list are free, and were given their link by `give`.
            self.free[steps] = unsafe { (*piece).next };
            return piece.cast();
        }
        let size = steps * STEP;
        if self.left < size {
            let Ok(layout) = Layout::from_size_align(REGION, STEP) else { return ptr::null_mut() };
            // SAFETY: the layout has a size.
            let region = unsafe { System.alloc(layout) };
            if region.is_null() {
                return region;
            }
            (self.unused, self.left) = (region, REGION);
        }
        let piece = self.unused;
        // SAFETY: the region has that much left.
        self.unused = unsafe { piece.add(size) };
        self.left -= size;
        piece
    }

    fn give(&mut self, piece: *mut u8, steps: usize) {
        let piece = piece.cast::<Free>();
        // SAFETY: the piece is at least a step long, aligned to one, and nobody uses it any more.
        unsafe { (*piece).next = self.free[steps] };
        self.free[steps] = piece;
    }
}

// SAFETY: pieces do not overlap, stay where they are until they are given back, and have the size and alignment asked
// for. No two references to the state exist at a time: there is one thread, and `take` and `give` call nothing that
// allocates here.
unsafe impl GlobalAlloc for Memory {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as said above; the system's allocator has the contract of this function.
        unsafe {
            match steps(layout.size(), layout.align()) {
                Some(steps) => (*self.0.get()).take(steps),
                None => System.alloc(layout),
            }
        }
    }

    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        // SAFETY: as in `alloc`.
        unsafe {
            match steps(layout.size(), layout.align()) {
                Some(steps) => (*self.0.get()).give(start, steps),
                None => System.dealloc(start, layout),
            }
        }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as in `alloc`; the piece has the size of the layout.
        unsafe {
            match steps(layout.size(), layout.align()) {
                Some(steps) => {
                    let piece = (*self.0.get()).take(steps);
                    if !piece.is_null() {
                        piece.write_bytes(0, layout.size());
                    }
                    piece
                }
                None => System.alloc_zeroed(layout),
            }
        }
    }

    unsafe fn realloc(&self, start: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as in `alloc`; the old piece is copied as far as both reach, and given back only then.
        unsafe {
            let (old, new) = (steps(layout.size(), layout.align()), steps(size, layout.align()));
            match (old, new) {
                (None, None) => return System.realloc(start, layout, size),
                (Some(old), Some(new)) if old == new => return start,
                _ => {}
            }
            let moved = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !moved.is_null() {
                ptr::copy_nonoverlapping(start, moved, layout.size().min(size));
                self.dealloc(start, layout);
            }
            moved
        }
    }
}

//! Memory as kernels want it: arrays begin on a cache line, and stay with the process between steps.
//!
//! A register of AVX-512 is a cache line long: loads and stores that begin inside a line touch two, and a product of small
//! matrices then takes half as long again. dfdx keeps its numbers in `Vec`, so that the allocator has to see to it.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Once;

/// The system's allocator, with everything that could be an array of numbers on a cache line.
pub struct Lines;

const LINE: usize = 64;
/// Smaller things stay where they fall.
const ALIGN_FROM: usize = 256;

fn aligned(layout: Layout) -> Layout {
    if layout.size() >= ALIGN_FROM && layout.align() < LINE {
        Layout::from_size_align(layout.size(), LINE).unwrap_or(layout)
    } else {
        layout
    }
}

// SAFETY: every call goes to the system's allocator with a layout that asks for at least as much; the layout of a block follows
// from its size alone, so that all calls about one block agree on it, and `realloc` moves blocks between the two kinds.
unsafe impl GlobalAlloc for Lines {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc(aligned(layout)) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promise.
        unsafe { System.alloc_zeroed(aligned(layout)) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise, with the layout the block was made with.
        unsafe { System.dealloc(block, aligned(layout)) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let (old, new) = (aligned(layout), aligned(Layout::from_size_align(size, layout.align()).unwrap_or(layout)));
        // SAFETY: the caller's promise; a block that changes kind is copied, as far as both sizes go.
        unsafe {
            if old.align() == new.align() {
                return System.realloc(block, old, size);
            }
            let moved = System.alloc(new);
            if !moved.is_null() {
                std::ptr::copy_nonoverlapping(block, moved, layout.size().min(size));
                System.dealloc(block, old);
            }
            moved
        }
    }
}

#[global_allocator]
static LINES: Lines = Lines;

/// Buffers up to this size come from the heap; larger ones, weights mostly, still come from the system and return to it.
#[cfg(target_env = "gnu")]
const LARGEST_ON_HEAP: i32 = 32 << 20;
/// Free memory the heap may hold on to.
#[cfg(target_env = "gnu")]
const KEEP_FREE: i32 = 1 << 30;

/// Tells the allocator to keep what a step frees for the next one. A step frees as much as it allocates; given back to the
/// system, every page would have to be cleared and mapped again (a tenth of the time of a small model).
pub fn keep_freed_memory() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        #[cfg(target_env = "gnu")]
        // SAFETY: mallopt takes two numbers and locks the allocator itself.
        unsafe {
            libc::mallopt(libc::M_MMAP_THRESHOLD, LARGEST_ON_HEAP);
            libc::mallopt(libc::M_TRIM_THRESHOLD, KEEP_FREE);
        }
    });
}

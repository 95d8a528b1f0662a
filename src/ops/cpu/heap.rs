//! Tells the allocator to keep what a step frees for the next one. A step frees as much as it allocates; given back to the
//! system, every page would have to be cleared and mapped again (a tenth of the time of a small model).
#![allow(unsafe_code)]

use std::sync::Once;

/// Buffers up to this size come from the heap; larger ones, weights mostly, still come from the system and return to it.
#[cfg(target_env = "gnu")]
const LARGEST_ON_HEAP: i32 = 32 << 20;
/// Free memory the heap may hold on to.
#[cfg(target_env = "gnu")]
const KEEP_FREE: i32 = 1 << 30;

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

//! Buffers for a moment: each thread keeps the ones it has used and lends them again, so that a step allocates and clears nothing.
//! They start on a cache line.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Vec<Line>>> = const { RefCell::new(Vec::new()) };
}

/// A cache line of numbers.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([f32; LINE]);

const LINE: usize = 16;

/// Numbers left over from an earlier use; whoever takes a buffer writes before reading.
pub struct Buffer {
    lines: Vec<Line>,
    len: usize,
}

/// A buffer of this length with arbitrary content. It goes back to the thread that drops it: take and drop on one thread, and lend
/// to others in between, or their lists grow.
pub fn take(len: usize) -> Buffer {
    let wanted = len.div_ceil(LINE);
    let lines = FREE.with_borrow_mut(|free| {
        // The smallest that is long enough, or else the longest, which then grows.
        let fit = (0..free.len())
            .min_by_key(|&i| if free[i].len() >= wanted { (0, free[i].len()) } else { (1, usize::MAX - free[i].len()) });
        fit.map(|i| free.swap_remove(i))
    });
    let mut lines = lines.unwrap_or_default();
    if lines.len() < wanted {
        // A new vector rather than a longer one: nobody needs the old numbers copied.
        lines = vec![Line([0.0; LINE]); wanted];
    }
    Buffer { lines, len }
}

/// A buffer of zeros.
pub fn zeros(len: usize) -> Buffer {
    let mut buffer = take(len);
    buffer.fill(0.0);
    buffer
}

impl Deref for Buffer {
    type Target = [f32];
    fn deref(&self) -> &[f32] {
        // SAFETY: lines are nothing but numbers, and there are enough of them for `len`.
        unsafe { std::slice::from_raw_parts(self.lines.as_ptr().cast(), self.len) }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        // SAFETY: as above.
        unsafe { std::slice::from_raw_parts_mut(self.lines.as_mut_ptr().cast(), self.len) }
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let lines = std::mem::take(&mut self.lines);
        // At the end of a thread its list may be gone already; then the memory simply goes back.
        let _ = FREE.try_with(|free| free.borrow_mut().push(lines));
    }
}

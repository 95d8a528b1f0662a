//! Buffers for a moment: each thread keeps the ones it has used and lends them again, so that a step allocates and clears nothing.

use std::cell::RefCell;
use std::ops::{Deref, DerefMut};

thread_local! {
    static FREE: RefCell<Vec<Vec<f32>>> = const { RefCell::new(Vec::new()) };
}

/// Numbers left over from an earlier use; whoever takes a buffer writes before reading.
pub struct Buffer {
    numbers: Vec<f32>,
    len: usize,
}

/// A buffer of this length with arbitrary content.
pub fn take(len: usize) -> Buffer {
    let numbers = FREE.with_borrow_mut(|free| {
        // The smallest that is long enough, or else the longest, which then grows.
        let fit = (0..free.len())
            .min_by_key(|&i| if free[i].len() >= len { (0, free[i].len()) } else { (1, usize::MAX - free[i].len()) });
        fit.map(|i| free.swap_remove(i))
    });
    let mut numbers = numbers.unwrap_or_default();
    if numbers.len() < len {
        // A new vector rather than a longer one: nobody needs the old numbers copied.
        numbers = vec![0.0; len];
    }
    Buffer { numbers, len }
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
        &self.numbers[..self.len]
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [f32] {
        &mut self.numbers[..self.len]
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        let numbers = std::mem::take(&mut self.numbers);
        // At the end of a thread its list may be gone already; then the memory simply goes back.
        let _ = FREE.try_with(|free| free.borrow_mut().push(numbers));
    }
}

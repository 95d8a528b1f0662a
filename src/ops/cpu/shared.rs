//! One output that several tasks write, each to parts of its own.
#![allow(unsafe_code)]

use std::marker::PhantomData;
use std::ops::Range;

/// A slice borrowed for writing, of which tasks on several threads take disjoint parts.
#[derive(Clone, Copy)]
pub struct Shared<'a> {
    start: *mut f32,
    len: usize,
    borrow: PhantomData<&'a mut [f32]>,
}

// SAFETY: `part` is the only access, and its callers promise disjoint parts.
unsafe impl Send for Shared<'_> {}
// SAFETY: as above.
unsafe impl Sync for Shared<'_> {}

impl<'a> Shared<'a> {
    pub fn new(slice: &'a mut [f32]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), borrow: PhantomData }
    }

    /// A range of the slice, to be shared further.
    pub fn rest(&self, range: Range<usize>) -> Shared<'a> {
        assert!(range.start <= range.end && range.end <= self.len, "a part lies inside the output");
        // SAFETY: the offset is inside the slice, checked above.
        Shared { start: unsafe { self.start.add(range.start) }, len: range.end - range.start, borrow: PhantomData }
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Where the slice starts; writing through it is `unsafe`, and to parts that nobody else holds.
    pub fn pointer(&self) -> *mut f32 {
        self.start
    }

    /// # Safety
    /// No other part alive at the same time overlaps this one.
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn part(&self, range: Range<usize>) -> &'a mut [f32] {
        assert!(range.start <= range.end && range.end <= self.len, "a part lies inside the output");
        // SAFETY: inside the borrowed slice, checked above, and disjoint from all other parts by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.end - range.start) }
    }
}

//! A left matrix that many narrow right ones are multiplied with: keys and values of a head.
#![allow(unsafe_code)]

use super::super::kernel::{Ahead, most_rows};
use super::super::scratch;
use super::super::transpose::transpose;
use super::View;
use super::packed::{Packed, panels};
use super::tiles::{Job, Pointer, heights};

/// A left matrix for many products with narrow right ones: rows in groups of [`TALL_GROUP`], in each the rows side by side.
pub struct Tall {
    numbers: scratch::Buffer,
    rows: usize,
    inner: usize,
}

/// Whole tiles of every height, and whole squares to transpose.
const TALL_GROUP: usize = 48;

impl Tall {
    pub fn new(a: View) -> Self {
        a.assert_inside();
        assert_eq!(a.col_stride, 1, "matmul: rows are contiguous");
        let (rows, inner) = (a.rows, a.cols);
        let mut numbers = scratch::take(rows * inner);
        for first in (0..rows).step_by(TALL_GROUP) {
            let size = TALL_GROUP.min(rows - first);
            let (from, to) = (&a.data[first * a.row_stride..], &mut numbers[first * inner..][..size * inner]);
            // SAFETY: `size` rows of `inner` numbers, inside the view, to as many numbers.
            unsafe { transpose(from.as_ptr(), a.row_stride, size, inner, to.as_mut_ptr(), size) };
        }
        Self { numbers, rows, inner }
    }
}

/// out = factor * a b for rows first..end of `a`, on this thread; `out` starts with the first row of all.
pub fn multiply_tall(out: &mut [f32], out_stride: usize, a: &Tall, (first, end): (usize, usize), b: &Packed, factor: f32) {
    assert!(first < end && end <= a.rows && a.inner == b.inner, "matmul: rows and inner size are those of the left matrix");
    assert!(b.cols <= out_stride && (end - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    let nothing = Pointer(std::ptr::null_mut());
    let job = Job { out: Pointer(out.as_mut_ptr()), out_stride, start: nothing, b, factor };
    for (column, vectors) in panels(b.level, b.cols) {
        let most = most_rows(b.level, vectors);
        let mut row = first;
        while row < end {
            let group = row / TALL_GROUP * TALL_GROUP;
            let size = TALL_GROUP.min(a.rows - group);
            let count = (group + size).min(end) - row;
            let at = &a.numbers[group * a.inner + row - group..];
            for (from, height, tiles) in heights(count, most) {
                // SAFETY: rows of the output and of the copy, checked above.
                unsafe {
                    let left = (at[from..].as_ptr(), 1, size);
                    job.tile((row + from, height, tiles), (0, a.inner), (column, vectors), left, Ahead::Nothing);
                }
            }
            row += count;
        }
    }
}

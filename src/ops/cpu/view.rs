//! Slices of dfdx's CPU tensors without a copy. dfdx shows single elements only; the slice starts at the first one.
#![allow(unsafe_code)]

use super::super::Matrix;
use dfdx::prelude::{Cpu, HasShape};

/// All elements of a contiguous matrix, row by row.
pub fn as_slice<T>(t: &Matrix<Cpu, T>) -> &[f32] {
    let (rows, cols) = *t.shape();
    if rows * cols == 0 {
        return &[];
    }
    let first: *const f32 = &t[[0, 0]];
    assert_contiguous(first, &t[[0, cols - 1]], &t[[rows - 1, 0]], rows, cols);
    // SAFETY: the storage is one Vec<f32> which `t` keeps alive and nobody writes while `t` is borrowed. assert_contiguous has
    // shown that element (i, j) lies at i * cols + j, and indexing (rows - 1, cols - 1) in bounds of the Vec follows from
    // dfdx's own check of the indices above.
    unsafe { std::slice::from_raw_parts(first, rows * cols) }
}

/// As [`as_slice`], for writing. Copies first if the storage is shared, as dfdx does for any write.
pub fn as_mut_slice(t: &mut Matrix<Cpu>) -> &mut [f32] {
    let (rows, cols) = *t.shape();
    if rows * cols == 0 {
        return &mut [];
    }
    // The write access comes first: it makes the storage unshared, which may move it.
    let first: *mut f32 = &mut t[[0, 0]];
    assert_contiguous(first, &t[[0, cols - 1]], &t[[rows - 1, 0]], rows, cols);
    // SAFETY: as in as_slice; the storage is unshared and `t` is borrowed for writing.
    unsafe { std::slice::from_raw_parts_mut(first, rows * cols) }
}

/// Strides are private in dfdx, addresses are not.
fn assert_contiguous(first: *const f32, row_end: *const f32, last_row: *const f32, rows: usize, cols: usize) {
    let offset = |p: *const f32| (p as usize).wrapping_sub(first as usize) / size_of::<f32>();
    assert!(offset(row_end) == cols - 1 && offset(last_row) == (rows - 1) * cols, "kernels take contiguous tensors");
}

//! Matrix product on strided slices: packs the right matrix into panels, cuts the output into tiles, hands each to `kernel.rs`.
//!
//! The inner sum runs in blocks of a size that depends on its length only, one after the other; rows and columns may be cut in
//! any way. So threads change no bit, and neither does the number of rows computed together.
#![allow(unsafe_code)]

mod packed;
mod tall;
mod tiles;
mod view;

use super::pool;
use super::shared::Shared;
pub use packed::Packed;
use std::mem::MaybeUninit;
pub use tall::{Tall, multiply_tall};
pub use tiles::Then;
use tiles::{Target, all_tiles};
pub use view::View;

/// What a product is added to.
#[derive(Clone, Copy)]
pub enum Start<'a> {
    Nothing,
    /// What the output holds.
    Out,
    /// Another matrix of the output's shape and stride.
    Other(&'a [f32]),
}

/// Who computes: the calling thread, or all threads.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Workers {
    One,
    All,
}

impl Workers {
    /// All threads if there are several and the work is worth their waking.
    pub fn for_work(multiply_adds: usize) -> Self {
        if multiply_adds >= PARALLEL_FROM && pool::threads() > 1 { Workers::All } else { Workers::One }
    }
}

/// Below this many multiply-adds a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 18;
/// out = start + factor * a b, rows of `out` being `out_stride` apart.
pub fn multiply(out: &mut [f32], out_stride: usize, start: Start, a: View, b: &Packed, factor: f32, workers: Workers) {
    multiply_then(out, out_stride, start, a, b, factor, workers, [&[]; 2]);
}

/// [`multiply`], with a hint at what this thread needs next: fetched meanwhile if one thread multiplies a left matrix whose columns are
/// contiguous.
#[allow(clippy::too_many_arguments, reason = "a product and a hint")]
pub fn multiply_then(
    out: &mut [f32],
    out_stride: usize,
    start: Start,
    a: View,
    b: &Packed,
    factor: f32,
    workers: Workers,
    then: Then,
) {
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    assert!(b.cols <= out_stride || a.rows == 1, "matmul: rows of the output do not overlap");
    assert!((a.rows - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    if let Start::Other(other) = start {
        assert!((a.rows - 1) * out_stride + b.cols <= other.len(), "matmul: what is added to ends inside its slice");
    }
    check(a, b);
    let started = match start {
        Start::Nothing => std::ptr::null(),
        Start::Out => out.as_ptr(),
        Start::Other(other) => other.as_ptr(),
    };
    // SAFETY: the assertions above bound every address; `out` is borrowed for writing, so that nothing else touches it.
    unsafe { all_tiles(Target { out: out.as_mut_ptr(), stride: out_stride, start: started }, a, b, factor, workers, then) }
}

/// [`multiply`] on this thread into columns of an output that other threads write too; `at` is its first element.
///
/// # Safety
/// No other thread touches the a.rows x b.cols elements meanwhile.
pub unsafe fn multiply_shared(out: Shared, at: usize, out_stride: usize, add: bool, a: View, b: &Packed, factor: f32) {
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    assert!(b.cols <= out_stride || a.rows == 1, "matmul: rows of the output do not overlap");
    assert!(at + (a.rows - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    check(a, b);
    // SAFETY: the assertions above bound every address; the caller keeps others away.
    unsafe {
        let out = out.pointer().add(at);
        let start = if add { out } else { std::ptr::null_mut() };
        all_tiles(Target { out, stride: out_stride, start }, a, b, factor, Workers::One, [&[]; 2]);
    }
}

/// A new matrix factor * a b, whose memory is written once.
pub fn product(a: View, b: &Packed, factor: f32, workers: Workers) -> Vec<f32> {
    let len = a.rows * b.cols;
    let mut out: Vec<f32> = Vec::with_capacity(len);
    write(&mut out.spare_capacity_mut()[..len], None, a, b, factor, workers);
    // SAFETY: `write` has written all of them.
    unsafe { out.set_len(len) };
    out
}

/// Writes a b * factor, added to `start` if there is one, to every element of memory that may hold nothing yet.
pub fn write(out: &mut [MaybeUninit<f32>], start: Option<&[f32]>, a: View, b: &Packed, factor: f32, workers: Workers) {
    assert_eq!(out.len(), a.rows * b.cols, "matmul: the output is a whole matrix");
    assert!(start.is_none_or(|start| start.len() == out.len()), "matmul: what is added to is one too");
    if out.is_empty() {
        return;
    }
    check(a, b);
    let start = start.map_or(std::ptr::null(), <[f32]>::as_ptr);
    // SAFETY: `check` bounds the views; the output has room for a.rows rows of b.cols numbers and overlaps nothing, because it is borrowed
    // for writing. Tiles do not read an output they do not start from, and together write every element.
    unsafe { all_tiles(Target { out: out.as_mut_ptr().cast(), stride: b.cols, start }, a, b, factor, workers, [&[]; 2]) }
}

fn check(a: View, b: &Packed) {
    assert_eq!(a.cols, b.inner, "matmul: inner sizes agree");
    assert!(a.cols > 0, "matmul: the inner size is not zero");
    assert!(a.row_stride == 1 || a.col_stride == 1, "matmul: rows or columns of the left matrix are contiguous");
    a.assert_inside();
}

/// out = factor * a b, or out += factor * a b, on all threads where that pays.
pub fn matmul(out: &mut [f32], out_stride: usize, accumulate: bool, a: View, b: View, factor: f32) {
    let workers = Workers::for_work(a.rows * a.cols * b.cols);
    let start = if accumulate { Start::Out } else { Start::Nothing };
    multiply(out, out_stride, start, a, &Packed::new(b, workers), factor, workers);
}

/// out = a b for square matrices by crate `gemm`: what our own product is measured against.
pub fn crate_product(out: &mut [f32], a: &[f32], b: &[f32], side: usize, threads: usize) {
    assert!(out.len() == side * side && a.len() == side * side && b.len() == side * side, "gemm: square matrices");
    let parallelism = if threads > 1 { gemm::Parallelism::Rayon(threads) } else { gemm::Parallelism::None };
    let row = side as isize;
    // SAFETY: three square matrices, checked above; `out` is borrowed for writing and so overlaps neither of the others.
    unsafe {
        gemm::gemm(
            side,
            side,
            side,
            out.as_mut_ptr(),
            1,
            row,
            false,
            a.as_ptr(),
            1,
            row,
            b.as_ptr(),
            1,
            row,
            0.0,
            1.0,
            false,
            false,
            false,
            parallelism,
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Shapes of every path: single rows and columns, more work in rows, in columns, in the inner sum, widths that fill registers.
    fn shapes() -> Vec<(usize, usize, usize)> {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize + 1
        };
        let mut shapes =
            vec![(3, 700, 1000), (1, 300, 2000), (512, 1, 900), (97, 2, 4000), (256, 64, 512), (700, 48, 33), (600, 96, 200)];
        shapes.extend((0..60).map(|_| (below(200), below(200), below(700))));
        shapes
    }

    fn fill(len: usize, salt: usize) -> Vec<f32> {
        (0..len).map(|i| (((i * 7919 + salt) % 1013) as f32 - 506.0) / 300.0).collect()
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let pools = [1, 2, 3, 4].map(pool);
        for (m, n, k) in shapes() {
            let (a, b) = (fill(m * k, 1), fill(k * n, 2));
            for layout in 0..4 {
                let a = if layout & 1 == 0 { View::new(&a, m, k) } else { View::new(&a, k, m).t() };
                let b = if layout & 2 == 0 { View::new(&b, k, n) } else { View::new(&b, n, k).t() };
                let results = pools.each_ref().map(|pool| {
                    let mut sum = vec![0.5; m * n];
                    let new = pool.install(|| {
                        matmul(&mut sum, n, true, a, b, 0.7);
                        product(a, &Packed::new(b, Workers::All), 0.7, Workers::All)
                    });
                    sum.extend(new);
                    sum.iter().map(|x| x.to_bits()).collect::<Vec<_>>()
                });
                for (result, threads) in results[1..].iter().zip(2..) {
                    assert!(results[0] == *result, "{m} x {n} x {k}, layout {layout}, {threads} threads");
                }
            }
        }
    }

    #[test]
    fn products_are_those_of_the_definition() {
        for (m, n, k) in shapes() {
            let (a, b, other) = (fill(m * k, 1), fill(k * n, 2), fill(m * n, 3));
            for layout in 0..4 {
                let left = if layout & 1 == 0 { View::new(&a, m, k) } else { View::new(&a, k, m).t() };
                let right = if layout & 2 == 0 { View::new(&b, k, n) } else { View::new(&b, n, k).t() };
                let mut out = vec![f32::NAN; m * n];
                multiply(&mut out, n, Start::Other(&other), left, &Packed::new(right, Workers::One), 0.7, Workers::One);
                for at in (0..m * n).step_by(7) {
                    let element = |v: View, i: usize, j: usize| f64::from(v.data[i * v.row_stride + j * v.col_stride]);
                    let (i, j) = (at / n, at % n);
                    let sum: f64 = (0..k).map(|x| element(left, i, x) * element(right, x, j)).sum();
                    let expected = f64::from(other[at]) + 0.7 * sum;
                    // The sum of k rounding errors of terms below 3.
                    assert!((f64::from(out[at]) - expected).abs() < 1e-6 * 3.0 * k as f64, "{m} x {n} x {k}, layout {layout}");
                }
            }
        }
    }
}

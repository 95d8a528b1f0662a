//! Matrix product on strided slices: `gemm` behind checks of the bounds.
#![allow(unsafe_code)]

use gemm::Parallelism;

/// A matrix inside a slice: element (i, j) at i * row_stride + j * col_stride.
#[derive(Clone, Copy)]
pub struct View<'a> {
    data: &'a [f32],
    rows: usize,
    cols: usize,
    row_stride: usize,
    col_stride: usize,
}

impl<'a> View<'a> {
    pub fn new(data: &'a [f32], rows: usize, cols: usize) -> Self {
        Self::strided(data, rows, cols, cols)
    }

    pub fn strided(data: &'a [f32], rows: usize, cols: usize, row_stride: usize) -> Self {
        Self { data, rows, cols, row_stride, col_stride: 1 }
    }

    /// The transpose.
    pub fn t(self) -> Self {
        Self { rows: self.cols, cols: self.rows, row_stride: self.col_stride, col_stride: self.row_stride, ..self }
    }

    fn assert_inside(&self) {
        let last = (self.rows - 1) * self.row_stride + (self.cols - 1) * self.col_stride;
        assert!(last < self.data.len(), "matmul: a view ends inside its slice");
    }
}

/// Below this many multiply-adds a second thread costs more than it brings.
const PARALLEL_FROM: usize = 1 << 18;

/// out = factor * a b, or out += factor * a b. Uses the threads of the current rayon pool; the result does not depend on
/// their number, because gemm splits the output and never the inner sum.
pub fn matmul(out: &mut [f32], out_stride: usize, accumulate: bool, a: View, b: View, factor: f32) {
    matmul_with(out, out_stride, accumulate, a, b, factor, parallelism(a, b));
}

/// [`matmul`] on the calling thread, for kernels which split their work themselves.
pub fn matmul_serial(out: &mut [f32], out_stride: usize, accumulate: bool, a: View, b: View, factor: f32) {
    matmul_with(out, out_stride, accumulate, a, b, factor, Parallelism::None);
}

/// A new matrix factor * a b, whose memory is written once.
pub fn product(a: View, b: View, factor: f32) -> Vec<f32> {
    let len = a.rows * b.cols;
    let mut out: Vec<f32> = Vec::with_capacity(len);
    if len > 0 {
        check(a, b);
        // SAFETY: `check` bounds the views; the new buffer has room for a.rows rows of b.cols numbers and overlaps nothing.
        // gemm does not read its output when told not to, and writes every element, so that `len` elements are initialised.
        unsafe {
            call_gemm(out.as_mut_ptr(), b.cols, false, a, b, factor, parallelism(a, b));
            out.set_len(len);
        }
    }
    out
}

fn parallelism(a: View, b: View) -> Parallelism {
    let work = a.rows * a.cols * b.cols;
    match rayon::current_num_threads() {
        threads if threads > 1 && work >= PARALLEL_FROM => Parallelism::Rayon(threads),
        _ => Parallelism::None,
    }
}

fn check(a: View, b: View) {
    assert_eq!(a.cols, b.rows, "matmul: inner sizes agree");
    assert!(a.cols > 0, "matmul: the inner size is not zero");
    a.assert_inside();
    b.assert_inside();
}

fn matmul_with(out: &mut [f32], out_stride: usize, accumulate: bool, a: View, b: View, factor: f32, parallelism: Parallelism) {
    if a.rows == 0 || b.cols == 0 {
        return;
    }
    check(a, b);
    assert!(b.cols <= out_stride, "matmul: rows of the output do not overlap");
    assert!((a.rows - 1) * out_stride + b.cols <= out.len(), "matmul: the output ends inside its slice");
    // SAFETY: the assertions above bound every address gemm touches; `out` is borrowed for writing and so cannot overlap
    // `a` or `b`.
    unsafe { call_gemm(out.as_mut_ptr(), out_stride, accumulate, a, b, factor, parallelism) }
}

/// # Safety
/// Both views end inside their slices, agree on the inner size, and `out` has room for a.rows rows of b.cols numbers,
/// `out_stride` apart; `out` is initialised if `accumulate`.
unsafe fn call_gemm(out: *mut f32, out_stride: usize, accumulate: bool, a: View, b: View, factor: f32, parallelism: Parallelism) {
    // SAFETY: what gemm asks is what this function asks.
    unsafe {
        gemm::gemm(
            a.rows,
            b.cols,
            a.cols,
            out,
            1,
            out_stride as isize,
            accumulate,
            a.data.as_ptr(),
            a.col_stride as isize,
            a.row_stride as isize,
            b.data.as_ptr(),
            b.col_stride as isize,
            b.row_stride as isize,
            1.0,
            factor,
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

    /// Shapes of every path inside gemm: single rows and columns, more work in rows, in columns, in the inner sum.
    fn shapes() -> Vec<(usize, usize, usize)> {
        let mut state = 1_u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 33) % n) as usize + 1
        };
        let mut shapes = vec![(3, 700, 1000), (1, 300, 2000), (512, 1, 900), (97, 2, 4000), (256, 64, 512)];
        shapes.extend((0..60).map(|_| (below(200), below(200), below(700))));
        shapes
    }

    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let pool = |threads: usize| rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
        let pools = [1, 2, 3, 4].map(pool);
        for (m, n, k) in shapes() {
            let fill = |len: usize, salt: usize| -> Vec<f32> {
                (0..len).map(|i| (((i * 7919 + salt) % 1013) as f32 - 506.0) / 300.0).collect()
            };
            let (a, b) = (fill(m * k, 1), fill(k * n, 2));
            for layout in 0..4 {
                let a = if layout & 1 == 0 { View::new(&a, m, k) } else { View::new(&a, k, m).t() };
                let b = if layout & 2 == 0 { View::new(&b, k, n) } else { View::new(&b, n, k).t() };
                let results = pools.each_ref().map(|pool| {
                    let mut sum = vec![0.5; m * n];
                    let new = pool.install(|| {
                        matmul(&mut sum, n, true, a, b, 0.7);
                        product(a, b, 0.7)
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
}

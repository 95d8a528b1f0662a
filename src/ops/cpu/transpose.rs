//! Transposes of small matrices inside larger ones: what packing a weight or a head's keys comes down to.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::level::Level;
use super::level::level;

/// Side of the squares that are turned in registers.
const SIDE: usize = 8;

/// x (rows, cols), its rows `x_stride` apart, to its transpose at `out` with rows `stride` apart.
///
/// # Safety
/// Both matrices lie inside their allocations and do not overlap.
pub unsafe fn transpose(x: *const f32, x_stride: usize, rows: usize, cols: usize, out: *mut f32, stride: usize) {
    let (whole_rows, whole_cols) = (rows / SIDE * SIDE, cols / SIDE * SIDE);
    // SAFETY: indices stay below rows and cols on both sides; AVX2 is there unless the level is portable.
    unsafe {
        match level() {
            #[cfg(target_arch = "x86_64")]
            Level::Amx | Level::Avx512 | Level::Avx2 => x86::squares(x, x_stride, whole_rows, whole_cols, out, stride),
            _ => rest(x, x_stride, 0..whole_rows, 0..whole_cols, out, stride),
        }
        rest(x, x_stride, whole_rows..rows, 0..whole_cols, out, stride);
        rest(x, x_stride, 0..rows, whole_cols..cols, out, stride);
    }
}

/// # Safety
/// As [`transpose`].
unsafe fn rest(
    x: *const f32,
    x_stride: usize,
    rows: std::ops::Range<usize>,
    cols: std::ops::Range<usize>,
    out: *mut f32,
    stride: usize,
) {
    for i in rows {
        for j in cols.clone() {
            // SAFETY: the caller's promise.
            unsafe { *out.add(j * stride + i) = *x.add(i * x_stride + j) };
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::SIDE;
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::transpose`]; rows and cols are multiples of 8, and the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn squares(x: *const f32, x_stride: usize, rows: usize, cols: usize, out: *mut f32, stride: usize) {
        for i in (0..rows).step_by(SIDE) {
            for j in (0..cols).step_by(SIDE) {
                // SAFETY: a square inside both matrices.
                unsafe {
                    let from = x.add(i * x_stride + j);
                    let to = out.add(j * stride + i);
                    let r: [__m256; 8] = std::array::from_fn(|y| _mm256_loadu_ps(from.add(y * x_stride)));
                    let pair = |a: usize| (_mm256_unpacklo_ps(r[a], r[a + 1]), _mm256_unpackhi_ps(r[a], r[a + 1]));
                    let [(a0, a1), (b0, b1), (c0, c1), (d0, d1)] = [pair(0), pair(2), pair(4), pair(6)];
                    let four = |a, b| (_mm256_shuffle_ps::<0x44>(a, b), _mm256_shuffle_ps::<0xee>(a, b));
                    let [(l0, l1), (l2, l3)] = [four(a0, b0), four(a1, b1)];
                    let [(h0, h1), (h2, h3)] = [four(c0, d0), four(c1, d1)];
                    for (y, (low, high)) in [(l0, h0), (l1, h1), (l2, h2), (l3, h3)].into_iter().enumerate() {
                        _mm256_storeu_ps(to.add(y * stride), _mm256_permute2f128_ps::<0x20>(low, high));
                        _mm256_storeu_ps(to.add((y + 4) * stride), _mm256_permute2f128_ps::<0x31>(low, high));
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_element_finds_its_place() {
        for (rows, cols) in [(1, 1), (8, 8), (16, 24), (19, 33), (7, 40), (40, 5)] {
            let x: Vec<f32> = (0..rows * (cols + 3)).map(|i| i as f32).collect();
            let mut out = vec![-1.0; cols * (rows + 2)];
            // SAFETY: rows of cols + 3 and of rows + 2 numbers, allocated above.
            unsafe { transpose(x.as_ptr(), cols + 3, rows, cols, out.as_mut_ptr(), rows + 2) };
            for (i, j) in (0..rows).flat_map(|i| (0..cols).map(move |j| (i, j))) {
                assert_eq!(out[j * (rows + 2) + i], x[i * (cols + 3) + j], "({i}, {j}) of {rows} x {cols}");
            }
        }
    }
}

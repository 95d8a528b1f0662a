//! Transposes of small matrices inside larger ones: what packing a weight or a head's keys comes down to.
#![allow(unsafe_code)]

#[cfg(target_arch = "x86_64")]
use super::level::Level;
use super::level::level;

/// Side of the squares that are turned in registers of AVX2, and of AVX-512.
const SIDE: usize = 8;
#[cfg(target_arch = "x86_64")]
const WIDE_SIDE: usize = 16;

/// x (rows, cols), its rows `x_stride` apart, to its transpose at `out` with rows `stride` apart.
///
/// # Safety
/// Both matrices lie inside their allocations and do not overlap.
pub unsafe fn transpose(x: *const f32, x_stride: usize, rows: usize, cols: usize, out: *mut f32, stride: usize) {
    let turn = Turn { x, x_stride, out, stride };
    // SAFETY (all): indices stay below rows and cols on both sides; the CPU has the instructions of its level.
    match level() {
        #[cfg(target_arch = "x86_64")]
        Level::Amx | Level::Avx512 => {
            let (wide_rows, wide_cols) = (rows / WIDE_SIDE * WIDE_SIDE, cols / WIDE_SIDE * WIDE_SIDE);
            unsafe {
                x86::wide_squares(turn, wide_rows, wide_cols);
                turn.from(0, wide_cols).in_squares(wide_rows, cols - wide_cols);
                turn.from(wide_rows, 0).in_squares(rows - wide_rows, cols);
            }
        }
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => unsafe { turn.in_squares(rows, cols) },
        _ => unsafe { turn.one_by_one(0..rows, 0..cols) },
    }
}

/// Where a matrix lies and where its transpose goes.
#[derive(Clone, Copy)]
struct Turn {
    x: *const f32,
    x_stride: usize,
    out: *mut f32,
    stride: usize,
}

/// # Safety
/// Of all its functions: as [`transpose`].
impl Turn {
    /// The same from an element on, which may be one past the end.
    fn from(self, row: usize, col: usize) -> Self {
        let x = self.x.wrapping_add(row * self.x_stride + col);
        Self { x, out: self.out.wrapping_add(col * self.stride + row), ..self }
    }

    #[cfg(target_arch = "x86_64")]
    unsafe fn in_squares(self, rows: usize, cols: usize) {
        let (whole_rows, whole_cols) = (rows / SIDE * SIDE, cols / SIDE * SIDE);
        // SAFETY: the caller's promise, and AVX2 is there.
        unsafe {
            x86::squares(self, whole_rows, whole_cols);
            self.one_by_one(whole_rows..rows, 0..whole_cols);
            self.one_by_one(0..rows, whole_cols..cols);
        }
    }

    unsafe fn one_by_one(self, rows: std::ops::Range<usize>, cols: std::ops::Range<usize>) {
        for i in rows {
            for j in cols.clone() {
                // SAFETY: the caller's promise.
                unsafe { *self.out.add(j * self.stride + i) = *self.x.add(i * self.x_stride + j) };
            }
        }
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use super::{SIDE, Turn, WIDE_SIDE};
    use std::arch::x86_64::*;

    /// # Safety
    /// As [`super::transpose`]; rows and cols are multiples of 8, and the CPU has AVX2.
    #[target_feature(enable = "avx2")]
    pub unsafe fn squares(Turn { x, x_stride, out, stride }: Turn, rows: usize, cols: usize) {
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

    /// # Safety
    /// As [`super::transpose`]; rows and cols are multiples of 16, and the CPU has AVX-512.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn wide_squares(Turn { x, x_stride, out, stride }: Turn, rows: usize, cols: usize) {
        for i in (0..rows).step_by(WIDE_SIDE) {
            for j in (0..cols).step_by(WIDE_SIDE) {
                // SAFETY: a square inside both matrices.
                unsafe {
                    let from = x.add(i * x_stride + j);
                    let to = out.add(j * stride + i);
                    let r: [__m512; 16] = std::array::from_fn(|y| _mm512_loadu_ps(from.add(y * x_stride)));
                    // Of four rows at a time: four columns, one in each quarter of a register; the others three registers on.
                    let four = |g: usize| {
                        let pair = |a: usize| (_mm512_unpacklo_ps(r[a], r[a + 1]), _mm512_unpackhi_ps(r[a], r[a + 1]));
                        let [(a0, a1), (b0, b1)] = [pair(4 * g), pair(4 * g + 2)];
                        let halves = |a, b| (_mm512_shuffle_ps::<0x44>(a, b), _mm512_shuffle_ps::<0xee>(a, b));
                        let [(c0, c1), (c2, c3)] = [halves(a0, b0), halves(a1, b1)];
                        [c0, c1, c2, c3]
                    };
                    let groups: [[__m512; 4]; 4] = std::array::from_fn(four);
                    for y in 0..4 {
                        let [a, b, c, d] = groups.map(|g| g[y]);
                        let quarters = |a, b| (_mm512_shuffle_f32x4::<0x88>(a, b), _mm512_shuffle_f32x4::<0xdd>(a, b));
                        let [(even0, odd0), (even1, odd1)] = [quarters(a, b), quarters(c, d)];
                        let [(q0, q2), (q1, q3)] = [quarters(even0, even1), quarters(odd0, odd1)];
                        for (quarter, row) in [q0, q1, q2, q3].into_iter().enumerate() {
                            _mm512_storeu_ps(to.add((4 * quarter + y) * stride), row);
                        }
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
        for (rows, cols) in [(1, 1), (8, 8), (16, 24), (19, 33), (7, 40), (40, 5), (32, 48), (48, 16), (63, 63)] {
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

//! The innermost loop of every matrix product: a tile of the output held in registers while the inner sum runs. One copy for
//! each instruction set; what is a row, a panel or a block is decided in `gemm.rs`.
//!
//! An element of the output is the same sequence of operations wherever its tile begins and however large it is: tiles may be
//! cut in any way and by any number of threads without changing a bit.
#![allow(unsafe_code)]

use super::level::Level;
use super::math;

/// One tile, or several of one size below each other: out = start + factor * a b, for `rows` rows and `vectors` registers of columns.
#[derive(Clone, Copy)]
pub struct Tile {
    /// How many tiles below each other.
    pub count: usize,
    /// Element (i, k) of the left matrix is at `a + i * a_row + k * a_inner`; one of the two steps is 1.
    pub a: *const f32,
    pub a_row: usize,
    pub a_inner: usize,
    /// Row k of the right matrix is at `b + k * b_inner`, `vectors` registers wide.
    pub b: *const f32,
    pub b_inner: usize,
    pub inner: usize,
    pub out: *mut f32,
    pub out_row: usize,
    /// What the product is added to; null: nothing.
    pub start: *const f32,
    pub start_row: usize,
    pub factor: f32,
    pub ahead: Ahead,
}

/// What to ask for while tiles are computed, a little every few steps: much at once would fill the queue in which the tiles' own numbers
/// wait.
#[derive(Clone, Copy)]
pub enum Ahead {
    Nothing,
    /// The tiles' output, because it is far away.
    Output,
    /// And what comes next of both matrices. Only where columns of the left one are contiguous: rows leave no registers for it.
    All {
        left: Lines,
        right: Lines,
    },
}

/// Cache lines at equal distances, for the second-level cache.
#[derive(Clone, Copy)]
pub struct Lines {
    next: *const f32,
    last: *const f32,
    step: usize,
}

impl Lines {
    /// The lines of numbers that lie together; `otherwise`, which is near, if there are none.
    pub fn of(numbers: &[f32], otherwise: &[f32]) -> Self {
        let numbers = if numbers.is_empty() { otherwise } else { numbers };
        Self::apart(numbers, numbers.len().div_ceil(math::GROUP), math::GROUP)
    }

    /// So many lines, a line every `step` numbers.
    pub fn apart(numbers: &[f32], count: usize, step: usize) -> Self {
        let first = numbers.as_ptr();
        Self { next: first, last: first.wrapping_add(count.saturating_sub(1) * step), step }
    }
}

/// Most rows of a tile that is so many registers wide: as many as leave registers for a row of b and one element of a.
pub const fn most_rows(level: Level, vectors: usize) -> usize {
    match (level, vectors) {
        (Level::Amx | Level::Avx512, 1) => 16,
        (Level::Amx | Level::Avx512, 2) => 12,
        (Level::Amx | Level::Avx512, 3) => 8,
        (Level::Amx | Level::Avx512, _) => 6,
        (Level::Avx2, 1) => 8,
        (Level::Avx2, 2) => 6,
        (Level::Avx2, _) => 4,
        (Level::Portable, _) => 4,
    }
}

/// Most registers side by side in a tile.
pub const fn most_vectors(level: Level) -> usize {
    match level {
        Level::Amx | Level::Avx512 => 4,
        Level::Avx2 => 3,
        Level::Portable => 4,
    }
}

/// The widest tile, in numbers.
pub const WIDEST: usize = 64;

/// Expands to a `match` from (rows, vectors) to the instance of `$f` with these constants.
macro_rules! instances {
    ($f:ident, $by_rows:literal, $rows:expr, $vectors:expr, $tile:expr; $($v:literal: $($r:literal)*;)*) => {
        match ($rows, $vectors) {
            // SAFETY: as of the function this stands in.
            $($(($r, $v) => unsafe { $f::<$r, $v, $by_rows>($tile) },)*)*
            (rows, vectors) => unreachable!("no tile of {rows} rows and {vectors} registers"),
        }
    };
}

/// Computes a tile, and those below it.
///
/// # Safety
/// The CPU has the instructions of `level`; every address named by the tile lies inside an allocation, and nothing else writes
/// to the output meanwhile. `rows` and `vectors` are not 0 and within [`most_rows`] and [`most_vectors`].
pub unsafe fn run(level: Level, rows: usize, vectors: usize, tile: &Tile) {
    // Rows of a side by side in memory need one address each, columns of a one for all.
    #[cfg(target_arch = "x86_64")]
    let by_rows = tile.a_inner == 1;
    match level {
        #[cfg(target_arch = "x86_64")]
        Level::Amx | Level::Avx512 => {
            use avx512::tile as f;
            if by_rows {
                instances!(f, true, rows, vectors, tile; 1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; 2: 1 2 3 4 5 6 7 8 9 10 11 12;
                    3: 1 2 3 4 5 6 7 8; 4: 1 2 3 4 5 6;)
            } else {
                instances!(f, false, rows, vectors, tile; 1: 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16; 2: 1 2 3 4 5 6 7 8 9 10 11 12;
                    3: 1 2 3 4 5 6 7 8; 4: 1 2 3 4 5 6;)
            }
        }
        #[cfg(target_arch = "x86_64")]
        Level::Avx2 => {
            use avx2::tile as f;
            if by_rows {
                instances!(f, true, rows, vectors, tile; 1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6; 3: 1 2 3 4;)
            } else {
                instances!(f, false, rows, vectors, tile; 1: 1 2 3 4 5 6 7 8; 2: 1 2 3 4 5 6; 3: 1 2 3 4;)
            }
        }
        _ => {
            use portable::tile as f;
            instances!(f, true, rows, vectors, tile; 1: 1 2 3 4; 2: 1 2 3 4; 3: 1 2 3 4; 4: 1 2 3 4;)
        }
    }
}

#[cfg(target_arch = "x86_64")]
macro_rules! x86 {
    ($name:ident, $features:literal, $vector:ident, $lanes:literal, $zero:ident, $splat:ident, $load:ident, $store:ident, $fma:ident, $mul:ident) => {
        mod $name {
            use super::{Ahead, Lines, Tile};
            use std::arch::x86_64::*;

            const UNROLL: usize = 4;
            /// Kinds of [`Ahead`].
            const NOTHING: u8 = 0;
            const OUTPUT: u8 = 1;
            const ALL: u8 = 2;

            /// One inner index: a row of b times every element of a column of a.
            macro_rules! step {
                ($a:expr, $b:expr, $sums:ident, $t:ident, $rows:ident, $vectors:ident, $by_rows:ident) => {{
                    let (a, b) = ($a, $b);
                    let mut row: [$vector; $vectors] = [$zero(); $vectors];
                    for v in 0..$vectors {
                        row[v] = $load(b.add(v * $lanes));
                    }
                    for r in 0..$rows {
                        let element = $splat(if $by_rows { *a.add(r * $t.a_row) } else { *a.add(r) });
                        for v in 0..$vectors {
                            $sums[r][v] = $fma(element, row[v], $sums[r][v]);
                        }
                    }
                }};
            }

            /// # Safety
            /// As [`super::run`].
            #[target_feature(enable = $features)]
            pub unsafe fn tile<const R: usize, const V: usize, const BY_ROWS: bool>(t: &Tile) {
                // SAFETY: the caller's promise.
                unsafe {
                    match t.ahead {
                        Ahead::Nothing => tiles::<R, V, BY_ROWS, NOTHING>(t, None),
                        Ahead::All { left, right } if !BY_ROWS => tiles::<R, V, false, ALL>(t, Some((left, right))),
                        Ahead::Output | Ahead::All { .. } => tiles::<R, V, BY_ROWS, OUTPUT>(t, None),
                    }
                }
            }

            /// Asks for a line and moves on to the next, or stays at the last.
            #[inline]
            fn fetch(lines: &mut Lines) {
                // SAFETY: a hint, which touches nothing wherever it points.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(lines.next.cast()) };
                let next = lines.next.wrapping_add(lines.step);
                lines.next = if next > lines.last { lines.last } else { next };
            }

            /// # Safety
            /// As [`super::run`].
            #[target_feature(enable = $features)]
            unsafe fn tiles<const R: usize, const V: usize, const BY_ROWS: bool, const AHEAD: u8>(
                t: &Tile,
                mut ahead: Option<(Lines, Lines)>,
            ) {
                // SAFETY: the caller vouches for all addresses; every one below is one the tile names.
                unsafe {
                    let (mut first_a, mut out, mut start) = (t.a, t.out, t.start);
                    let a_step = if BY_ROWS { 1 } else { t.a_inner };
                    let (steps, left) = (t.inner / UNROLL, t.inner % UNROLL);
                    for _ in 0..t.count {
                        let mut sums: [[$vector; V]; R] = [[$zero(); V]; R];
                        let (mut a, mut b) = (first_a, t.b);
                        // Four inner indices at a time, for fewer instructions beside the arithmetic: a core is often shared.
                        let mut advance = |steps: usize| {
                            for _ in 0..steps {
                                if let (ALL, Some((left, right))) = (AHEAD, &mut ahead) {
                                    fetch(left);
                                    fetch(right);
                                }
                                for u in 0..UNROLL {
                                    step!(a.add(u * a_step), b.add(u * t.b_inner), sums, t, R, V, BY_ROWS);
                                }
                                a = a.add(UNROLL * a_step);
                                b = b.add(UNROLL * t.b_inner);
                            }
                        };
                        let share = if AHEAD == NOTHING { 0 } else { steps / R };
                        if AHEAD != NOTHING {
                            for r in 0..R {
                                for v in 0..V {
                                    _mm_prefetch::<_MM_HINT_T0>(out.add(r * t.out_row + v * $lanes).cast());
                                }
                                advance(share);
                            }
                        }
                        advance(steps - share * R);
                        for _ in 0..left {
                            step!(a, b, sums, t, R, V, BY_ROWS);
                            a = a.add(a_step);
                            b = b.add(t.b_inner);
                        }
                        let factor = $splat(t.factor);
                        for r in 0..R {
                            for v in 0..V {
                                let sum = if start.is_null() {
                                    $mul(factor, sums[r][v])
                                } else {
                                    $fma(factor, sums[r][v], $load(start.add(r * t.start_row + v * $lanes)))
                                };
                                $store(out.add(r * t.out_row + v * $lanes), sum);
                            }
                        }
                        // One past the last tile may lie outside: never read, so no more than a number.
                        first_a = first_a.wrapping_add(R * t.a_row);
                        out = out.wrapping_add(R * t.out_row);
                        if !start.is_null() {
                            start = start.wrapping_add(R * t.start_row);
                        }
                    }
                }
            }
        }
    };
}

#[cfg(target_arch = "x86_64")]
x86!(
    avx512,
    "avx512f",
    __m512,
    16,
    _mm512_setzero_ps,
    _mm512_set1_ps,
    _mm512_loadu_ps,
    _mm512_storeu_ps,
    _mm512_fmadd_ps,
    _mm512_mul_ps
);
#[cfg(target_arch = "x86_64")]
x86!(
    avx2,
    "avx2,fma",
    __m256,
    8,
    _mm256_setzero_ps,
    _mm256_set1_ps,
    _mm256_loadu_ps,
    _mm256_storeu_ps,
    _mm256_fmadd_ps,
    _mm256_mul_ps
);

mod portable {
    use super::Tile;

    const LANES: usize = 4;

    /// # Safety
    /// As [`super::run`].
    #[allow(clippy::needless_range_loop, reason = "rows, registers and lanes index addresses as well as sums")]
    pub unsafe fn tile<const R: usize, const V: usize, const BY_ROWS: bool>(t: &Tile) {
        for top in (0..t.count).map(|i| i * R) {
            let mut sums = [[[0.0_f32; LANES]; V]; R];
            // SAFETY: the caller vouches for all addresses; every one below is one the tiles name.
            unsafe {
                for k in 0..t.inner {
                    for r in 0..R {
                        let element = *t.a.add((top + r) * t.a_row + k * t.a_inner);
                        for v in 0..V {
                            for lane in 0..LANES {
                                sums[r][v][lane] += element * *t.b.add(k * t.b_inner + v * LANES + lane);
                            }
                        }
                    }
                }
                for r in 0..R {
                    for v in 0..V {
                        for lane in 0..LANES {
                            let at = v * LANES + lane;
                            let start = if t.start.is_null() { 0.0 } else { *t.start.add((top + r) * t.start_row + at) };
                            *t.out.add((top + r) * t.out_row + at) = start + t.factor * sums[r][v][lane];
                        }
                    }
                }
            }
        }
    }
}

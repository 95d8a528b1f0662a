//! Matrix products on AMX tiles, at the precision of f32. The tiles multiply bfloat16 and add in f32; every number is cut into
//! three bfloat16 whose sum it is exactly, and of the nine products of parts the six are added that an f32 can hold: the other three
//! are below the rounding of the largest. Three times the arithmetic of AVX-512 is left of sixteen.
//!
//! Within 32 numbers of the inner sum, those at j and j + 16 share a word. Both matrices do it alike, so that the sum is the same
//! and cutting needs no shuffles.
#![allow(unsafe_code)]

use super::gemm::View;
use super::pool;
use super::scratch::{self, Buffer};
use super::shared::Shared;

/// Rows of a tile, and words in one of its rows.
const SIDE: usize = 16;
/// Numbers of the inner sum in a tile: two to a word.
const DEPTH: usize = 2 * SIDE;
/// Words of a tile.
const TILE: usize = SIDE * SIDE;
/// Rows of the left matrix, or columns of the right, that are multiplied together.
pub const STRIP: usize = 2 * SIDE;
/// Words of a strip for one tile of the inner sum: three parts of two tiles.
const STEP: usize = 6 * TILE;
/// Longest block of the inner sum, in tiles: the strips of a block of rows stay in the second-level cache.
const INNER_TILES: usize = 24;
/// Rows of the left matrix cut together.
const ROW_BLOCK: usize = 256;

/// Cache lines of the next strip fetched with each tile of the inner sum: it is all there after four strips of rows.
const PREFETCH: usize = 24;

/// Which side of the product a strip is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    /// A tile's row is a row of the matrix.
    Left,
    /// A tile's row is a pair of rows of the matrix.
    Right,
}

/// A right matrix cut into parts: strips of columns one after another, each with all of the inner sum.
pub struct Split {
    words: Buffer,
    inner: usize,
    cols: usize,
}

/// Where a product goes: out = start + factor * a b, rows `stride` apart; `start` may be null.
#[derive(Clone, Copy)]
pub struct Target {
    pub out: *mut f32,
    pub start: *const f32,
    pub stride: usize,
    pub factor: f32,
}

impl Split {
    /// On all threads of the pool if `parallel`.
    pub fn new(b: View, parallel: bool) -> Self {
        let (inner, cols) = (b.rows, b.cols);
        let tiles = inner.div_ceil(DEPTH);
        let mut words = scratch::take(cols.div_ceil(STRIP) * tiles * STEP);
        let shared = Shared::new(&mut words);
        let strip = |i: usize| {
            // SAFETY: strips lie one after another.
            let out = unsafe { shared.part(i * tiles * STEP..(i + 1) * tiles * STEP) };
            cut(b.t(), Side::Right, i * STRIP, 0..tiles, out);
        };
        if parallel {
            pool::for_each(cols.div_ceil(STRIP), strip);
        } else {
            (0..cols.div_ceil(STRIP)).for_each(strip);
        }
        Self { words, inner, cols }
    }

    pub fn strips(&self) -> usize {
        self.cols.div_ceil(STRIP)
    }

    /// Rows `rows` of the output in the columns of strips `strips`.
    ///
    /// # Safety
    /// `a` ends inside its slice and its inner size is that of this matrix. The rows and columns lie inside `target`, both its `out`
    /// and its `start` unless that is null, and nothing else touches them meanwhile.
    pub unsafe fn multiply(&self, a: View, rows: (usize, usize), strips: (usize, usize), target: Target) {
        let all = self.inner.div_ceil(DEPTH);
        let blocks = all.div_ceil(INNER_TILES);
        let tiles = |block: usize| block * all / blocks;
        let mut left =
            scratch::take(ROW_BLOCK.min((rows.1 - rows.0).next_multiple_of(STRIP)) * all.div_ceil(blocks) * STEP / STRIP);
        let _tiles = machine::Tiles::configure();
        for from in (rows.0..rows.1).step_by(ROW_BLOCK) {
            let to = (from + ROW_BLOCK).min(rows.1);
            for block in 0..blocks {
                let inner = tiles(block)..tiles(block + 1);
                let length = inner.len() * STEP;
                for (row, out) in (from..to).step_by(STRIP).zip(left.chunks_exact_mut(length)) {
                    cut(a.rows(0, to), Side::Left, row, inner.clone(), out);
                }
                // The first block of the inner sum starts from what was asked for, the others from what is there.
                let start = if block == 0 { target.start } else { target.out.cast_const() };
                for strip in strips.0..strips.1 {
                    let at = (strip * all + inner.start) * STEP;
                    let right = &self.words[at..][..length];
                    let column = strip * STRIP;
                    for (i, (row, left)) in (from..to).step_by(STRIP).zip(left.chunks_exact(length)).enumerate() {
                        let next = self.words.as_ptr().wrapping_add(at + all * STEP + i * PREFETCH * SIDE);
                        let at = row * target.stride + column;
                        // SAFETY: both strips are `length` words; rows and columns lie inside the target, as the caller promises.
                        unsafe {
                            let out = target.out.add(at);
                            let start = if start.is_null() { start } else { start.add(at) };
                            let size = (STRIP.min(to - row), STRIP.min(self.cols - column));
                            machine::strips(left, right, next, Target { out, start, ..target }, size);
                        }
                    }
                }
            }
        }
    }
}

/// Cuts rows first.. of a matrix, at most [`STRIP`] of them, into parts for tiles `tiles` of the inner sum, which runs along the
/// columns. What lies outside the matrix is zero.
fn cut(x: View, side: Side, first: usize, tiles: std::ops::Range<usize>, out: &mut [f32]) {
    assert_eq!(out.len(), tiles.len() * STEP, "amx: a strip has room for its tiles");
    x.assert_inside();
    let along_inner = x.col_stride == 1;
    assert!(along_inner || x.row_stride == 1, "amx: rows or columns are contiguous");
    let turned = along_inner == (side == Side::Right);
    for (tile, out) in tiles.zip(out.chunks_exact_mut(STEP)) {
        for half in 0..2 {
            let (row, column) = (first + half * SIDE, tile * DEPTH);
            let rows = x.rows.saturating_sub(row).min(SIDE);
            let cols = x.cols.saturating_sub(column).min(DEPTH);
            let lines = machine::Lines {
                start: x.data.as_ptr().wrapping_add(row * x.row_stride + column * x.col_stride),
                stride: if along_inner { x.row_stride } else { x.col_stride },
                rows,
                cols,
                along_inner,
            };
            // SAFETY: the matrix ends inside its slice, and `lines` has only rows and columns of it; `out` is one step.
            unsafe {
                if turned {
                    machine::cut::<true>(lines, &mut out[half * TILE..]);
                } else {
                    machine::cut::<false>(lines, &mut out[half * TILE..]);
                }
            }
        }
    }
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
pub use machine::there;

/// Whether this process may use the tiles.
#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
pub fn there() -> bool {
    false
}

#[cfg(all(target_arch = "x86_64", target_os = "linux"))]
mod machine {
    use super::{SIDE, STEP, STRIP, TILE, Target};
    use std::arch::asm;
    use std::arch::x86_64::*;

    /// Whether the CPU has the tiles and the system gives them to this process. To be asked before anything else here.
    pub fn there() -> bool {
        use std::arch::is_x86_feature_detected as has;
        const ARCH_REQ_XCOMP_PERM: libc::c_long = 0x1023;
        const XFEATURE_XTILEDATA: libc::c_long = 18;
        // Leaf 7: bit 22 of edx is AMX-BF16, bit 24 AMX-TILE.
        let leaf = __cpuid_count(7, 0).edx;
        let tiles = leaf >> 22 & 1 == 1 && leaf >> 24 & 1 == 1;
        // SAFETY: the call takes two numbers; it only permits this process to use the tiles.
        let permitted = || unsafe { libc::syscall(libc::SYS_arch_prctl, ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA) } == 0;
        tiles && has!("avx512f") && has!("avx512bw") && permitted()
    }

    /// The first `count` lanes, or all.
    fn mask(count: usize) -> __mmask16 {
        ((1_u32 << count.min(SIDE)) - 1) as __mmask16
    }

    /// Lines of up to 16 numbers in the matrix being cut: rows if its inner sum runs along them, else columns.
    #[derive(Clone, Copy)]
    pub struct Lines {
        pub start: *const f32,
        pub stride: usize,
        pub rows: usize,
        pub cols: usize,
        pub along_inner: bool,
    }

    /// This thread's tiles, all of 16 rows of 64 bytes, until dropped: a thread that holds none is cheaper to switch.
    pub struct Tiles;

    impl Tiles {
        pub fn configure() -> Self {
            #[repr(C, align(64))]
            struct Palette([u8; 64]);
            const ALL: Palette = {
                let mut bytes = [0; 64];
                bytes[0] = 1;
                let mut tile = 0;
                while tile < 8 {
                    bytes[16 + 2 * tile] = 64;
                    bytes[48 + tile] = 16;
                    tile += 1;
                }
                Palette(bytes)
            };
            // SAFETY: `there` has asked for the tiles; the palette is one the CPU has.
            unsafe { asm!("ldtilecfg [{}]", in(reg) &ALL, options(nostack, readonly)) };
            Tiles
        }
    }

    impl Drop for Tiles {
        fn drop(&mut self) {
            // SAFETY: nobody reads a tile after this.
            unsafe { asm!("tilerelease", options(nostack, nomem)) };
        }
    }

    /// One tile of each part: 16 rows of words, the numbers of a word 16 apart along the inner sum. Parts are two tiles apart.
    ///
    /// # Safety
    /// The CPU has AVX-512; `lines` lie inside their allocation.
    #[target_feature(enable = "avx512f,avx512bw")]
    pub unsafe fn cut<const TURNED: bool>(lines: Lines, out: &mut [f32]) {
        assert!(out.len() >= 5 * TILE, "amx: three tiles, two apart");
        let Lines { start, stride, rows, cols, along_inner } = lines;
        // The lines of the lower numbers of all words, and those of the higher.
        let (low, high) = if along_inner {
            ((start, rows, mask(cols)), (start.wrapping_add(SIDE), rows, mask(cols.saturating_sub(SIDE))))
        } else {
            ((start, cols.min(SIDE), mask(rows)), (start.wrapping_add(SIDE * stride), cols.saturating_sub(SIDE), mask(rows)))
        };
        let line = |(start, count, mask): (*const f32, usize, __mmask16), i: usize| {
            // SAFETY: the caller's promise; numbers that the mask hides are not read.
            if i < count { unsafe { _mm512_maskz_loadu_ps(mask, start.wrapping_add(i * stride)) } } else { _mm512_setzero_ps() }
        };
        let out = out.as_mut_ptr();
        if TURNED {
            let low = transpose(std::array::from_fn(|i| line(low, i)));
            let high = transpose(std::array::from_fn(|i| line(high, i)));
            for i in 0..SIDE {
                // SAFETY: row i of each of three tiles.
                unsafe { parts(low[i], high[i], out.add(i * SIDE)) };
            }
        } else {
            for i in 0..SIDE {
                // SAFETY: as above.
                unsafe { parts(line(low, i), line(high, i), out.add(i * SIDE)) };
            }
        }
    }

    /// Cuts off the leading half of every number twice: three bfloat16 that add up to it.
    ///
    /// # Safety
    /// A row of each of three tiles, two apart, starts at `out`.
    #[inline]
    #[target_feature(enable = "avx512f,avx512bw")]
    unsafe fn parts(mut low: __m512, mut high: __m512, out: *mut f32) {
        let leading = _mm512_set1_epi32(0xffff_0000_u32 as i32);
        for part in 0..3 {
            let (l, h) = (_mm512_castps_si512(low), _mm512_castps_si512(high));
            let h = _mm512_and_si512(h, leading);
            let word = _mm512_or_si512(_mm512_srli_epi32::<16>(l), h);
            // SAFETY: the caller's promise.
            unsafe { _mm512_storeu_si512(out.add(part * 2 * TILE).cast(), word) };
            if part < 2 {
                low = _mm512_sub_ps(low, _mm512_castsi512_ps(_mm512_and_si512(l, leading)));
                high = _mm512_sub_ps(high, _mm512_castsi512_ps(h));
            }
        }
    }

    #[inline]
    #[target_feature(enable = "avx512f")]
    fn transpose(r: [__m512; SIDE]) -> [__m512; SIDE] {
        let mut a = r;
        for i in (0..SIDE).step_by(2) {
            a[i] = _mm512_unpacklo_ps(r[i], r[i + 1]);
            a[i + 1] = _mm512_unpackhi_ps(r[i], r[i + 1]);
        }
        let mut b = a;
        for i in (0..SIDE).step_by(4) {
            b[i] = _mm512_shuffle_ps::<0x44>(a[i], a[i + 2]);
            b[i + 1] = _mm512_shuffle_ps::<0xee>(a[i], a[i + 2]);
            b[i + 2] = _mm512_shuffle_ps::<0x44>(a[i + 1], a[i + 3]);
            b[i + 3] = _mm512_shuffle_ps::<0xee>(a[i + 1], a[i + 3]);
        }
        // Now lane l of b[4 i + j] has column 4 l + j of rows 4 i ...
        let mut c = b;
        for j in 0..4 {
            c[j] = _mm512_shuffle_f32x4::<0x88>(b[j], b[4 + j]);
            c[4 + j] = _mm512_shuffle_f32x4::<0xdd>(b[j], b[4 + j]);
            c[8 + j] = _mm512_shuffle_f32x4::<0x88>(b[8 + j], b[12 + j]);
            c[12 + j] = _mm512_shuffle_f32x4::<0xdd>(b[8 + j], b[12 + j]);
        }
        let mut d = c;
        for j in 0..4 {
            d[j] = _mm512_shuffle_f32x4::<0x88>(c[j], c[8 + j]);
            d[8 + j] = _mm512_shuffle_f32x4::<0xdd>(c[j], c[8 + j]);
            d[4 + j] = _mm512_shuffle_f32x4::<0x88>(c[4 + j], c[12 + j]);
            d[12 + j] = _mm512_shuffle_f32x4::<0xdd>(c[4 + j], c[12 + j]);
        }
        d
    }

    /// The product of two strips, to at most `size` rows and columns of the target. Meanwhile fetches lines from `next` on, which
    /// may be anywhere.
    ///
    /// # Safety
    /// The tiles are configured; the strips are of the same length, whole steps; `size` is at most a strip and lies inside the
    /// target, which nothing else touches.
    pub unsafe fn strips(left: &[f32], right: &[f32], next: *const f32, target: Target, size: (usize, usize)) {
        assert!(left.len() == right.len() && left.len() >= STEP && left.len().is_multiple_of(STEP), "amx: strips of whole steps");
        #[repr(C, align(64))]
        struct Sums([f32; STRIP * STRIP]);
        let mut sums = std::mem::MaybeUninit::<Sums>::uninit();
        // SAFETY: every load is inside the strips, whose steps are 6 tiles of 1024 bytes; the four stores cover `sums`. The products
        // of small parts come first.
        unsafe {
            asm!(
                "tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3",
                "2:",
                "tileloadd tmm6, [{b} + {s}]", "tileloadd tmm4, [{a} + {s} + 4096]",
                "tdpbf16ps tmm0, tmm4, tmm6",
                "prefetcht1 [{p} + 0]",
                "tileloadd tmm7, [{b} + {s} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7",
                "prefetcht1 [{p} + 64]",
                "tileloadd tmm5, [{a} + {s} + 5120]",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 128]", "prefetcht1 [{p} + 192]",
                "tileloadd tmm4, [{a} + {s} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "prefetcht1 [{p} + 256]", "prefetcht1 [{p} + 320]",
                "tileloadd tmm5, [{a} + {s} + 3072]",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 384]", "prefetcht1 [{p} + 448]",
                "tileloadd tmm6, [{b} + {s} + 2048]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm2, tmm5, tmm6",
                "prefetcht1 [{p} + 512]", "prefetcht1 [{p} + 576]",
                "tileloadd tmm7, [{b} + {s} + 3072]",
                "tdpbf16ps tmm1, tmm4, tmm7", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 640]", "prefetcht1 [{p} + 704]",
                "tileloadd tmm4, [{a} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm1, tmm4, tmm7",
                "prefetcht1 [{p} + 768]", "prefetcht1 [{p} + 832]",
                "tileloadd tmm5, [{a} + {s} + 1024]",
                "tdpbf16ps tmm2, tmm5, tmm6", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 896]", "prefetcht1 [{p} + 960]",
                "tileloadd tmm6, [{b} + {s} + 4096]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm2, tmm5, tmm6",
                "prefetcht1 [{p} + 1024]", "prefetcht1 [{p} + 1088]",
                "tileloadd tmm7, [{b} + {s} + 5120]",
                "tdpbf16ps tmm1, tmm4, tmm7", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 1152]", "prefetcht1 [{p} + 1216]",
                "tileloadd tmm6, [{b} + {s}]",
                "tdpbf16ps tmm0, tmm4, tmm6", "tdpbf16ps tmm2, tmm5, tmm6",
                "prefetcht1 [{p} + 1280]", "prefetcht1 [{p} + 1344]",
                "tileloadd tmm7, [{b} + {s} + 1024]",
                "tdpbf16ps tmm1, tmm4, tmm7", "tdpbf16ps tmm3, tmm5, tmm7",
                "prefetcht1 [{p} + 1408]", "prefetcht1 [{p} + 1472]",
                "add {a}, 6144",
                "add {p}, 6144",
                "add {b}, 6144",
                "dec {n}",
                "jnz 2b",
                "add {s}, {s}",
                "tilestored [{o} + {s}], tmm0", "tilestored [{o} + {s} + 64], tmm1",
                "tilestored [{o} + {s} + 2048], tmm2", "tilestored [{o} + {s} + 2112], tmm3",
                a = inout(reg) left.as_ptr() => _,
                b = inout(reg) right.as_ptr() => _,
                p = inout(reg) next => _,
                n = inout(reg) left.len() / STEP => _,
                s = inout(reg) 64_usize => _,
                o = in(reg) sums.as_mut_ptr(),
                out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                options(nostack),
            );
            finish(&sums.assume_init().0, target, size);
        }
    }

    /// # Safety
    /// As [`strips`].
    #[target_feature(enable = "avx512f")]
    unsafe fn finish(sums: &[f32; STRIP * STRIP], target: Target, (rows, cols): (usize, usize)) {
        let factor = _mm512_set1_ps(target.factor);
        let masks = [mask(cols), mask(cols.saturating_sub(SIDE))];
        for (r, sums) in sums.chunks_exact(STRIP).take(rows).enumerate() {
            for (half, &mask) in masks.iter().enumerate() {
                let at = r * target.stride + half * SIDE;
                // SAFETY: the caller's promise; what a mask hides is neither read nor written.
                unsafe {
                    let sum = _mm512_load_ps(sums.as_ptr().add(half * SIDE));
                    let sum = if target.start.is_null() {
                        _mm512_mul_ps(factor, sum)
                    } else {
                        _mm512_fmadd_ps(factor, sum, _mm512_maskz_loadu_ps(mask, target.start.wrapping_add(at)))
                    };
                    _mm512_mask_storeu_ps(target.out.wrapping_add(at), mask, sum);
                }
            }
        }
    }
}

#[cfg(not(all(target_arch = "x86_64", target_os = "linux")))]
#[allow(dead_code, reason = "never called: `there` says no")]
mod machine {
    use super::Target;

    pub struct Lines {
        pub start: *const f32,
        pub stride: usize,
        pub rows: usize,
        pub cols: usize,
        pub along_inner: bool,
    }

    pub struct Tiles;

    impl Tiles {
        pub fn configure() -> Self {
            unreachable!("no tiles on this CPU")
        }
    }

    /// # Safety
    /// Never called.
    pub unsafe fn cut<const TURNED: bool>(_: Lines, _: &mut [f32]) {
        unreachable!("no tiles on this CPU")
    }

    /// # Safety
    /// Never called.
    pub unsafe fn strips(_: &[f32], _: &[f32], _: *const f32, _: Target, _: (usize, usize)) {
        unreachable!("no tiles on this CPU")
    }
}

#[cfg(test)]
mod tests {
    use super::super::gemm::{Packed, Start, View, Workers, multiply};
    use super::super::level::{Level, level};

    /// The largest error of a product, beside the product of the absolute values: in units of f32's rounding.
    fn error(m: usize, n: usize, k: usize, scale: (f32, f32), split: bool) -> f64 {
        let mut state = 3_u64;
        let mut number = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / (1_u64 << 23) as f32 - 1.0) * (1.0 + (state >> 32 & 7) as f32)
        };
        let a: Vec<f32> = (0..m * k).map(|_| number() * scale.0).collect();
        let b: Vec<f32> = (0..k * n).map(|_| number() * scale.1).collect();
        let mut out = vec![0.0; m * n];
        let right = View::new(&b, k, n);
        let right = if split { Packed::new(right, Workers::One) } else { Packed::copy(right) };
        multiply(&mut out, n, Start::Nothing, View::new(&a, m, k), &right, 1.0, Workers::One);
        let mut worst = 0.0_f64;
        for at in (0..m * n).step_by(11) {
            let (i, j) = (at / n, at % n);
            let terms = || (0..k).map(|x| f64::from(a[i * k + x]) * f64::from(b[x * n + j]));
            let (sum, size): (f64, f64) = (terms().sum(), terms().map(f64::abs).sum());
            worst = worst.max((f64::from(out[at]) - sum).abs() / size / f64::from(f32::EPSILON));
        }
        worst
    }

    #[test]
    fn products_are_as_exact_as_those_of_vectors() {
        if level() != Level::Amx {
            eprintln!("skipped: no AMX here, or REPRO_SIMD asks for less");
            return;
        }
        for scale in [(1.0, 1.0), (1e-12, 1e3), (1e-20, 1e-12), (1e18, 1e12)] {
            for (m, n, k) in [(40, 150, 128), (33, 128, 1000), (70, 333, 2049)] {
                let (split, vectors) = (error(m, n, k, scale, true), error(m, n, k, scale, false));
                assert!(split < 1.0 && split < 2.0 * vectors.max(0.1), "{m} x {n} x {k} at {scale:?}: {split} against {vectors}");
            }
        }
    }

    #[test]
    fn what_is_not_a_number_stays_so() {
        let (mut a, b) = (vec![1.0; 40 * 128], vec![1.0; 128 * 130]);
        (a[3 * 128 + 7], a[9 * 128]) = (f32::NAN, f32::INFINITY);
        let mut out = vec![0.0; 40 * 130];
        let packed = Packed::new(View::new(&b, 128, 130), Workers::One);
        multiply(&mut out, 130, Start::Nothing, View::new(&a, 40, 128), &packed, 1.0, Workers::One);
        for (i, row) in out.chunks(130).enumerate() {
            assert!(row.iter().all(|x| x.is_finite() != (i == 3 || i == 9)), "row {i}");
        }
    }
}

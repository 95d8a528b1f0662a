//! Loops over rows on all threads of the pool. Work is cut into pieces of a fixed size, whatever the number of threads, and
//! sums over rows add the pieces in order: the bits of a result depend on its inputs only.

use super::pool;

/// Elements below which one thread does it all.
const PARALLEL_FROM: usize = 1 << 14;

/// Rows that one thread takes through several products, where rows do not depend on each other: few where they then stay in cache, more
/// where the weights do not.
pub fn together(width: usize) -> usize {
    if width >= WIDE { 256 } else { NARROW_TOGETHER }
}

const WIDE: usize = 512;
pub const NARROW_TOGETHER: usize = 128;

fn rows_per_piece(width: usize) -> usize {
    (PARALLEL_FROM / 2 / width.max(1)).max(1)
}

fn parallel(len: usize) -> bool {
    len >= PARALLEL_FROM && pool::threads() > 1
}

/// Calls `f(first_row, rows_of_out)` for pieces of `out`; each output row must depend on no other.
pub fn for_rows(out: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = rows_per_piece(width);
    if parallel(out.len()) {
        pool::each(out.chunks_mut(rows * width).enumerate().collect(), |(i, piece)| f(i * rows, piece));
    } else {
        f(0, out);
    }
}

/// Calls `f(index, piece)` for pieces of `out` of exactly this length.
pub fn for_pieces(out: &mut [f32], length: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    if parallel(out.len()) {
        pool::each(out.chunks_mut(length).enumerate().collect(), |(i, piece)| f(i, piece));
    } else {
        out.chunks_mut(length).enumerate().for_each(|(i, piece)| f(i, piece));
    }
}

/// As [`for_rows`] with a second output of another width.
pub fn for_rows2(a: &mut [f32], a_width: usize, b: &mut [f32], b_width: usize, f: impl Fn(usize, &mut [f32], &mut [f32]) + Sync) {
    let rows = rows_per_piece(a_width.max(b_width));
    if parallel(a.len().max(b.len())) {
        let pieces = a.chunks_mut(rows * a_width).zip(b.chunks_mut(rows * b_width)).enumerate().collect();
        pool::each(pieces, |(i, (a, b))| f(i * rows, a, b));
    } else {
        f(0, a, b);
    }
}

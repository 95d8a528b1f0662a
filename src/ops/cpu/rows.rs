//! Loops over rows on all threads of the pool. Work is cut into pieces of a fixed size, whatever the number of threads, and
//! sums over rows add the pieces in order: the bits of a result depend on its inputs only.

use rayon::prelude::*;

/// Rows per piece of a sum over rows.
const SUM_ROWS: usize = 64;
/// Elements below which one thread does it all.
const PARALLEL_FROM: usize = 1 << 14;

fn rows_per_piece(width: usize) -> usize {
    (PARALLEL_FROM / 2 / width.max(1)).max(1)
}

fn parallel(len: usize) -> bool {
    len >= PARALLEL_FROM && rayon::current_num_threads() > 1
}

/// Calls `f(first_row, rows_of_out)` for pieces of `out`; each output row must depend on no other.
pub fn for_rows(out: &mut [f32], width: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    let rows = rows_per_piece(width);
    if parallel(out.len()) {
        out.par_chunks_mut(rows * width).enumerate().for_each(|(i, piece)| f(i * rows, piece));
    } else {
        f(0, out);
    }
}

/// Calls `f(index, piece)` for pieces of `out` of exactly this length.
pub fn for_pieces(out: &mut [f32], length: usize, f: impl Fn(usize, &mut [f32]) + Sync) {
    if parallel(out.len()) {
        out.par_chunks_mut(length).enumerate().for_each(|(i, piece)| f(i, piece));
    } else {
        out.chunks_mut(length).enumerate().for_each(|(i, piece)| f(i, piece));
    }
}

/// As [`for_rows`] with a second output of another width.
pub fn for_rows2(a: &mut [f32], a_width: usize, b: &mut [f32], b_width: usize, f: impl Fn(usize, &mut [f32], &mut [f32]) + Sync) {
    let rows = rows_per_piece(a_width.max(b_width));
    if parallel(a.len().max(b.len())) {
        a.par_chunks_mut(rows * a_width)
            .zip(b.par_chunks_mut(rows * b_width))
            .enumerate()
            .for_each(|(i, (a, b))| f(i * rows, a, b));
    } else {
        f(0, a, b);
    }
}

/// total += sum over rows of what `f(first_row, end_row, partial)` adds to `partial`.
pub fn sum_over_rows(total: &mut [f32], rows: usize, f: impl Fn(usize, usize, &mut [f32]) + Sync) {
    let width = total.len();
    let one = |i: usize| {
        let mut partial = vec![0.0; width];
        f(i * SUM_ROWS, ((i + 1) * SUM_ROWS).min(rows), &mut partial);
        partial
    };
    let pieces = rows.div_ceil(SUM_ROWS);
    let partials: Vec<Vec<f32>> =
        if parallel(rows * width) { (0..pieces).into_par_iter().map(one).collect() } else { (0..pieces).map(one).collect() };
    for partial in partials {
        for (t, p) in total.iter_mut().zip(partial) {
            *t += p;
        }
    }
}

/// Runs `f(i)` for every i below `n` and returns the results in order.
pub fn map_tasks<R: Send>(n: usize, f: impl Fn(usize) -> R + Sync + Send) -> Vec<R> {
    if n > 1 && rayon::current_num_threads() > 1 { (0..n).into_par_iter().map(f).collect() } else { (0..n).map(f).collect() }
}

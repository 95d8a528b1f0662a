//! Attention of one head of one sequence in blocks of queries: scores never exist for more than a block, and backward recomputes
//! them from what it saved of the softmax. Queries and keys come rotated.
#![allow(unsafe_code)]

use super::super::cpu::gemm::{Packed, Start, View, Workers, multiply, multiply_shared};
use super::super::cpu::shared::Shared;
use super::super::cpu::transpose::transpose;
use super::super::cpu::{math, scratch};

/// Queries per block of scores. A row of scores belongs to a key and has the queries side by side, so that softmax runs from row to
/// row, every query in a lane of its own.
const BLOCK: usize = math::QUERIES;

/// Where a head's numbers lie in qkv (R, 3D) and out (R, D).
#[derive(Clone, Copy)]
pub struct Layout {
    pub seq_len: usize,
    pub heads: usize,
    pub width: usize,
}

impl Layout {
    pub fn head_width(&self) -> usize {
        self.width / self.heads
    }

    fn factor(&self) -> f32 {
        1.0 / (self.head_width() as f32).sqrt()
    }
}

/// A block of queries, or of gradients of their outputs, n rows of K that are `stride` apart: transposed (K, BLOCK), zeros after n.
fn turn(rows: &[f32], stride: usize, n: usize, k: usize, out: &mut [f32]) {
    assert!((n - 1) * stride + k <= rows.len() && out.len() == k * BLOCK && n <= BLOCK, "attention: a block has its rows");
    // SAFETY: n rows of k numbers to k rows of at least n, checked above.
    unsafe { transpose(rows.as_ptr(), stride, n, k, out.as_mut_ptr(), BLOCK) };
    for row in out.chunks_exact_mut(BLOCK) {
        row[n..].fill(0.0);
    }
}

/// A head's columns of `part` (0 query, 1 key, 2 value).
fn columns(qkv: &[f32], layout: Layout, head: usize, part: usize) -> View<'_> {
    let k = layout.head_width();
    View::strided(&qkv[part * layout.width + head * k..], layout.seq_len, k, 3 * layout.width)
}

/// Numbers that forward leaves to backward for each head of each sequence: of every query the largest score, and one over the sum
/// of the exponentials of what is left.
pub const SAVED: usize = 2;

/// `qkv`: the rows of one sequence. Writes the head's columns of `out`, which starts with the sequence's first row, and what
/// backward needs of the softmax.
///
/// # Safety
/// No other task touches this head's columns of `out` meanwhile.
pub unsafe fn forward(qkv: &[f32], layout: Layout, head: usize, out: Shared, saved: &mut [f32]) {
    let (t, k, width) = (layout.seq_len, layout.head_width(), layout.width);
    let (most, inverse) = saved.split_at_mut(t);
    let (key, value) = (columns(qkv, layout, head, 1), Packed::copy(columns(qkv, layout, head, 2)));
    let mut queries = scratch::take(k * BLOCK);
    let mut scores = scratch::take(t * BLOCK);
    for start in (0..t).step_by(BLOCK) {
        let end = (start + BLOCK).min(t);
        let n = end - start;
        turn(&qkv[start * 3 * width + head * k..], 3 * width, n, k, &mut queries);
        let queries = Packed::in_place(View::new(&queries, k, BLOCK));
        multiply(&mut scores, BLOCK, Start::Nothing, key.rows(0, end), &queries, layout.factor(), Workers::One);
        math::softmax_causal(&mut scores[..end * BLOCK], start, &mut most[start..end], &mut inverse[start..end]);
        let weights = View::new(&scores, end, BLOCK).cols(0, n).t();
        let at = start * width + head * k;
        // SAFETY (both): this head's columns of these rows; the caller's promise.
        unsafe { multiply_shared(out, at, width, false, weights, &value.first_rows(end), 1.0) };
        for (i, inverse) in inverse[start..end].iter().enumerate() {
            unsafe { out.part(at + i * width..at + i * width + k) }.iter_mut().for_each(|x| *x *= inverse);
        }
    }
}

/// Gradients of the head's columns of the rotated qkv, written to `dqkv`, which starts with the sequence's first row.
///
/// # Safety
/// No other task touches this head's columns of `dqkv` meanwhile.
pub unsafe fn backward(qkv: &[f32], out: &[f32], dout: &[f32], saved: &[f32], layout: Layout, head: usize, dqkv: Shared) {
    let (t, k, width) = (layout.seq_len, layout.head_width(), layout.width);
    let (most, inverse) = saved.split_at(t);
    let factor = layout.factor();
    let [query, key, value] = [0, 1, 2].map(|part| columns(qkv, layout, head, part));
    let (dout_view, keys) = (View::strided(&dout[head * k..], t, k, width), Packed::copy(key));
    let [mut queries_t, mut douts_t] = [0, 1].map(|_| scratch::take(k * BLOCK));
    let [mut weights, mut dscores] = [0, 1].map(|_| scratch::take(t * BLOCK));
    let mut dots = [0.0; BLOCK];
    let stride = 3 * width;
    // From the last block to the first: the last one sees every key, and so begins their sums.
    let blocks = t.div_ceil(BLOCK);
    for block in (0..blocks).rev() {
        let (start, end) = (block * BLOCK, ((block + 1) * BLOCK).min(t));
        let n = end - start;
        let add = block + 1 < blocks;
        turn(&qkv[start * stride + head * k..], stride, n, k, &mut queries_t);
        turn(&dout[start * width + head * k..], width, n, k, &mut douts_t);
        let [by_query, by_dout] = [&queries_t, &douts_t].map(|x| Packed::in_place(View::new(x, k, BLOCK)));
        multiply(&mut weights, BLOCK, Start::Nothing, key.rows(0, end), &by_query, factor, Workers::One);
        multiply(&mut dscores, BLOCK, Start::Nothing, value.rows(0, end), &by_dout, 1.0, Workers::One);
        // sum(dp * p) = dout . out, because out = sum(p * value)
        let from = start * width + head * k;
        math::row_dots(&dout[from..], &out[from..], width, k, &mut dots[..n]);
        let saved = (&most[start..end], &inverse[start..end], &dots[..n]);
        math::softmax_causal_backward(&mut weights[..end * BLOCK], &mut dscores[..end * BLOCK], start, saved, factor);
        let [weights, dscores] = [&weights, &dscores].map(|x| View::new(x, end, BLOCK).cols(0, n));
        let (queries, douts) = (Packed::copy(query.rows(start, end)), Packed::copy(dout_view.rows(start, end)));
        let column = head * k;
        // SAFETY: this head's columns of query, key and value; the caller's promise.
        unsafe {
            multiply_shared(dqkv, start * stride + column, stride, false, dscores.t(), &keys.first_rows(end), 1.0);
            multiply_shared(dqkv, width + column, stride, add, dscores, &queries, 1.0);
            multiply_shared(dqkv, 2 * width + column, stride, add, weights, &douts, 1.0);
        }
    }
}

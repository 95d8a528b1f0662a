//! Attention of one head of one sequence in blocks of queries: scores never exist for more than a block, and backward recomputes
//! them from what it saved of the softmax. Queries and keys come rotated.
#![allow(unsafe_code)]

use super::super::cpu::gemm::{Packed, Start, View, Workers, multiply, multiply_shared};
use super::super::cpu::shared::Shared;
use super::super::cpu::transpose::transpose;
use super::super::cpu::{math, scratch};

/// Queries per block of scores.
const BLOCK: usize = 32;
/// Scores of a row are a multiple of this many, so that vector loops have no rest.
const LANES: usize = 16;

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

    fn padded(&self) -> usize {
        self.seq_len.next_multiple_of(LANES)
    }

    /// Distance of the rows of a transposed head: not a power of two, whose rows would all want the same places of the cache.
    fn transposed_stride(&self) -> usize {
        self.padded() + LANES
    }

    fn factor(&self) -> f32 {
        1.0 / (self.head_width() as f32).sqrt()
    }
}

/// A head's keys or values (`part` 1 or 2): transposed (K, T padded with zeros).
fn transposed(qkv: &[f32], layout: Layout, head: usize, part: usize) -> scratch::Buffer {
    let (k, stride) = (layout.head_width(), layout.transposed_stride());
    let (t, from) = (layout.seq_len, &qkv[part * layout.width + head * k..]);
    assert!((t - 1) * 3 * layout.width + k <= from.len(), "attention: the sequence has its rows");
    let mut out = scratch::take(k * stride);
    // SAFETY: t rows of k numbers, checked above, to k rows of at least t.
    unsafe { transpose(from.as_ptr(), 3 * layout.width, t, k, out.as_mut_ptr(), stride) };
    for row in out.chunks_exact_mut(stride) {
        row[t..].fill(0.0);
    }
    out
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
    let key = transposed(qkv, layout, head, 1);
    let (query, value) = (columns(qkv, layout, head, 0), Packed::copy(columns(qkv, layout, head, 2)));
    let mut scores = scratch::take(BLOCK * layout.padded());
    for start in (0..t).step_by(BLOCK) {
        let end = (start + BLOCK).min(t);
        let (n, cols) = (end - start, end.next_multiple_of(LANES));
        let key = Packed::in_place(View::strided(&key, k, cols, layout.transposed_stride()));
        multiply(&mut scores, cols, Start::Nothing, query.rows(start, end), &key, layout.factor(), Workers::One);
        math::softmax_causal(&mut scores[..n * cols], cols, start, &mut most[start..end], &mut inverse[start..end]);
        let weights = View::strided(&scores, n, end, cols);
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
    let [key_t, value_t] = [1, 2].map(|part| transposed(qkv, layout, head, part));
    let (query, key) = (columns(qkv, layout, head, 0), Packed::copy(columns(qkv, layout, head, 1)));
    let dout_view = View::strided(&dout[head * k..], t, k, width);
    let mut weights = scratch::take(BLOCK * layout.padded());
    let mut dscores = scratch::take(BLOCK * layout.padded());
    let mut dots = [0.0; BLOCK];
    let stride = 3 * width;
    // From the last block to the first: the last one sees every key, and so begins their sums.
    let blocks = t.div_ceil(BLOCK);
    for block in (0..blocks).rev() {
        let (start, end) = (block * BLOCK, ((block + 1) * BLOCK).min(t));
        let (n, cols) = (end - start, end.next_multiple_of(LANES));
        let add = block + 1 < blocks;
        let [keys, values] = [&key_t, &value_t].map(|x| Packed::in_place(View::strided(x, k, cols, layout.transposed_stride())));
        multiply(&mut weights, cols, Start::Nothing, query.rows(start, end), &keys, factor, Workers::One);
        multiply(&mut dscores, cols, Start::Nothing, dout_view.rows(start, end), &values, 1.0, Workers::One);
        // sum(dp * p) = dout . out, because out = sum(p * value)
        let from = start * width + head * k;
        math::row_dots(&dout[from..], &out[from..], width, k, &mut dots[..n]);
        let saved = (&most[start..end], &inverse[start..end], &dots[..n]);
        math::softmax_causal_backward(&mut weights[..n * cols], &mut dscores[..n * cols], cols, start, saved, factor);
        let (weights, dscores) = (View::strided(&weights, n, end, cols), View::strided(&dscores, n, end, cols));
        let (queries, douts) = (Packed::copy(query.rows(start, end)), Packed::copy(dout_view.rows(start, end)));
        let column = head * k;
        // SAFETY: this head's columns of query, key and value; the caller's promise.
        unsafe {
            multiply_shared(dqkv, start * stride + column, stride, false, dscores, &key.first_rows(end), 1.0);
            multiply_shared(dqkv, width + column, stride, add, dscores.t(), &queries, 1.0);
            multiply_shared(dqkv, 2 * width + column, stride, add, weights.t(), &douts, 1.0);
        }
    }
}

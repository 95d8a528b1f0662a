//! Attention of one head of one sequence in blocks of queries: scores never exist for more than a block, and backward recomputes
//! them from what it saved of the softmax. Queries and keys come rotated.
#![allow(unsafe_code)]

use super::super::cpu::gemm::{Packed, Tall, View, multiply_shared, multiply_tall};
use super::super::cpu::shared::Shared;
use super::super::cpu::transpose::transpose;
use super::super::cpu::{math, scratch};

/// Queries per block of scores. A row of scores belongs to a key and has the queries side by side, so that softmax runs from row to
/// row, every query in a lane of its own.
const BLOCK: usize = math::QUERIES;
/// The first half of a block does not see the keys of the second.
const HALF: usize = BLOCK / 2;
/// Rows of a head this far apart still stay in the nearest cache together.
const IN_PLACE_TO_STRIDE: usize = 256;

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

/// A block of queries and what they see: rows of scores up to `upper` belong to keys that all of its queries may see or that lie in its
/// first half, those from there to `end` to keys that only its second half may see.
#[derive(Clone, Copy)]
struct Block {
    start: usize,
    upper: usize,
    end: usize,
}

impl Block {
    fn at(start: usize, seq_len: usize) -> Self {
        Self { start, upper: (start + HALF).min(seq_len), end: (start + BLOCK).min(seq_len) }
    }

    /// Both halves: the first query and the one past the last, as columns of the block, and the keys they see.
    fn halves(self) -> impl Iterator<Item = (usize, usize, usize)> {
        let Self { start, upper, end } = self;
        [(0, upper - start, upper), (HALF, end - start, end)].into_iter().filter(|&(first, last, _)| first < last)
    }

    /// scores (keys, queries) = factor * left right, for right (K, BLOCK); of what nobody may see only the half nearest to the diagonal.
    fn scores(self, out: &mut [f32], left: &Tall, right: &[f32], factor: f32) {
        let right = View::new(right, right.len() / BLOCK, BLOCK);
        multiply_tall(out, BLOCK, left, (0, self.upper), &Packed::in_place(right), factor);
        if self.upper < self.end {
            let second = Packed::in_place(right.cols(HALF, BLOCK));
            multiply_tall(&mut out[HALF..], BLOCK, left, (self.upper, self.end), &second, factor);
        }
    }
}

/// Rows of a head as the right matrix of a product: where they are, if they fill registers and lie close together.
fn right(rows: View<'_>) -> Packed<'_> {
    if rows.row_stride() <= IN_PLACE_TO_STRIDE && Packed::fills_registers(rows) {
        Packed::in_place(rows)
    } else {
        Packed::copy(rows)
    }
}

/// `qkv`: the rows of one sequence. Writes the head's columns of `out`, which starts with the sequence's first row, and what
/// backward needs of the softmax.
///
/// # Safety
/// No other task touches this head's columns of `out` meanwhile.
pub unsafe fn forward(qkv: &[f32], layout: Layout, head: usize, out: Shared, saved: &mut [f32]) {
    let (t, k, width) = (layout.seq_len, layout.head_width(), layout.width);
    let (most, inverse) = saved.split_at_mut(t);
    let (key, value) = (Tall::new(columns(qkv, layout, head, 1)), right(columns(qkv, layout, head, 2)));
    let mut queries = scratch::take(k * BLOCK);
    let mut scores = scratch::take(t * BLOCK);
    for start in (0..t).step_by(BLOCK) {
        let block = Block::at(start, t);
        let end = block.end;
        let at = start * width + head * k;
        // Far away until now: asked for while scores are computed.
        (0..end - start).for_each(|i| math::fetch(out.pointer().wrapping_add(at + i * width), k));
        turn(&qkv[start * 3 * width + head * k..], 3 * width, end - start, k, &mut queries);
        block.scores(&mut scores, &key, &queries, layout.factor());
        math::softmax_causal(&mut scores[..end * BLOCK], start, &mut most[start..end], &mut inverse[start..end]);
        for (first, last, keys) in block.halves() {
            let weights = View::new(&scores, keys, BLOCK).cols(first, last).t();
            // SAFETY: this head's columns of these rows; the caller's promise.
            unsafe { multiply_shared(out, at + first * width, width, false, weights, &value.rows(0, keys), 1.0) };
        }
        for (i, inverse) in inverse[start..end].iter().enumerate() {
            // SAFETY: as above.
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
    let (dout_view, keys) = (View::strided(&dout[head * k..], t, k, width), right(key));
    let [key, value] = [key, value].map(Tall::new);
    let [mut queries_t, mut douts_t] = [0, 1].map(|_| scratch::take(k * BLOCK));
    let [mut weights, mut dscores] = [0, 1].map(|_| scratch::take(t * BLOCK));
    let mut dots = [0.0; BLOCK];
    let (stride, column) = (3 * width, head * k);
    // From the last block to the first: the last one sees every key, and so begins their sums.
    let blocks = t.div_ceil(BLOCK);
    for number in (0..blocks).rev() {
        let block = Block::at(number * BLOCK, t);
        let Block { start, upper, end } = block;
        let n = end - start;
        turn(&qkv[start * stride + column..], stride, n, k, &mut queries_t);
        turn(&dout[start * width + column..], width, n, k, &mut douts_t);
        block.scores(&mut weights, &key, &queries_t, factor);
        block.scores(&mut dscores, &value, &douts_t, 1.0);
        // sum(dp * p) = dout . out, because out = sum(p * value)
        let from = start * width + column;
        math::row_dots(&dout[from..], &out[from..], width, k, &mut dots[..n]);
        let saved = (&most[start..end], &inverse[start..end], &dots[..n]);
        math::softmax_causal_backward(&mut weights[..end * BLOCK], &mut dscores[..end * BLOCK], start, saved);
        for (first, last, seen) in block.halves() {
            let dscores = View::new(&dscores, seen, BLOCK).cols(first, last).t();
            // SAFETY: this head's columns of the queries; the caller's promise.
            unsafe {
                multiply_shared(dqkv, (start + first) * stride + column, stride, false, dscores, &keys.rows(0, seen), factor)
            };
        }
        let add = number + 1 < blocks;
        for (part, scores, rows, factor) in [(1, &dscores, query, factor), (2, &weights, dout_view, 1.0)] {
            let scores = View::new(scores, end, BLOCK);
            let at = part * width + column;
            // SAFETY: this head's columns of the keys, of the values; the caller's promise.
            unsafe {
                let all = right(rows.rows(start, end));
                multiply_shared(dqkv, at, stride, add, scores.rows(0, upper).cols(0, n), &all, factor);
                if upper < end {
                    let scores = scores.rows(upper, end).cols(HALF, n);
                    multiply_shared(dqkv, at + upper * stride, stride, add, scores, &all.rows(HALF, n), factor);
                }
            }
        }
    }
}

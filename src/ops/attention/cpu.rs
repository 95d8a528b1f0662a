//! Attention one head at a time in blocks of queries: scores never exist for more than a block, and backward recomputes
//! them from the saved log-sums. A task is one head of one sequence; tasks share nothing, so threads cannot change a bit.

use super::super::cpu::gemm::{View, matmul_serial};
use super::super::cpu::view::as_slice;
use super::super::cpu::{math, rows};
use super::super::rope::RopeTable;
use super::super::{Matrix, oracle, take_grad};
use super::{CausalAttention, Heads};
use dfdx::prelude::*;

/// Queries per block of scores.
const BLOCK: usize = 64;

/// Where a head's numbers lie in qkv (R, 3D) and out (R, D).
#[derive(Clone, Copy)]
struct Layout {
    seq_len: usize,
    heads: usize,
    width: usize,
}

impl Layout {
    fn head_width(&self) -> usize {
        self.width / self.heads
    }

    /// (sequence, head) of a task.
    fn task(&self, task: usize) -> (usize, usize) {
        (task / self.heads, task % self.heads)
    }
}

impl CausalAttention for Cpu {
    fn causal_attention<T: Tape<f32, Self>>(
        qkv: Matrix<Self, T>,
        rope: &RopeTable<Self>,
        Heads { seq_len, heads }: Heads,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(qkv, rope, Heads { seq_len, heads });
        }
        let (qkv, mut tape) = qkv.split_tape();
        let dev = qkv.device().clone();
        let (n_rows, three_widths) = *qkv.shape();
        let layout = Layout { seq_len, heads, width: three_widths / 3 };
        assert_eq!(n_rows % seq_len, 0, "attention: whole sequences");
        assert_eq!(layout.width % (2 * heads), 0, "attention: heads of even width divide the model width");
        assert!(rope.cos.shape().0 >= seq_len, "attention: the rope table covers the sequence");
        let tasks = n_rows / seq_len * heads;
        let heads_out = rows::map_tasks(tasks, |i| forward_head(as_slice(&qkv), rope, layout, i));
        let mut out = vec![0.0; n_rows * layout.width];
        join_heads(&mut out, layout, layout.width, |i, _| &heads_out[i].0);
        let log_sums: Vec<Vec<f32>> = heads_out.into_iter().map(|(_, log_sums)| log_sums).collect();
        let y = dev.try_tensor_from_vec(out, (n_rows, layout.width))?;
        if T::OWNS_TAPE {
            let rope = rope.clone();
            let saved = y.clone();
            tape.add_backward_op(move |grads| {
                let dy = take_grad!(grads, &saved, &dev);
                let parts = rows::map_tasks(tasks, |i| {
                    backward_head(as_slice(&qkv), as_slice(&saved), &dy, &log_sums[i], &rope, layout, i)
                });
                join_heads(grads.get_or_alloc_mut(&qkv)?, layout, 3 * layout.width, |i, part| &parts[i][part]);
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

/// Adds every head's (T, K) numbers into its columns of `out`; columns are `stride / D` parts of D. A task is a sequence.
fn join_heads<'a>(out: &mut [f32], layout: Layout, stride: usize, head: impl Fn(usize, usize) -> &'a Vec<f32> + Sync) {
    let k = layout.head_width();
    rows::for_pieces(out, layout.seq_len * stride, |sequence, out| {
        for part in 0..stride / layout.width {
            for h in 0..layout.heads {
                let columns = &mut out[part * layout.width + h * k..];
                math::add_rows(head(sequence * layout.heads + h, part), columns, stride, k);
            }
        }
    });
}

/// One head's columns of `part` (0 query, 1 key, 2 value) as a contiguous (T, K).
fn copy_head(qkv: &[f32], rope: &RopeTable<Cpu>, layout: Layout, task: usize, part: usize) -> Vec<f32> {
    let (sequence, head) = layout.task(task);
    let (k, stride) = (layout.head_width(), 3 * layout.width);
    let mut out = vec![0.0; layout.seq_len * k];
    let source = &qkv[sequence * layout.seq_len * stride + part * layout.width + head * k..];
    if part < 2 {
        math::rotate_rows(source, stride, as_slice(&rope.cos), as_slice(&rope.sin), 1.0, &mut out, k);
    } else {
        for (t, out) in out.chunks_exact_mut(k).enumerate() {
            out.copy_from_slice(&source[t * stride..][..k]);
        }
    }
    out
}

/// The head's output (T, K) and the log-sum of each query's scores.
fn forward_head(qkv: &[f32], rope: &RopeTable<Cpu>, layout: Layout, task: usize) -> (Vec<f32>, Vec<f32>) {
    let (t, k) = (layout.seq_len, layout.head_width());
    let [query, key, value] = [0, 1, 2].map(|part| copy_head(qkv, rope, layout, task, part));
    let factor = 1.0 / (k as f32).sqrt();
    let mut out = vec![0.0; t * k];
    let mut log_sums = vec![0.0; t];
    let mut scores = vec![0.0; BLOCK.min(t) * t];
    for start in (0..t).step_by(BLOCK) {
        let end = (start + BLOCK).min(t);
        let scores = &mut scores[..(end - start) * end];
        matmul_serial(scores, end, false, View::new(&query[start * k..], end - start, k), View::new(&key, end, k).t(), factor);
        for (i, row) in (start..end).zip(scores.chunks_exact_mut(end)) {
            let (seen, future) = row.split_at_mut(i + 1);
            log_sums[i] = math::softmax(seen);
            future.fill(0.0);
        }
        matmul_serial(&mut out[start * k..], k, false, View::new(scores, end - start, end), View::new(&value, end, k), 1.0);
    }
    (out, log_sums)
}

/// Gradients of the head's query, key and value columns, (T, K) each.
fn backward_head(
    qkv: &[f32],
    out: &[f32],
    dout: &[f32],
    log_sums: &[f32],
    rope: &RopeTable<Cpu>,
    layout: Layout,
    task: usize,
) -> [Vec<f32>; 3] {
    let (t, k, width) = (layout.seq_len, layout.head_width(), layout.width);
    let (sequence, head) = layout.task(task);
    let [query, key, value] = [0, 1, 2].map(|part| copy_head(qkv, rope, layout, task, part));
    let factor = 1.0 / (k as f32).sqrt();
    // Rows of this head inside (R, D).
    let offset = sequence * t * width + head * k;
    let [mut dquery, mut dkey, mut dvalue] = [0, 1, 2].map(|_| vec![0.0; t * k]);
    let mut weights = vec![0.0; BLOCK.min(t) * t];
    let mut dscores = vec![0.0; BLOCK.min(t) * t];
    for start in (0..t).step_by(BLOCK) {
        let end = (start + BLOCK).min(t);
        let n = end - start;
        let weights = &mut weights[..n * end];
        let dscores = &mut dscores[..n * end];
        let query = View::new(&query[start * k..], n, k);
        let dout_block = View::strided(&dout[offset + start * width..], n, k, width);
        matmul_serial(weights, end, false, query, View::new(&key, end, k).t(), factor);
        matmul_serial(dscores, end, false, dout_block, View::new(&value, end, k).t(), 1.0);
        for (i, (row, drow)) in (start..end).zip(weights.chunks_exact_mut(end).zip(dscores.chunks_exact_mut(end))) {
            let (seen, future) = row.split_at_mut(i + 1);
            let (dseen, dfuture) = drow.split_at_mut(i + 1);
            math::softmax_known(seen, log_sums[i]);
            // sum(dp * p) = dout . out, because out = sum(p * value)
            let at = offset + i * width;
            let row_dot = math::dot(&dout[at..at + k], &out[at..at + k]);
            math::softmax_backward(seen, dseen, row_dot, factor);
            future.fill(0.0);
            dfuture.fill(0.0);
        }
        matmul_serial(&mut dquery[start * k..], k, false, View::new(dscores, n, end), View::new(&key, end, k), 1.0);
        matmul_serial(&mut dkey, k, true, View::new(dscores, n, end).t(), query, 1.0);
        matmul_serial(&mut dvalue, k, true, View::new(weights, n, end).t(), dout_block, 1.0);
    }
    let unrotate = |x: Vec<f32>| {
        let mut out = vec![0.0; t * k];
        math::rotate_rows(&x, k, as_slice(&rope.cos), as_slice(&rope.sin), -1.0, &mut out, k);
        out
    };
    [unrotate(dquery), unrotate(dkey), dvalue]
}

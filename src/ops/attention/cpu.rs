//! Attention as an op of its own, for looking at one branch; training runs it inside the block. A task is one head of one
//! sequence; tasks share nothing, so threads cannot change a bit.
#![allow(unsafe_code)]

use super::super::cpu::shared::Shared;
use super::super::cpu::view::as_slice;
use super::super::cpu::{math, pool};
use super::super::rope::RopeTable;
use super::super::{Matrix, oracle, take_grad};
use super::heads::{self, Layout};
use super::{CausalAttention, Heads};
use dfdx::prelude::*;

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
        let mut rotated = as_slice(&qkv).to_vec();
        turn(&mut rotated, rope, layout, 1.0);
        let mut out = vec![0.0; n_rows * layout.width];
        let mut softmax = vec![0.0; super::heads::SAVED * n_rows * heads];
        forward(&rotated, layout, &mut out, &mut softmax);
        let y = dev.try_tensor_from_vec(out, (n_rows, layout.width))?;
        if T::OWNS_TAPE {
            let rope = rope.clone();
            let saved = y.clone();
            tape.add_backward_op(move |grads| {
                let dout = take_grad!(grads, &saved, &dev);
                let mut dqkv = vec![0.0; rotated.len()];
                backward(&rotated, as_slice(&saved), &dout, &softmax, layout, &mut dqkv);
                turn(&mut dqkv, &rope, layout, -1.0);
                math::add_scaled(grads.get_or_alloc_mut(&qkv)?, &dqkv, 1.0);
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

/// Turns queries and keys of whole sequences by their positions, or back if `sign` is -1.
pub fn turn(qkv: &mut [f32], rope: &RopeTable<Cpu>, layout: Layout, sign: f32) {
    let stride = 3 * layout.width;
    for sequence in qkv.chunks_exact_mut(layout.seq_len * stride) {
        math::rotate(sequence, stride, as_slice(&rope.cos), as_slice(&rope.sin), sign, 2 * layout.heads, layout.head_width());
    }
}

/// All heads of all sequences in `qkv`, on all threads. `saved` are 2T numbers for each head of each sequence.
pub fn forward(qkv: &[f32], layout: Layout, out: &mut [f32], saved: &mut [f32]) {
    let length = layout.seq_len * layout.width;
    let out = Shared::new(out);
    pool::each(saved.chunks_mut(heads::SAVED * layout.seq_len).enumerate().collect(), |(task, saved)| {
        let (sequence, head) = (task / layout.heads, task % layout.heads);
        let out = out.rest(sequence * length..(sequence + 1) * length);
        // SAFETY: tasks of one sequence write to columns of different heads.
        unsafe { heads::forward(&qkv[3 * sequence * length..][..3 * length], layout, head, out, saved) };
    });
}

/// The gradient of the rotated qkv.
pub fn backward(qkv: &[f32], out: &[f32], dout: &[f32], saved: &[f32], layout: Layout, dqkv: &mut [f32]) {
    let length = layout.seq_len * layout.width;
    let dqkv = Shared::new(dqkv);
    pool::each(saved.chunks(heads::SAVED * layout.seq_len).enumerate().collect(), |(task, saved)| {
        let (sequence, head) = (task / layout.heads, task % layout.heads);
        let rows = sequence * length..(sequence + 1) * length;
        let three = 3 * rows.start..3 * rows.end;
        let dqkv = dqkv.rest(three.clone());
        // SAFETY: tasks of one sequence write to columns of different heads.
        unsafe { heads::backward(&qkv[three], &out[rows.clone()], &dout[rows], saved, layout, head, dqkv) };
    });
}

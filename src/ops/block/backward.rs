//! The block backward, on the CPU. `dy` is turned in place into the gradient of the block's input, and added to `dx`.
//!
//! A unit of a small block: from end to beginning on one thread, all in cache. Everything else: step by step over all rows on all threads;
//! a weight gradient is one product over all of them.
#![allow(unsafe_code)]

use super::super::attention::cpu as attention;
use super::super::attention::heads;
use super::super::cpu::clock::{Part as Timed, span};
use super::super::cpu::gemm::{Packed, Start, Then, View, Workers, multiply, multiply_then};
use super::super::cpu::scratch;
use super::super::cpu::shared::Shared;
use super::super::cpu::{math, pool, rows};
use super::cpu::Sizes;
use super::forward::Saved;
use super::job::{Job, Packs, Pass};
use super::{BlockShape, BlockWeights};
use dfdx::prelude::*;

/// The gradients of the weights, added to.
pub struct Totals<'a> {
    pub attention_norm: &'a mut [f32],
    pub qkv: &'a mut [f32],
    pub attention_out: &'a mut [f32],
    pub mlp_norm: &'a mut [f32],
    pub gate_up: &'a mut [f32],
    pub down: &'a mut [f32],
}

#[allow(clippy::too_many_arguments, reason = "a block and what forward left of it")]
pub fn run(
    x: &[f32],
    weights: &BlockWeights<Cpu>,
    packs: Option<&Packs>,
    shape: &BlockShape<Cpu>,
    sizes: Sizes,
    saved: Saved,
    gradients: (&mut [f32], &mut [f32]),
    totals: Totals,
) {
    let job = Job::new(weights, packs, shape, sizes, Pass::Backward);
    if sizes.one_unit() {
        job.backward_unit(x, saved, gradients, totals)
    } else {
        job.backward_in_phases(x, saved, gradients, totals)
    }
}

impl Job<'_> {
    /// Some whole sequences from end to beginning, on this thread.
    fn backward_unit(&self, x: &[f32], mut saved: Saved, (dy, dx): (&mut [f32], &mut [f32]), totals: Totals) {
        let (d, f, t) = (self.sizes.width, self.sizes.inner, self.layout.seq_len);
        let rows = x.len() / d;
        let one = Workers::One;
        let scale = self.shape.branch_scale;
        let mut normed = scratch::take(rows * d);
        {
            let mut active = scratch::take(rows * f);
            self.through_down(dy, &mut saved.gate_up, &mut active, one);
            weight_gradient(rows, dy, &active, totals.down, scale, one, [&saved.middle, &saved.mixed]);
        }
        let mut dmixed = scratch::take(rows * d);
        let dgate_up = &saved.gate_up;
        math::rms_norm_again(&saved.middle, self.gains[1], &saved.inverse[1], &mut normed);
        weight_gradient(rows, dgate_up, &normed, totals.gate_up, 1.0, one, halves(&saved.qkv));
        self.through_gate_up(dgate_up, &saved.middle, &saved.inverse[1], dy, totals.mlp_norm, one);
        weight_gradient(rows, dy, &saved.mixed, totals.attention_out, scale, one, halves(x));
        self.through_attention_out(dy, &mut dmixed, one);
        let mut dqkv = scratch::take(rows * 3 * d);
        let timed = span(Timed::AttentionBackward);
        {
            let shared = Shared::new(&mut dqkv);
            for (task, softmax) in saved.softmax.chunks_exact(heads::SAVED * t).enumerate() {
                let (sequence, head) = (task / self.layout.heads, task % self.layout.heads);
                let span = sequence * t * d..(sequence + 1) * t * d;
                let three = 3 * span.start..3 * span.end;
                let (out, dout) = (&saved.mixed[span.clone()], &dmixed[span]);
                // SAFETY: one head at a time, on one thread.
                unsafe {
                    heads::backward(&saved.qkv[three.clone()], out, dout, softmax, self.layout, head, shared.rest(three));
                }
            }
        }
        attention::turn(&mut dqkv, &self.shape.rope, self.layout, -1.0);
        drop(timed);
        math::rms_norm_again(x, self.gains[0], &saved.inverse[0], &mut normed);
        weight_gradient(rows, &dqkv, &normed, totals.qkv, 1.0, one, [&[]; 2]);
        self.through_qkv(&dqkv, x, &saved.inverse[0], dy, totals.attention_norm, one);
        math::add_scaled(dx, dy, 1.0);
    }

    fn backward_in_phases(&self, x: &[f32], mut saved: Saved, (dy, dx): (&mut [f32], &mut [f32]), totals: Totals) {
        let (n, d, f) = (self.sizes.rows, self.sizes.width, self.sizes.inner);
        let (rows, workers) = (self.sizes.piece_rows(), self.sizes.piece_workers());
        let scale = self.shape.branch_scale;
        let all = |outer: usize, inner: usize| Workers::for_work(n * outer * inner);
        let mut normed = scratch::take(n * d);
        {
            let mut active = scratch::take(n * f);
            let pieces = active.chunks_mut(rows * f).zip(saved.gate_up.chunks_mut(rows * 2 * f)).zip(dy.chunks(rows * d));
            pool::each(pieces.collect(), |((active, gate_up), dy)| self.through_down(dy, gate_up, active, workers));
            weight_gradient(n, dy, &active, totals.down, scale, all(d, f), [&[]; 2]);
        }
        let mut dmixed = scratch::take(n * d);
        let mut gains = scratch::zeros(n.div_ceil(rows) * d);
        {
            let (middle, inverse, dgate_up) = (&saved.middle, &saved.inverse[1], &saved.gate_up);
            let pieces = normed.chunks_mut(rows * d).zip(dmixed.chunks_mut(rows * d)).zip(dy.chunks_mut(rows * d));
            let pieces = pieces.zip(gains.chunks_mut(d).zip(dgate_up.chunks(rows * 2 * f)));
            let pieces = pieces.zip(middle.chunks(rows * d).zip(inverse.chunks(rows)));
            pool::each(pieces.collect(), |((((normed, dmixed), dy), (gain, dgate_up)), (middle, inverse))| {
                math::rms_norm_again(middle, self.gains[1], inverse, normed);
                self.through_gate_up(dgate_up, middle, inverse, dy, gain, workers);
                self.through_attention_out(dy, dmixed, workers);
            });
        }
        add_in_order(totals.mlp_norm, &gains);
        weight_gradient(n, &saved.gate_up, &normed, totals.gate_up, 1.0, all(2 * f, d), [&[]; 2]);
        weight_gradient(n, dy, &saved.mixed, totals.attention_out, scale, all(d, d), [&[]; 2]);
        let mut dqkv = scratch::take(n * 3 * d);
        let timed = span(Timed::AttentionBackward);
        attention::backward(&saved.qkv, &saved.mixed, &dmixed, &saved.softmax, self.layout, &mut dqkv);
        rows::for_pieces(&mut dqkv, self.layout.seq_len * 3 * d, |_, dqkv| {
            attention::turn(dqkv, &self.shape.rope, self.layout, -1.0);
        });
        drop(timed);
        let dy = dy.chunks_mut(rows * d).zip(dx.chunks_mut(rows * d));
        let pieces = normed.chunks_mut(rows * d).zip(dy).zip(dqkv.chunks(rows * 3 * d));
        gains.fill(0.0);
        let pieces = pieces.zip(gains.chunks_mut(d).zip(x.chunks(rows * d).zip(saved.inverse[0].chunks(rows))));
        pool::each(pieces.collect(), |(((normed, (dy, dx)), dqkv), (gain, (x, inverse)))| {
            math::rms_norm_again(x, self.gains[0], inverse, normed);
            self.through_qkv(dqkv, x, inverse, dy, gain, workers);
            math::add_scaled(dx, dy, 1.0);
        });
        add_in_order(totals.attention_norm, &gains);
        weight_gradient(n, &dqkv, &normed, totals.qkv, 1.0, all(3 * d, d), [&[]; 2]);
    }

    /// From the output's gradient to that of (gate, up), in its place; `active` becomes silu(gate) * up.
    fn through_down(&self, dy: &[f32], gate_up: &mut [f32], active: &mut [f32], workers: Workers) {
        let _timed = span(Timed::MlpBackward);
        let (d, f) = (self.sizes.width, self.sizes.inner);
        let dy = View::new(dy, dy.len() / d, d);
        multiply(active, f, Start::Nothing, dy, &self.right.down, self.shape.branch_scale, workers);
        math::swiglu_rows_backward(gate_up, active, f);
    }

    /// From the gradient of (gate, up) to that of the stream between the branches, in place of the output's.
    fn through_gate_up(
        &self,
        dgate_up: &[f32],
        middle: &[f32],
        inverse: &[f32],
        dy: &mut [f32],
        gain: &mut [f32],
        workers: Workers,
    ) {
        let _timed = span(Timed::MlpBackward);
        let (d, f) = (self.sizes.width, self.sizes.inner);
        let rows = middle.len() / d;
        let mut dnormed = scratch::take(rows * d);
        let view = View::new(dgate_up, rows, 2 * f);
        multiply(&mut dnormed, d, Start::Nothing, view, &self.right.gate_up, 1.0, workers);
        math::rms_norm_rows_backward(middle, self.gains[1], inverse, &dnormed, dy, gain);
    }

    fn through_attention_out(&self, dy: &[f32], dmixed: &mut [f32], workers: Workers) {
        let _timed = span(Timed::AttentionOutBackward);
        let d = self.sizes.width;
        let view = View::new(dy, dy.len() / d, d);
        multiply(dmixed, d, Start::Nothing, view, &self.right.attention_out, self.shape.branch_scale, workers);
    }

    /// From the gradient of qkv to that of the block's input, in place of that of the stream between the branches.
    fn through_qkv(&self, dqkv: &[f32], x: &[f32], inverse: &[f32], dy: &mut [f32], gain: &mut [f32], workers: Workers) {
        let _timed = span(Timed::QkvBackward);
        let d = self.sizes.width;
        let rows = x.len() / d;
        let mut dnormed = scratch::take(rows * d);
        multiply(&mut dnormed, d, Start::Nothing, View::new(dqkv, rows, 3 * d), &self.right.qkv, 1.0, workers);
        math::rms_norm_rows_backward(x, self.gains[0], inverse, &dnormed, dy, gain);
    }
}

/// total (outer, inner) += factor * dy^T x, for dy (rows, outer) and x (rows, inner). `then` is what is read next of what forward
/// saved: far away by now, it comes while the product is computed.
fn weight_gradient(rows: usize, dy: &[f32], x: &[f32], total: &mut [f32], factor: f32, workers: Workers, then: Then) {
    let _timed = span(Timed::WeightGradients);
    let (outer, inner) = (dy.len() / rows, x.len() / rows);
    assert_eq!(total.len(), outer * inner, "weight_gradient: sizes agree");
    let x = Packed::new(View::new(x, rows, inner), workers);
    multiply_then(total, inner, Start::Out, View::new(dy, rows, outer).t(), &x, factor, workers, then);
}

fn halves(numbers: &[f32]) -> Then<'_> {
    let (one, other) = numbers.split_at(numbers.len() / 2);
    [one, other]
}

/// total += each of the parts, which are as long as it and lie one after another.
fn add_in_order(total: &mut [f32], parts: &[f32]) {
    for part in parts.chunks_exact(total.len()) {
        math::add_scaled(total, part, 1.0);
    }
}

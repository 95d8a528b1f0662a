//! The block forward, on the CPU: rows of whole sequences at a time, from norm to norm while they are in cache.
#![allow(unsafe_code)]

use super::super::attention::cpu as attention;
use super::super::attention::heads;
use super::super::cpu::clock::{Part as Timed, span};
use super::super::cpu::gemm::{self, Start, View, Workers, multiply};
use super::super::cpu::scratch::{self, Buffer};
use super::super::cpu::shared::Shared;
use super::super::cpu::{math, pool};
use super::cpu::Sizes;
use super::job::{Job, Packs, Pass};
use super::{BlockShape, BlockWeights};
use dfdx::prelude::*;
use std::mem::MaybeUninit;

/// What backward needs: R rows of each.
pub struct Saved {
    /// (R, 3D), queries and keys rotated
    pub qkv: Buffer,
    /// 2T numbers for each head of each sequence
    pub softmax: Buffer,
    /// (R, D): what the heads gave
    pub mixed: Buffer,
    /// (R, D): the stream between the branches
    pub middle: Buffer,
    /// (R, 2F)
    pub gate_up: Buffer,
    /// One over the root mean square of the rows of the two norms
    pub inverse: [Buffer; 2],
}

/// The same for some rows, to be written.
struct Part<'a> {
    qkv: &'a mut [f32],
    softmax: &'a mut [f32],
    mixed: &'a mut [f32],
    middle: &'a mut [f32],
    gate_up: &'a mut [f32],
    inverse: [&'a mut [f32]; 2],
    out: &'a mut [MaybeUninit<f32>],
}

pub fn run(
    x: &[f32],
    weights: &BlockWeights<Cpu>,
    packs: Option<&Packs>,
    shape: &BlockShape<Cpu>,
    sizes: Sizes,
) -> (Vec<f32>, Saved) {
    let Sizes { rows, width: d, inner: f, .. } = sizes;
    let job = Job::new(weights, packs, shape, sizes, Pass::Forward);
    let mut saved = Saved {
        qkv: scratch::take(rows * 3 * d),
        softmax: scratch::take(rows * heads::SAVED * shape.heads.heads),
        mixed: scratch::take(rows * d),
        middle: scratch::take(rows * d),
        gate_up: scratch::take(rows * 2 * f),
        inverse: [scratch::take(rows), scratch::take(rows)],
    };
    let mut out = Vec::with_capacity(rows * d);
    let fresh = &mut out.spare_capacity_mut()[..rows * d];
    let unit = sizes.unit_rows();
    let heads = shape.heads.heads;
    let units = rows.div_ceil(unit);
    if units >= 2 * pool::threads() || pool::threads() == 1 {
        let [first, second] = &mut saved.inverse;
        let parts: Vec<Part> = saved
            .qkv
            .chunks_mut(unit * 3 * d)
            .zip(saved.softmax.chunks_mut(unit * heads::SAVED * heads))
            .zip(saved.mixed.chunks_mut(unit * d).zip(saved.middle.chunks_mut(unit * d)))
            .zip(saved.gate_up.chunks_mut(unit * 2 * f).zip(fresh.chunks_mut(unit * d)))
            .zip(first.chunks_mut(unit).zip(second.chunks_mut(unit)))
            .map(|((((qkv, softmax), (mixed, middle)), (gate_up, out)), (first, second))| Part {
                qkv,
                softmax,
                mixed,
                middle,
                gate_up,
                inverse: [first, second],
                out,
            })
            .collect();
        pool::each(parts.into_iter().zip(x.chunks(unit * d)).collect(), |(part, x)| job.forward_unit(x, part));
    } else {
        job.forward_in_phases(x, &mut saved, fresh);
    }
    // SAFETY: the units, or the pieces, are all rows, and `finish` has written each.
    unsafe { out.set_len(rows * d) };
    (out, saved)
}

impl Job<'_> {
    /// Some whole sequences from beginning to end, on this thread.
    fn forward_unit(&self, x: &[f32], part: Part) {
        let (t, d) = (self.layout.seq_len, self.layout.width);
        self.project(x, part.qkv, part.inverse[0], Workers::One);
        let timed = span(Timed::Attention);
        attention::turn(part.qkv, &self.shape.rope, self.layout, 1.0);
        let mixed = Shared::new(&mut *part.mixed);
        for (task, softmax) in part.softmax.chunks_exact_mut(heads::SAVED * t).enumerate() {
            let (sequence, head) = (task / self.layout.heads, task % self.layout.heads);
            let out = mixed.rest(sequence * t * d..(sequence + 1) * t * d);
            // SAFETY: one head at a time, on one thread.
            unsafe { heads::forward(&part.qkv[sequence * 3 * t * d..][..3 * t * d], self.layout, head, out, softmax) };
        }
        drop(timed);
        self.finish(x, part.mixed, part.middle, part.gate_up, part.inverse[1], part.out, Workers::One);
    }

    /// All sequences step by step, each step on all threads: for few and long sequences.
    fn forward_in_phases(&self, x: &[f32], saved: &mut Saved, out: &mut [MaybeUninit<f32>]) {
        let (d, f) = (self.sizes.width, self.sizes.inner);
        let (rows, workers) = (self.sizes.piece_rows(), self.sizes.piece_workers());
        let [first, second] = &mut saved.inverse;
        let pieces = saved.qkv.chunks_mut(rows * 3 * d).zip(first.chunks_mut(rows)).zip(x.chunks(rows * d));
        pool::each(pieces.collect(), |((qkv, inverse), x)| self.project(x, qkv, inverse, workers));
        let timed = span(Timed::Attention);
        pool::each(saved.qkv.chunks_mut(self.layout.seq_len * 3 * d).collect(), |qkv| {
            attention::turn(qkv, &self.shape.rope, self.layout, 1.0);
        });
        attention::forward(&saved.qkv, self.layout, &mut saved.mixed, &mut saved.softmax);
        drop(timed);
        let pieces = saved
            .middle
            .chunks_mut(rows * d)
            .zip(saved.gate_up.chunks_mut(rows * 2 * f).zip(out.chunks_mut(rows * d)))
            .zip(second.chunks_mut(rows))
            .zip(saved.mixed.chunks(rows * d).zip(x.chunks(rows * d)));
        pool::each(pieces.collect(), |(((middle, (gate_up, out)), inverse), (mixed, x))| {
            self.finish(x, mixed, middle, gate_up, inverse, out, workers);
        });
    }

    /// qkv = LN(x) W^T
    fn project(&self, x: &[f32], qkv: &mut [f32], inverse: &mut [f32], workers: Workers) {
        let _timed = span(Timed::Qkv);
        let d = self.sizes.width;
        let mut normed = scratch::take(x.len());
        math::rms_norm_rows(x, self.gains[0], self.shape.norm_eps, &mut normed, inverse);
        let normed = View::new(&normed, x.len() / d, d);
        multiply(qkv, 3 * d, Start::Nothing, normed, &self.right.qkv, 1.0, workers);
    }

    /// From what the heads gave to the output of the block, all of which is written.
    #[allow(clippy::too_many_arguments, reason = "parts of one row, borrowed apart")]
    fn finish(
        &self,
        x: &[f32],
        mixed: &[f32],
        middle: &mut [f32],
        gate_up: &mut [f32],
        inverse: &mut [f32],
        out: &mut [MaybeUninit<f32>],
        workers: Workers,
    ) {
        let _timed = span(Timed::Mlp);
        let (d, f, scale) = (self.sizes.width, self.sizes.inner, self.shape.branch_scale);
        let rows = x.len() / d;
        multiply(middle, d, Start::Other(x), View::new(mixed, rows, d), &self.right.attention_out, scale, workers);
        let mut normed = scratch::take(x.len());
        math::rms_norm_rows(middle, self.gains[1], self.shape.norm_eps, &mut normed, inverse);
        multiply(gate_up, 2 * f, Start::Nothing, View::new(&normed, rows, d), &self.right.gate_up, 1.0, workers);
        let mut active = scratch::take(rows * f);
        math::swiglu_rows(gate_up, &mut active, f);
        gemm::write(out, Some(middle), View::new(&active, rows, f), &self.right.down, scale, workers);
    }
}

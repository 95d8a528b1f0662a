//! The block as one op of dfdx's tape.

use super::super::cpu::gemm::Workers;
use super::super::cpu::view::as_slice;
use super::super::cpu::{pool, rows};
use super::super::{Matrix, oracle, take_grad};
use super::{BlockShape, BlockWeights, TransformerBlock, backward, define, forward};
use dfdx::prelude::*;

/// Blocks with at most this many weights go through backward a unit at a time, if there is no more than one.
/// Tests draw the line lower, so that they need no large block to cross it.
const SMALL_TO_WEIGHTS: usize = if cfg!(test) { 1 << 12 } else { 1 << 18 };

#[derive(Clone, Copy)]
pub struct Sizes {
    pub rows: usize,
    pub seq_len: usize,
    /// D
    pub width: usize,
    /// F
    pub inner: usize,
}

impl Sizes {
    pub fn piece_rows(&self) -> usize {
        rows::together(self.width)
    }

    /// Who multiplies a piece: all threads, where there are fewer pieces than threads.
    pub fn piece_workers(&self) -> Workers {
        if self.rows.div_ceil(self.piece_rows()) < pool::threads() { Workers::All } else { Workers::One }
    }

    /// Rows of the whole sequences that one task takes through the block.
    pub fn unit_rows(&self) -> usize {
        self.seq_len * (rows::NARROW_TOGETHER / self.seq_len).max(1)
    }

    /// Whether a block is so small that a unit's share of everything stays in the cache of one core.
    pub fn small(&self) -> bool {
        4 * self.width * self.width + 3 * self.width * self.inner <= SMALL_TO_WEIGHTS
    }

    /// Whether backward takes all rows through a small block at once. A matter of sizes only, because it decides the order of sums.
    pub fn one_unit(&self) -> bool {
        self.small() && self.rows <= self.unit_rows()
    }
}

impl TransformerBlock for Cpu {
    fn block<T: Tape<f32, Self>>(
        x: Matrix<Self, T>,
        weights: &BlockWeights<Self>,
        shape: &BlockShape<Self>,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return define(x, weights, shape);
        }
        let (x, mut tape) = x.split_tape();
        let dev = x.device().clone();
        let (rows, width) = *x.shape();
        let sizes = Sizes { rows, seq_len: shape.heads.seq_len, width, inner: weights.down.shape().1 };
        check(weights, shape, sizes);
        let packs = if T::OWNS_TAPE { shape.kept.packs(weights) } else { None };
        let (out, saved) = forward::run(as_slice(&x), weights, packs.as_deref(), shape, sizes);
        let y = dev.try_tensor_from_vec(out, (rows, width))?;
        if T::OWNS_TAPE {
            let y_ghost = y.ghost();
            let (weights, shape) = (weights.clone(), shape.clone());
            tape.add_backward_op(move |grads| {
                let mut dy = take_grad!(grads, &y_ghost, &dev);
                // Gradients of the weights leave the map while they grow, because it lends one at a time.
                let all = [
                    &weights.attention_norm,
                    &weights.qkv,
                    &weights.attention_out,
                    &weights.mlp_norm,
                    &weights.gate_up,
                    &weights.down,
                ];
                let mut totals = Vec::with_capacity(all.len());
                for weight in all {
                    totals.push(take_grad!(grads, weight, &dev));
                }
                let mut dx = take_grad!(grads, &x, &dev);
                {
                    let mut slices = totals.iter_mut().map(|total| &mut total[..]);
                    let mut next = || slices.next().expect("six gradients");
                    let totals = backward::Totals {
                        attention_norm: next(),
                        qkv: next(),
                        attention_out: next(),
                        mlp_norm: next(),
                        gate_up: next(),
                        down: next(),
                    };
                    backward::run(as_slice(&x), &weights, packs.as_deref(), &shape, sizes, saved, (&mut dy, &mut dx), totals);
                }
                for (weight, total) in all.into_iter().zip(totals) {
                    *grads.get_or_alloc_mut(weight)? = total;
                }
                *grads.get_or_alloc_mut(&x)? = dx;
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

fn check(weights: &BlockWeights<Cpu>, shape: &BlockShape<Cpu>, sizes: Sizes) {
    let Sizes { rows, seq_len, width, inner } = sizes;
    assert_eq!(rows % seq_len, 0, "block: whole sequences");
    assert_eq!(width % (2 * shape.heads.heads), 0, "block: heads of even width divide the model width");
    assert!(shape.rope.cos.shape().0 >= seq_len, "block: the rope table covers the sequence");
    assert_eq!(*weights.attention_norm.shape(), (1, width), "block: attention_norm is (1, D)");
    assert_eq!(*weights.mlp_norm.shape(), (1, width), "block: mlp_norm is (1, D)");
    assert_eq!(*weights.qkv.shape(), (3 * width, width), "block: qkv is (3D, D)");
    assert_eq!(*weights.attention_out.shape(), (width, width), "block: attention_out is (D, D)");
    assert_eq!(*weights.gate_up.shape(), (2 * inner, width), "block: gate_up is (2F, D)");
    assert_eq!(*weights.down.shape(), (width, inner), "block: down is (D, F)");
}

//! What the rows of one pass through a block share, forward or backward: sizes, gains and the packed weights.

use super::super::attention::heads::Layout;
use super::super::cpu::clock::{Part, span};
use super::super::cpu::gemm::{Packed, View, Workers};
use super::super::cpu::view::as_slice;
use super::cpu::Sizes;
use super::{BlockShape, BlockWeights};
use dfdx::prelude::*;

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Pass {
    /// Multiplies rows by the transposed weights.
    Forward,
    /// Multiplies gradients of rows by the weights as they are.
    Backward,
}

/// The weights, packed for one pass.
pub struct Right<'a> {
    pub qkv: Packed<'a>,
    pub attention_out: Packed<'a>,
    pub gate_up: Packed<'a>,
    pub down: Packed<'a>,
}

pub struct Job<'a> {
    pub sizes: Sizes,
    pub layout: Layout,
    pub shape: &'a BlockShape<Cpu>,
    pub gains: [&'a [f32]; 2],
    pub right: Right<'a>,
}

impl<'a> Job<'a> {
    pub fn new(weights: &'a BlockWeights<Cpu>, shape: &'a BlockShape<Cpu>, sizes: Sizes, pass: Pass) -> Self {
        let Sizes { rows, width: d, inner: f, .. } = sizes;
        let workers = Workers::for_work(rows * d * d);
        let _timed = span(if pass == Pass::Forward { Part::PackForward } else { Part::PackBackward });
        let right = |weight, outer, inner| {
            let view = View::new(as_slice(weight), outer, inner);
            Packed::new(if pass == Pass::Forward { view.t() } else { view }, workers)
        };
        Self {
            sizes,
            layout: Layout { seq_len: shape.heads.seq_len, heads: shape.heads.heads, width: d },
            shape,
            gains: [as_slice(&weights.attention_norm), as_slice(&weights.mlp_norm)],
            right: Right {
                qkv: right(&weights.qkv, 3 * d, d),
                attention_out: right(&weights.attention_out, d, d),
                gate_up: right(&weights.gate_up, 2 * f, d),
                down: right(&weights.down, d, f),
            },
        }
    }
}

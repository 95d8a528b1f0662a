//! Causal self-attention of all heads, from the joint projection (query, key, value) to the joined heads.
// B batch, T time, R = B*T rows, D width, H heads, K = D/H head width

mod cpu;

use super::Matrix;
use super::rope::{self, RopeTable};
use dfdx::prelude::*;

/// How R rows fall into sequences, and D columns into heads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Heads {
    pub seq_len: usize,
    pub heads: usize,
}

pub trait CausalAttention: Device<f32> {
    /// qkv (R, 3D) -> (R, D). Queries and keys are rotated by `rope`, scores are divided by sqrt(K), and a token sees
    /// itself and what came before it in its own sequence.
    fn causal_attention<T: Tape<f32, Self>>(
        qkv: Matrix<Self, T>,
        rope: &RopeTable<Self>,
        heads: Heads,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        define(qkv, rope, heads)
    }
}

#[cfg(feature = "cuda")]
impl CausalAttention for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(
    qkv: Matrix<D, T>,
    table: &RopeTable<D>,
    Heads {
        seq_len: t,
        heads: h,
    }: Heads,
) -> Result<Matrix<D, T>, D::Err> {
    let (rows, three_widths) = *qkv.shape();
    let width = three_widths / 3;
    let (b, k) = (rows / t, width / h);
    let dev = qkv.device().clone();
    let (qkv, tape) = qkv.split_tape();
    // Columns i*D..(i+1)*D as (B, H, T, K).
    let part = |i: usize| {
        qkv.retaped::<T>()
            .try_slice((.., i * width..(i + 1) * width))?
            .try_reshape_like(&(b, t, h, k))?
            .try_permute::<(usize, usize, usize, usize), Axes4<0, 2, 1, 3>>()
    };
    let query = rope::define(part(0)?, table)?;
    let key = rope::define(part(1)?, table)?;
    let value = part(2)?;
    let scores = query
        .try_matmul(key.try_permute::<_, Axes4<0, 1, 3, 2>>()?)?
        .try_mul(1.0 / (k as f32).sqrt())?;
    // Far below any score, yet finite: dfdx's backward of max would turn infinities into NaN.
    let mask: Matrix<D> = dev.try_upper_tri_like(&(t, t), -1e30, 1)?;
    let weights = scores
        .try_add(mask.try_broadcast_like::<_, Axes2<0, 1>>(&(b, h, t, t))?)?
        .try_softmax::<Axis<3>>()?;
    let joined = weights
        .try_matmul(value)?
        .try_permute::<(usize, usize, usize, usize), Axes4<0, 2, 1, 3>>()?
        .try_reshape_like(&(rows, width))?;
    let (joined, new_tape) = joined.split_tape();
    Ok(joined.put_tape(tape.merge(new_tape)))
}

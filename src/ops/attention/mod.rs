//! Causal self-attention of all heads, from the joint projection (query, key, value) to the joined heads.
// B batch, T time, R = B*T rows, D width, H heads, K = D/H head width

pub(super) mod cpu;
pub(super) mod heads;

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
    Heads { seq_len: t, heads: h }: Heads,
) -> Result<Matrix<D, T>, D::Err> {
    let (rows, three_widths) = *qkv.shape();
    let width = three_widths / 3;
    let (b, k) = (rows / t, width / h);
    let dev = qkv.device().clone();
    let (qkv, tape) = qkv.split_tape();
    // Columns i*D..(i+1)*D as (B, H, T, K).
    let part = |i: usize| {
        qkv.retaped::<T>().try_slice((.., i * width..(i + 1) * width))?.try_reshape_like(&(b, t, h, k))?.try_permute::<(
            usize,
            usize,
            usize,
            usize,
        ), Axes4<0, 2, 1, 3>>(
        )
    };
    let query = rope::define(part(0)?, table)?;
    let key = rope::define(part(1)?, table)?;
    let value = part(2)?;
    let scores = query.try_matmul(key.try_permute::<_, Axes4<0, 1, 3, 2>>()?)?.try_mul(1.0 / (k as f32).sqrt())?;
    let mask: Matrix<D> = dev.try_upper_tri_like(&(t, t), f32::NEG_INFINITY, 1)?;
    let weights = scores.try_add(mask.try_broadcast_like::<_, Axes2<0, 1>>(&(b, h, t, t))?)?.try_softmax::<Axis<3>>()?;
    let joined = weights
        .try_matmul(value)?
        .try_permute::<(usize, usize, usize, usize), Axes4<0, 2, 1, 3>>()?
        .try_reshape_like(&(rows, width))?;
    let (joined, new_tape) = joined.split_tape();
    Ok(joined.put_tape(tape.merge(new_tape)))
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        // One block of queries and several, the last with and without a second half; heads that fill registers where they lie, and
        // that are copied.
        let sizes = [(1, 1, 1, 2), (2, 5, 3, 6), (3, 70, 2, 4), (1, 53, 2, 16), (1, 64, 2, 64), (1, 34, 3, 24)];
        for (batch, seq_len, heads, head_width) in sizes {
            let rope = RopeTable::new(&dev, seq_len, head_width, 100.0).expect("memory");
            let inputs = [check::matrix(&dev, batch * seq_len, 3 * heads * head_width, 1)];
            let heads = Heads { seq_len, heads };
            check::check(
                &inputs,
                |x, _| D::causal_attention(x, &rope, heads).expect("memory"),
                |x, _| define(x, &rope, heads).expect("memory"),
            );
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }

    #[test]
    fn a_token_does_not_see_the_future() {
        let dev = Cpu::default();
        let rope = RopeTable::new(&dev, 70, 4, 100.0).expect("memory");
        let run = |last: f32| {
            let mut numbers = check::numbers(70 * 12, 1);
            numbers[69 * 12..].fill(last);
            let qkv = dev.tensor_from_vec(numbers, (70, 12));
            Cpu::causal_attention(qkv, &rope, Heads { seq_len: 70, heads: 1 }).expect("memory").as_vec()
        };
        assert_eq!(run(0.0)[..69 * 4], run(5.0)[..69 * 4]);
    }
}

//! One pre-norm Transformer block as one op: x + s * Attn(LN(x)), then z + s * MLP(LN(z)).
//! The definition strings the other ops together; a device may do the whole block at once.
// R rows, D width, F feed-forward width

mod backward;
mod cpu;
mod forward;
mod job;

pub(super) use cpu::Sizes;
pub use job::Kept;

use super::attention::{CausalAttention, Heads};
use super::feed_forward::FeedForward;
use super::linear::Linear;
use super::residual::ResidualAdd;
use super::rms_norm::RmsNorm;
use super::rope::RopeTable;
use super::{Matrix, attention, feed_forward, linear, residual, rms_norm};
use dfdx::prelude::*;

/// The weights of a block.
#[derive(Clone, Debug)]
pub struct BlockWeights<D: Device<f32>> {
    /// (1, D)
    pub attention_norm: Matrix<D>,
    /// (3D, D): rows of query, key, value
    pub qkv: Matrix<D>,
    /// (D, D)
    pub attention_out: Matrix<D>,
    /// (1, D)
    pub mlp_norm: Matrix<D>,
    /// (2F, D): rows of gate, up
    pub gate_up: Matrix<D>,
    /// (D, F)
    pub down: Matrix<D>,
}

impl<D: Device<f32>> BlockWeights<D> {
    pub fn each(&self) -> [&Matrix<D>; 6] {
        [&self.attention_norm, &self.qkv, &self.attention_out, &self.mlp_norm, &self.gate_up, &self.down]
    }
}

/// What every block of a model shares besides weights.
#[derive(Clone, Debug)]
pub struct BlockShape<D: Device<f32>> {
    pub rope: RopeTable<D>,
    pub heads: Heads,
    pub norm_eps: f32,
    pub branch_scale: f32,
    /// What the device prepared of the weights.
    pub kept: Kept,
}

/// Whether what a device prepares of the weights of every block is worth keeping until backward is over, for a tape that visits each so often.
pub fn keeps_weights(width: usize, visits: usize) -> bool {
    visits > 1 && width >= KEEP_FROM_WIDTH
}

/// Narrower blocks are prepared at every visit: it takes no time there.
const KEEP_FROM_WIDTH: usize = 256;

pub trait TransformerBlock: Device<f32> + Linear + RmsNorm + CausalAttention + FeedForward + ResidualAdd {
    /// x (R, D) -> (R, D).
    fn block<T: Tape<f32, Self>>(
        x: Matrix<Self, T>,
        weights: &BlockWeights<Self>,
        shape: &BlockShape<Self>,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        let stream = x.retaped::<T>();
        let x = Self::residual_add(stream, attention_branch(x, weights, shape)?, shape.branch_scale)?;
        let stream = x.retaped::<T>();
        Self::residual_add(stream, mlp_branch(x, weights, shape)?, shape.branch_scale)
    }
}

#[cfg(feature = "cuda")]
impl TransformerBlock for Cuda {}

/// Attn(LN(x)), before it is scaled.
pub fn attention_branch<D: TransformerBlock, T: Tape<f32, D>>(
    x: Matrix<D, T>,
    weights: &BlockWeights<D>,
    shape: &BlockShape<D>,
) -> Result<Matrix<D, T>, D::Err> {
    let x = D::rms_norm(x, &weights.attention_norm, shape.norm_eps)?;
    let x = D::causal_attention(D::linear(x, &weights.qkv)?, &shape.rope, shape.heads)?;
    D::linear(x, &weights.attention_out)
}

/// MLP(LN(x)), before it is scaled.
pub fn mlp_branch<D: TransformerBlock, T: Tape<f32, D>>(
    x: Matrix<D, T>,
    weights: &BlockWeights<D>,
    shape: &BlockShape<D>,
) -> Result<Matrix<D, T>, D::Err> {
    D::feed_forward(D::rms_norm(x, &weights.mlp_norm, shape.norm_eps)?, &weights.gate_up, &weights.down)
}

/// The block in plain dfdx ops.
pub fn define<D: Device<f32>, T: Tape<f32, D>>(
    x: Matrix<D, T>,
    weights: &BlockWeights<D>,
    shape: &BlockShape<D>,
) -> Result<Matrix<D, T>, D::Err> {
    let stream = x.retaped::<T>();
    let branch = linear::define(rms_norm::define(x, &weights.attention_norm, shape.norm_eps)?, &weights.qkv)?;
    let branch = linear::define(attention::define(branch, &shape.rope, shape.heads)?, &weights.attention_out)?;
    let x = residual::define(stream, branch, shape.branch_scale)?;
    let stream = x.retaped::<T>();
    let branch = rms_norm::define(x, &weights.mlp_norm, shape.norm_eps)?;
    residual::define(stream, feed_forward::define(branch, &weights.gate_up, &weights.down)?, shape.branch_scale)
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        // (sequences, T, heads, K, F): odd sizes; several sequences to a unit; several units and groups; too large for groups.
        for (batch, seq_len, heads, head_width, inner) in
            [(1, 1, 1, 2, 1), (2, 5, 3, 6, 7), (5, 37, 2, 4, 9), (9, 70, 1, 16, 33), (3, 50, 2, 16, 50)]
        {
            let width = heads * head_width;
            let shape = BlockShape {
                rope: RopeTable::new(&dev, seq_len, head_width, 100.0).expect("memory"),
                heads: Heads { seq_len, heads },
                norm_eps: 1e-2,
                branch_scale: 0.3,
                kept: Kept::default(),
            };
            // Weights of a size at which the branches matter and nothing saturates.
            let scaled = |rows, cols, salt| check::matrix(&dev, rows, cols, salt) * (1.0 / (cols as f32).sqrt());
            let inputs = [
                check::matrix(&dev, batch * seq_len, width, 1),
                check::matrix(&dev, 1, width, 2),
                scaled(3 * width, width, 3),
                scaled(width, width, 4),
                check::matrix(&dev, 1, width, 5),
                scaled(2 * inner, width, 6),
                scaled(width, inner, 7),
            ];
            let weights = |w: &[Matrix<D>]| BlockWeights {
                attention_norm: w[0].clone(),
                qkv: w[1].clone(),
                attention_out: w[2].clone(),
                mlp_norm: w[3].clone(),
                gate_up: w[4].clone(),
                down: w[5].clone(),
            };
            check::check(
                &inputs,
                |x, w| D::block(x, &weights(w), &shape).expect("memory"),
                |x, w| define(x, &weights(w), &shape).expect("memory"),
            );
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }

    #[test]
    fn kept_packings_are_those_of_the_weights_as_they_are() {
        use super::super::cpu::view::as_mut_slice;
        let dev = Cpu::default();
        let (width, inner, seq_len) = (32, 50, 7);
        let shape = BlockShape {
            rope: RopeTable::new(&dev, seq_len, 16, 100.0).expect("memory"),
            heads: Heads { seq_len, heads: 2 },
            norm_eps: 1e-2,
            branch_scale: 0.3,
            kept: Kept::for_visits(),
        };
        let weights = |salt: u32| BlockWeights {
            attention_norm: check::matrix(&dev, 1, width, salt),
            qkv: check::matrix(&dev, 3 * width, width, salt + 1),
            attention_out: check::matrix(&dev, width, width, salt + 2),
            mlp_norm: check::matrix(&dev, 1, width, salt + 3),
            gate_up: check::matrix(&dev, 2 * inner, width, salt + 4),
            down: check::matrix(&dev, width, inner, salt + 5),
        };
        let x = check::matrix(&dev, seq_len, width, 1);
        let twice = |w: &BlockWeights<Cpu>| {
            let once = Cpu::block(x.leaky_trace(), w, &shape).expect("memory");
            Cpu::block(once, w, &shape).expect("memory")
        };
        let fresh = twice(&weights(20)).as_vec();
        let mut used = weights(2);
        // The tape of the first pass still holds what it packed when the weights change.
        let first = twice(&used);
        let other = weights(20);
        let pairs = [
            (&mut used.attention_norm, &other.attention_norm),
            (&mut used.qkv, &other.qkv),
            (&mut used.attention_out, &other.attention_out),
            (&mut used.mlp_norm, &other.mlp_norm),
            (&mut used.gate_up, &other.gate_up),
            (&mut used.down, &other.down),
        ];
        for (weight, new) in pairs {
            as_mut_slice(weight).copy_from_slice(&new.as_vec());
        }
        let second = twice(&used);
        assert_eq!(second.as_vec(), fresh);
        assert_ne!(first.as_vec(), fresh);
        // And in place, once no tape is left.
        let old = weights(2);
        drop((first.square().sum::<Rank0, _>().backward(), second.square().sum::<Rank0, _>().backward()));
        as_mut_slice(&mut used.qkv).copy_from_slice(&old.qkv.as_vec());
        let expected = twice(&BlockWeights { qkv: old.qkv, ..weights(20) }).as_vec();
        assert_eq!(twice(&used).as_vec(), expected);
    }

    /// In groups of sequences and step by step; more and fewer sequences than threads.
    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let dev = Cpu::default();
        for (batch, seq_len, width, inner) in [(9, 70, 16, 33), (9, 70, 32, 50), (1, 300, 32, 50), (2, 19, 32, 50)] {
            let shape = BlockShape {
                rope: RopeTable::new(&dev, seq_len, 16, 100.0).expect("memory"),
                heads: Heads { seq_len, heads: width / 16 },
                norm_eps: 1e-2,
                branch_scale: 0.3,
                kept: Kept::default(),
            };
            let weights = BlockWeights {
                attention_norm: check::matrix(&dev, 1, width, 2),
                qkv: check::matrix(&dev, 3 * width, width, 3),
                attention_out: check::matrix(&dev, width, width, 4),
                mlp_norm: check::matrix(&dev, 1, width, 5),
                gate_up: check::matrix(&dev, 2 * inner, width, 6),
                down: check::matrix(&dev, width, inner, 7),
            };
            let x = check::matrix(&dev, batch * seq_len, width, 1);
            let bits = |threads: usize| -> Vec<u32> {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
                let all = pool.install(|| {
                    let y = Cpu::block(x.leaky_trace(), &weights, &shape).expect("memory");
                    let mut all = y.as_vec();
                    let mut grads = y.square().sum::<Rank0, _>().backward();
                    let w = &weights;
                    for input in [&x, &w.attention_norm, &w.qkv, &w.attention_out, &w.mlp_norm, &w.gate_up, &w.down] {
                        all.extend_from_slice(grads.get_or_alloc_mut(input).expect("a gradient"));
                    }
                    all
                });
                all.iter().map(|x| x.to_bits()).collect()
            };
            let one = bits(1);
            assert!((2..=4).all(|threads| bits(threads) == one), "{batch} sequences of {seq_len}, width {width}");
        }
    }
}

//! The machine: differentiable ops on dfdx tensors, one folder per op, one file per device. Imports nothing else of ours.
//!
//! Every op is a trait whose default body is its definition in plain dfdx ops: it runs on any dfdx device and is the oracle in
//! tests. A device overrides it with a fused kernel in `ops/<op>/<device>.rs`. Ops fuse coarsely, because dfdx hands an outside
//! crate whole tensors and whole gradients only (docs/adr/0002-dfdx-outside-ops.md).
//!
//! Layout of activations: one row per token, R = B * T rows, row-major. Weights are stored (out, in), gains as (1, D).
// B batch, T time, R = B*T rows, D width, H heads, K = D/H head width, F feed-forward width, V vocabulary

pub mod adamw;
pub mod attention;
pub mod block;
#[cfg(test)]
mod check;
pub mod cpu;
pub mod embedding;
pub mod feed_forward;
pub mod head_loss;
pub mod linear;
pub mod oracle;
pub mod recompute;
pub mod residual;
pub mod rms_norm;
pub mod rope;
pub mod stack;
pub mod units;

use dfdx::prelude::{Cpu, Device, NoneTape, Rank0, Tensor};

/// Two runtime sizes: the one tensor shape of weights and activations.
pub type Matrix<D, T = NoneTape> = Tensor<(usize, usize), f32, D, T>;
pub type Scalar<D, T = NoneTape> = Tensor<Rank0, f32, D, T>;
/// Token ids, one per row.
pub type Ids<D> = Tensor<(usize,), usize, D>;

/// A dfdx device on which every op of the model is defined.
pub trait Backend:
    Device<f32>
    + linear::Linear
    + rms_norm::RmsNorm
    + attention::CausalAttention
    + feed_forward::FeedForward
    + residual::ResidualAdd
    + block::TransformerBlock
    + embedding::Embedding
    + head_loss::HeadLoss
    + adamw::AdamW
    + units::Units
{
    /// The name users write after `device:`.
    const NAME: &'static str;
}

impl Backend for Cpu {
    const NAME: &'static str = "cpu";
}

#[cfg(feature = "cuda")]
impl Backend for dfdx::prelude::Cuda {
    const NAME: &'static str = "cuda";
}

/// Moves the gradient of `$tensor` out of `$grads`, leaving an empty buffer, so that its memory is freed after use.
/// A macro because the type of a ghost tensor cannot be named outside dfdx.
macro_rules! take_grad {
    ($grads:expr, $tensor:expr, $dev:expr) => {{
        let empty = dfdx::prelude::Storage::<f32>::try_alloc_len($dev, 0)?;
        std::mem::replace($grads.get_or_alloc_mut($tensor)?, empty)
    }};
}
pub(crate) use take_grad;

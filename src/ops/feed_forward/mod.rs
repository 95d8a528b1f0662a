//! The SwiGLU feed-forward: (silu(x G^T) * x U^T) W^T, with G and U stacked in one weight.
// R rows, D width, F feed-forward width

mod cpu;

use super::{Matrix, linear};
use dfdx::prelude::*;

pub trait FeedForward: Device<f32> {
    /// x (R, D), gate_up (2F, D), down (D, F) -> (R, D).
    fn feed_forward<T: Tape<f32, Self>>(
        x: Matrix<Self, T>,
        gate_up: &Matrix<Self>,
        down: &Matrix<Self>,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        define(x, gate_up, down)
    }
}

#[cfg(feature = "cuda")]
impl FeedForward for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(
    x: Matrix<D, T>,
    gate_up: &Matrix<D>,
    down: &Matrix<D>,
) -> Result<Matrix<D, T>, D::Err> {
    let width = down.shape().1;
    let shape = (x.shape().0, width);
    let both = linear::define(x, gate_up)?;
    let (both, tape) = both.split_tape();
    let gate = both.retaped::<T>().try_slice((.., ..width))?.try_reshape_like(&shape)?;
    let up = both.put_tape(tape).try_slice((.., width..))?.try_reshape_like(&shape)?;
    let silu = gate.with_empty_tape().try_sigmoid()?.try_mul(gate)?;
    linear::define(up.try_mul(silu)?, down)
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        for (rows, width, inner) in [(7, 5, 3), (1, 1, 1), (120, 9, 31)] {
            let inputs = [
                check::matrix(&dev, rows, width, 1),
                check::matrix(&dev, 2 * inner, width, 2),
                check::matrix(&dev, width, inner, 3),
            ];
            check::check(
                &inputs,
                |x, w| D::feed_forward(x, &w[0], &w[1]).expect("memory"),
                |x, w| define(x, &w[0], &w[1]).expect("memory"),
            );
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

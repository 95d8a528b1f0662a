//! The residual update h <- h + branch_scale * branch, where the paper's scaling rules act.

mod cpu;

use super::Matrix;
use dfdx::prelude::*;

pub trait ResidualAdd: Device<f32> {
    /// stream (R, D) + scale * branch (R, D).
    fn residual_add<T: Tape<f32, Self>>(
        stream: Matrix<Self, T>,
        branch: Matrix<Self, T>,
        scale: f32,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        define(stream, branch, scale)
    }
}

#[cfg(feature = "cuda")]
impl ResidualAdd for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(
    stream: Matrix<D, T>,
    branch: Matrix<D, T>,
    scale: f32,
) -> Result<Matrix<D, T>, D::Err> {
    stream.try_add(branch.try_mul(scale)?)
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        for (rows, width) in [(7, 5), (700, 33)] {
            let inputs = [check::matrix(&dev, rows, width, 1), check::matrix(&dev, rows, width, 2)];
            check::check(
                &inputs,
                |x, w| D::residual_add(x, w[0].retaped(), 0.3).expect("memory"),
                |x, w| define(x, w[0].retaped(), 0.3).expect("memory"),
            );
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

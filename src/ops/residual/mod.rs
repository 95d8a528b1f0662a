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

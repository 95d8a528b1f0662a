//! y = x W^T, without bias. The matrix product of every projection.

pub mod cpu;

use super::Matrix;
use dfdx::prelude::*;

pub trait Linear: Device<f32> {
    /// x (R, in), weight (out, in) -> (R, out).
    fn linear<T: Tape<f32, Self>>(x: Matrix<Self, T>, weight: &Matrix<Self>) -> Result<Matrix<Self, T>, Self::Err> {
        define(x, weight)
    }
}

#[cfg(feature = "cuda")]
impl Linear for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(x: Matrix<D, T>, weight: &Matrix<D>) -> Result<Matrix<D, T>, D::Err> {
    x.try_matmul(weight.retaped::<T>().try_permute::<_, Axes2<1, 0>>()?)
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        for (rows, inner, outer) in [(7, 5, 3), (1, 1, 1), (33, 18, 47)] {
            let inputs = [check::matrix(&dev, rows, inner, 1), check::matrix(&dev, outer, inner, 2)];
            check::check(&inputs, |x, w| D::linear(x, &w[0]).expect("memory"), |x, w| define(x, &w[0]).expect("memory"));
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

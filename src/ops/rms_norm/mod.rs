//! Root-mean-square normalisation of rows: y = x / sqrt(mean(x^2) + eps) * gain.

mod cpu;

use super::Matrix;
use dfdx::prelude::*;

pub trait RmsNorm: Device<f32> {
    /// x (R, D), gain (1, D) -> (R, D).
    fn rms_norm<T: Tape<f32, Self>>(x: Matrix<Self, T>, gain: &Matrix<Self>, eps: f32) -> Result<Matrix<Self, T>, Self::Err> {
        define(x, gain, eps)
    }
}

#[cfg(feature = "cuda")]
impl RmsNorm for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(x: Matrix<D, T>, gain: &Matrix<D>, eps: f32) -> Result<Matrix<D, T>, D::Err> {
    let shape = *x.shape();
    let rms = x
        .retaped::<T>()
        .try_square()?
        .try_mean::<(usize,), Axis<1>>()?
        .try_add(eps)?
        .try_sqrt()?
        .try_broadcast_like::<_, Axis<1>>(&shape)?;
    let gain = gain.retaped::<T>().try_reshape_like(&(shape.1,))?.try_broadcast_like::<_, Axis<0>>(&shape)?;
    x.try_div(rms)?.try_mul(gain)
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        for (rows, width) in [(7, 5), (1, 1), (130, 19), (700, 33)] {
            let inputs = [check::matrix(&dev, rows, width, 1), check::matrix(&dev, 1, width, 2)];
            check::check(
                &inputs,
                |x, w| D::rms_norm(x, &w[0], 1e-2).expect("memory"),
                |x, w| define(x, &w[0], 1e-2).expect("memory"),
            );
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

//! AdamW (decoupled weight decay) of one parameter, and the norm of its gradient.

mod cpu;

use super::Matrix;
use dfdx::prelude::*;

/// One step for one parameter. Corrections for the bias of the averages are part of it, because they depend on the step.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AdamWStep {
    pub lr: f64,
    pub betas: (f64, f64),
    pub weight_decay: f64,
    pub eps: f64,
    /// Multiplies the gradient first: the clip factor.
    pub grad_factor: f64,
    /// 1 for the first step.
    pub step: u64,
}

impl AdamWStep {
    fn decay(&self) -> f32 {
        (1.0 - self.lr * self.weight_decay) as f32
    }

    /// lr / (1 - beta1^t)
    fn step_size(&self) -> f32 {
        (self.lr / (1.0 - self.betas.0.powf(self.step as f64))) as f32
    }

    /// sqrt(1 - beta2^t)
    fn root(&self) -> f32 {
        (1.0 - self.betas.1.powf(self.step as f64)).sqrt() as f32
    }
}

/// A parameter with its running averages of the gradient and of its square.
#[derive(Clone, Debug)]
pub struct Moments<D: Device<f32>> {
    pub mean: Matrix<D>,
    pub square: Matrix<D>,
}

pub trait AdamW: Device<f32> {
    fn adamw_step(
        weight: &mut Matrix<Self>,
        moments: &mut Moments<Self>,
        grads: &mut Gradients<f32, Self>,
        step: &AdamWStep,
    ) -> Result<(), Self::Err> {
        define(weight, moments, grads, step)
    }

    /// Sum of the squares of the gradient of `weight`.
    fn grad_sum_squares(
        weight: &Matrix<Self>,
        grads: &mut Gradients<f32, Self>,
    ) -> Result<f64, Self::Err> {
        grads.get_or_alloc_mut(weight)?;
        let sum = grads.get(weight).try_square()?.try_sum::<Rank0, _>()?;
        Ok(f64::from(sum.as_vec()[0]))
    }
}

#[cfg(feature = "cuda")]
impl AdamW for Cuda {}

pub fn define<D: Device<f32>>(
    weight: &mut Matrix<D>,
    moments: &mut Moments<D>,
    grads: &mut Gradients<f32, D>,
    step: &AdamWStep,
) -> Result<(), D::Err> {
    grads.get_or_alloc_mut(weight)?;
    let grad = grads.get(weight).try_mul(step.grad_factor as f32)?;
    let (beta1, beta2) = (step.betas.0 as f32, step.betas.1 as f32);
    moments.mean = moments
        .mean
        .clone()
        .try_mul(beta1)?
        .try_add(grad.clone().try_mul(1.0 - beta1)?)?;
    moments.square = moments
        .square
        .clone()
        .try_mul(beta2)?
        .try_add(grad.try_square()?.try_mul(1.0 - beta2)?)?;
    let root = moments
        .square
        .clone()
        .try_sqrt()?
        .try_div(step.root())?
        .try_add(step.eps as f32)?;
    let update = moments
        .mean
        .clone()
        .try_div(root)?
        .try_mul(step.step_size())?;
    *weight = weight.clone().try_mul(step.decay())?.try_sub(update)?;
    Ok(())
}

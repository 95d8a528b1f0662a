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
    /// One step of `weight`. Its gradient is used up: zero afterwards, or none, if the weight is a new tensor.
    fn adamw_step(
        weight: &mut Matrix<Self>,
        moments: &mut Moments<Self>,
        grads: &mut Gradients<f32, Self>,
        step: &AdamWStep,
    ) -> Result<(), Self::Err> {
        define(weight, moments, grads, step)
    }

    /// Sum of the squares of the gradient of `weight`.
    fn grad_sum_squares(weight: &Matrix<Self>, grads: &mut Gradients<f32, Self>) -> Result<f64, Self::Err> {
        define_sum_squares(weight, grads)
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
    moments.mean = moments.mean.clone().try_mul(beta1)?.try_add(grad.clone().try_mul(1.0 - beta1)?)?;
    moments.square = moments.square.clone().try_mul(beta2)?.try_add(grad.try_square()?.try_mul(1.0 - beta2)?)?;
    let root = moments.square.clone().try_sqrt()?.try_div(step.root())?.try_add(step.eps as f32)?;
    let update = moments.mean.clone().try_div(root)?.try_mul(step.step_size())?;
    *weight = weight.clone().try_mul(step.decay())?.try_sub(update)?;
    Ok(())
}

pub fn define_sum_squares<D: Device<f32>>(weight: &Matrix<D>, grads: &mut Gradients<f32, D>) -> Result<f64, D::Err> {
    grads.get_or_alloc_mut(weight)?;
    let sum = grads.get(weight).try_square()?.try_sum::<Rank0, _>()?;
    Ok(f64::from(sum.as_vec()[0]))
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        let start = check::matrix(&dev, 300, 120, 1);
        let zeros = || Moments { mean: dev.zeros_like(&start), square: dev.zeros_like(&start) };
        let (mut kernel, mut kernel_moments) = (start.clone(), zeros());
        let (mut defined, mut defined_moments) = (start.clone(), zeros());
        for step in 1..=4 {
            let update = AdamWStep { lr: 0.1, betas: (0.9, 0.95), weight_decay: 0.1, eps: 1e-8, grad_factor: 0.5, step };
            let gradient = |weight: &Matrix<D>| {
                let upstream = check::matrix(&dev, 300, 120, 10 + step as u32);
                (weight.leaky_trace() * upstream).sum::<Rank0, _>().backward()
            };
            let (mut kernel_grads, mut defined_grads) = (gradient(&kernel), gradient(&defined));
            D::adamw_step(&mut kernel, &mut kernel_moments, &mut kernel_grads, &update).expect("memory");
            define(&mut defined, &mut defined_moments, &mut defined_grads, &update).expect("memory");
            for (a, b) in kernel.as_vec().iter().zip(defined.as_vec()) {
                assert!((a - b).abs() < 1e-6, "{a} is not {b}");
            }
            for (grads, weight) in [(&mut kernel_grads, &kernel), (&mut defined_grads, &defined)] {
                grads.get_or_alloc_mut(weight).expect("memory");
                assert!(grads.get(weight).as_vec().iter().all(|&left| left == 0.0));
            }
        }
        let mut grads = start.leaky_trace().square().sum::<Rank0, _>().backward();
        let squares: f64 = start.as_vec().iter().map(|&x| f64::from(2.0 * x).powi(2)).sum();
        let found = D::grad_sum_squares(&start, &mut grads).expect("memory");
        let defined = define_sum_squares(&start, &mut grads).expect("memory");
        // dfdx adds 36,000 numbers one by one in f32.
        assert!((found - squares).abs() < 1e-6 * squares && (defined - squares).abs() < 1e-4 * squares);
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

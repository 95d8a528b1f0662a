//! AdamW in place, one pass over weight, moments and gradient, which is cleared while it is near.

use super::super::cpu::clock::{Part, span};
use super::super::cpu::view::as_mut_slice;
use super::super::cpu::{math, pool};
use super::super::{Matrix, oracle};
use super::{AdamW, AdamWStep, Moments};
use dfdx::prelude::*;

/// Elements per task, and per partial sum of squares: fixed, so that threads change no bit.
const PIECE: usize = 1 << 14;

impl AdamW for Cpu {
    fn adamw_step(
        weight: &mut Matrix<Self>,
        moments: &mut Moments<Self>,
        grads: &mut Gradients<f32, Self>,
        step: &AdamWStep,
    ) -> Result<(), Self::Err> {
        if oracle::on() {
            return super::define(weight, moments, grads, step);
        }
        let _timed = span(Part::AdamW);
        let grad: &mut [f32] = grads.get_or_alloc_mut(&*weight)?;
        let (weight, mean, square) = (as_mut_slice(weight), as_mut_slice(&mut moments.mean), as_mut_slice(&mut moments.square));
        let pieces =
            weight.chunks_mut(PIECE).zip(mean.chunks_mut(PIECE)).zip(square.chunks_mut(PIECE).zip(grad.chunks_mut(PIECE)));
        pool::each(pieces.collect(), |((weight, mean), (square, grad))| {
            update(weight, mean, square, grad, step);
            grad.fill(0.0);
        });
        Ok(())
    }

    fn grad_sum_squares(weight: &Matrix<Self>, grads: &mut Gradients<f32, Self>) -> Result<f64, Self::Err> {
        if oracle::on() {
            return super::define_sum_squares(weight, grads);
        }
        let _timed = span(Part::GradNorm);
        let grad: &[f32] = grads.get_or_alloc_mut(weight)?;
        Ok(pool::map(grad.chunks(PIECE).collect(), math::sum_squares).into_iter().sum())
    }
}

fn update(weight: &mut [f32], mean: &mut [f32], square: &mut [f32], grad: &[f32], step: &AdamWStep) {
    math::adamw(
        weight,
        mean,
        square,
        grad,
        step.grad_factor as f32,
        (step.betas.0 as f32, step.betas.1 as f32),
        step.decay(),
        step.step_size(),
        step.root(),
        step.eps as f32,
    );
}

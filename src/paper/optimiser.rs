//! AdamW over the parameter groups of the scaling table: each parameter has the learning rate, decay and epsilon of its role.

use super::model::{Model, ModelError, device_error, parameters};
use super::scaling::{Group, Scaling};
use crate::ops::Backend;
use crate::ops::adamw::{AdamWStep, Moments};
use dfdx::prelude::*;

#[derive(Clone, Debug)]
pub struct Optimiser<D: Backend> {
    groups: Vec<Group>,
    pub moments: Vec<Moments<D>>,
    betas: (f64, f64),
}

/// Norms of one gradient.
#[derive(Clone, Debug, PartialEq)]
pub struct GradNorms {
    pub total: f64,
    /// In the order of [`Model::weights`].
    pub each: Vec<f64>,
}

impl<D: Backend> Optimiser<D> {
    pub fn new(model: &Model<D>, scaling: &Scaling, betas: (f64, f64)) -> Result<Self, ModelError> {
        let mut moments = Vec::new();
        for weight in model.weights() {
            // Written, not only asked for: the system would give each page twice to whoever reads it first.
            let zeros = || -> Result<_, D::Err> {
                let mut zeros = model.device().try_zeros_like(weight)?;
                zeros.try_fill_with_zeros()?;
                Ok(zeros)
            };
            moments.push(Moments { mean: zeros().map_err(device_error)?, square: zeros().map_err(device_error)? });
        }
        let groups = parameters(&model.config).into_iter().map(|(_, role, _)| scaling.group(role)).collect();
        Ok(Self { groups, moments, betas })
    }

    pub fn norms(&self, model: &Model<D>, grads: &mut Gradients<f32, D>) -> Result<GradNorms, ModelError> {
        let mut squares = Vec::new();
        for weight in model.weights() {
            squares.push(D::grad_sum_squares(weight, grads).map_err(device_error)?);
        }
        Ok(GradNorms { total: squares.iter().sum::<f64>().sqrt(), each: squares.into_iter().map(f64::sqrt).collect() })
    }

    /// One step, which uses up the gradients; `step` counts from 1, `lr_factor` comes from the schedule, `grad_factor` from clipping.
    pub fn apply(
        &mut self,
        model: &mut Model<D>,
        grads: &mut Gradients<f32, D>,
        step: u64,
        lr_factor: f64,
        grad_factor: f64,
    ) -> Result<(), ModelError> {
        for ((weight, moments), group) in model.weights_mut().into_iter().zip(&mut self.moments).zip(&self.groups) {
            let update = AdamWStep {
                lr: group.lr * lr_factor,
                betas: self.betas,
                weight_decay: group.weight_decay,
                eps: group.eps,
                grad_factor,
                step,
            };
            D::adamw_step(weight, moments, grads, &update).map_err(device_error)?;
        }
        Ok(())
    }
}

/// The factor that brings a gradient of this norm down to `clip`.
pub fn clip_factor(norm: f64, clip: Option<f64>) -> f64 {
    match clip {
        Some(limit) if norm > limit => limit / norm,
        _ => 1.0,
    }
}

//! Held-out loss of a model: mean and per-token cross-entropy in nats.

use super::batch::Batch;
use super::model::{Model, ModelError};
use crate::ops::Backend;

/// Losses of every target, in the order of the batches.
pub fn token_losses<D: Backend>(
    model: &Model<D>,
    batches: &[Batch],
) -> Result<Vec<f32>, ModelError> {
    let mut all = Vec::new();
    for batch in batches {
        all.extend(model.token_losses(batch)?);
    }
    Ok(all)
}

/// Summed in order and in f64, so that it does not depend on how sequences fall into batches.
pub fn mean(losses: &[f32]) -> f64 {
    losses.iter().map(|&l| f64::from(l)).sum::<f64>() / losses.len() as f64
}

//! What the paper's diagnostics look at: the residual stream after every visit, its increments and their cosines, the change
//! of the final state by one step, branch norms. Measured in forward passes of their own, so training pays nothing.
// R rows, D width, N visits; delta_n = h_n - h_(n-1)

use super::batch::Batch;
use super::config::RawProbes;
use super::model::{Branch, Model, ModelError, Observer, parameters, split};
use super::optimiser::GradNorms;
use crate::ops::Backend;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of `probes.jsonl`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbeReport {
    /// Steps done; 0 is the model as initialised.
    pub step: u64,
    /// R = d^(-1/2) ||h||, mean over tokens, after the embedding and after each visit.
    pub stream_rms: Vec<f64>,
    /// ||h||, mean over tokens, likewise.
    pub stream_norm: Vec<f64>,
    /// ||delta_n||, mean over tokens, for each visit.
    pub increment_norm: Vec<f64>,
    /// RMS over tokens and width of the change of the final pre-norm state by the last step; absent at step 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub update_rms: Option<f64>,
    /// Cosines of increments, per token and then averaged over tokens; N rows of N.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cosine_by_token: Option<Vec<Vec<f64>>>,
    /// Cosines of increments as one long vector each.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub cosine_flat: Option<Vec<Vec<f64>>>,
    /// RMS of each branch before the branch scale, by visit and then layer: attention and feed-forward.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub attention_rms: Option<Vec<Vec<f64>>>,
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub mlp_rms: Option<Vec<Vec<f64>>>,
    /// Norm of the gradient of each parameter in the last step; absent at step 0.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub grad_norms: Option<BTreeMap<String, f64>>,
}

/// The probes of a run and the tokens they look at.
pub struct Probes {
    pub wanted: RawProbes,
    tokens: Vec<u32>,
    seq_len: usize,
    /// The final state after the step with this number of steps done.
    last: Option<(u64, Vec<f32>)>,
}

struct Eye {
    streams: Vec<Vec<f32>>,
    branches: bool,
    attention: Vec<Vec<f64>>,
    mlp: Vec<Vec<f64>>,
}

impl Observer for Eye {
    fn stream(&mut self, _: usize, h: Vec<f32>) {
        self.streams.push(h);
    }
    fn wants_branches(&self) -> bool {
        self.branches
    }
    fn branch(&mut self, visit: usize, _: usize, branch: Branch, values: Vec<f32>) {
        let table = match branch {
            Branch::Attention => &mut self.attention,
            Branch::Mlp => &mut self.mlp,
        };
        table.resize(table.len().max(visit), Vec::new());
        table[visit - 1].push((dot(&values, &values) / values.len() as f64).sqrt());
    }
}

/// Keeps the last state only.
struct FinalState(Vec<f32>);

impl Observer for FinalState {
    fn stream(&mut self, _: usize, h: Vec<f32>) {
        self.0 = h;
    }
}

impl Probes {
    pub fn new(wanted: RawProbes, batch: &Batch) -> Self {
        Self { wanted, tokens: split(batch).0, seq_len: batch.seq_len, last: None }
    }

    /// Whether something is measured when this many steps are done.
    pub fn due(&self, step: u64) -> bool {
        step.is_multiple_of(self.wanted.every_steps)
    }

    /// Called before the step after which a measurement is due: remembers the state it will change.
    pub fn before_step<D: Backend>(&mut self, model: &Model<D>, step: u64) -> Result<(), ModelError> {
        if self.last.as_ref().is_none_or(|(at, _)| *at != step) {
            let mut eye = FinalState(Vec::new());
            model.observe(&self.tokens, self.seq_len, &mut eye)?;
            self.last = Some((step, eye.0));
        }
        Ok(())
    }

    pub fn measure<D: Backend>(
        &mut self,
        model: &Model<D>,
        step: u64,
        grads: Option<&GradNorms>,
    ) -> Result<ProbeReport, ModelError> {
        let mut eye = Eye { streams: Vec::new(), branches: self.wanted.branches, attention: Vec::new(), mlp: Vec::new() };
        model.observe(&self.tokens, self.seq_len, &mut eye)?;
        let width = model.config.width;
        let norms = |h: &Vec<f32>| -> f64 {
            let rows = h.chunks_exact(width);
            let count = rows.len() as f64;
            rows.map(|row| dot(row, row).sqrt()).sum::<f64>() / count
        };
        let stream_norm: Vec<f64> = eye.streams.iter().map(norms).collect();
        let increments: Vec<Vec<f32>> = eye.streams.windows(2).map(|w| subtract(&w[1], &w[0])).collect();
        let last = eye.streams.pop().unwrap_or_default();
        let update_rms = match &self.last {
            Some((at, before)) if at + 1 == step => {
                let change = subtract(&last, before);
                Some((dot(&change, &change) / change.len() as f64).sqrt())
            }
            _ => None,
        };
        self.last = Some((step, last));
        let cosines = self.wanted.cosines.then(|| cosine_matrices(&increments, width));
        let (cosine_by_token, cosine_flat) = cosines.unzip();
        let branches = |table: Vec<Vec<f64>>| self.wanted.branches.then_some(table);
        Ok(ProbeReport {
            step,
            stream_rms: stream_norm.iter().map(|n| n / (width as f64).sqrt()).collect(),
            stream_norm,
            increment_norm: increments.iter().map(norms).collect(),
            update_rms,
            cosine_by_token,
            cosine_flat,
            attention_rms: branches(eye.attention),
            mlp_rms: branches(eye.mlp),
            grad_norms: grads.filter(|_| self.wanted.gradients).map(|norms| {
                let names = parameters(&model.config).into_iter().map(|(name, ..)| name);
                names.zip(norms.each.iter().copied()).collect()
            }),
        })
    }
}

/// Norms and cosines of a model that is not in training, averaged over the tokens of all batches; a flat cosine over the batches.
pub fn at_rest<D: Backend>(model: &Model<D>, step: u64, batches: &[Batch]) -> Result<ProbeReport, ModelError> {
    let wanted = RawProbes { every_steps: 1, cosines: true, branches: false, gradients: false };
    let mut mean = ProbeReport::default();
    let mut seen = 0.0;
    for batch in batches {
        let report = Probes::new(wanted.clone(), batch).measure(model, step, None)?;
        let tokens = (batch.rows * batch.seq_len) as f64;
        seen += tokens;
        let weight = tokens / seen;
        blend(&mut mean.stream_rms, report.stream_rms, weight);
        blend(&mut mean.stream_norm, report.stream_norm, weight);
        blend(&mut mean.increment_norm, report.increment_norm, weight);
        for (mean, new) in [(&mut mean.cosine_by_token, report.cosine_by_token), (&mut mean.cosine_flat, report.cosine_flat)] {
            let (mean, new) = (mean.get_or_insert_default(), new.unwrap_or_default());
            mean.resize(new.len(), Vec::new());
            for (mean, new) in mean.iter_mut().zip(new) {
                blend(mean, new, weight);
            }
        }
    }
    mean.step = step;
    Ok(mean)
}

/// A running mean: `weight` is the part of the new values in all seen so far.
fn blend(mean: &mut Vec<f64>, new: Vec<f64>, weight: f64) {
    mean.resize(new.len(), 0.0);
    for (mean, new) in mean.iter_mut().zip(new) {
        *mean += weight * (new - *mean);
    }
}

fn dot(a: &[f32], b: &[f32]) -> f64 {
    a.iter().zip(b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum()
}

fn subtract(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

type Square = Vec<Vec<f64>>;

/// Cosines of increments of size (R, D) each: averaged over tokens, and of the flattened increments.
pub fn cosine_matrices(increments: &[Vec<f32>], width: usize) -> (Square, Square) {
    let n = increments.len();
    let rows = increments.first().map_or(0, |d| d.len() / width);
    let cosine = |dot: f64, a: f64, b: f64| {
        if a > 0.0 && b > 0.0 { dot / (a * b).sqrt() } else { 0.0 }
    };
    // Squared norms by token, and in all.
    let by_token: Vec<Vec<f64>> = increments.iter().map(|d| d.chunks_exact(width).map(|r| dot(r, r)).collect()).collect();
    let in_all: Vec<f64> = by_token.iter().map(|squares| squares.iter().sum()).collect();
    let (mut pooled, mut flat) = (vec![vec![1.0; n]; n], vec![vec![1.0; n]; n]);
    for i in 0..n {
        for j in 0..i {
            let dots: Vec<f64> =
                increments[i].chunks_exact(width).zip(increments[j].chunks_exact(width)).map(|(a, b)| dot(a, b)).collect();
            let sum: f64 = dots.iter().enumerate().map(|(r, &d)| cosine(d, by_token[i][r], by_token[j][r])).sum();
            pooled[i][j] = sum / rows as f64;
            pooled[j][i] = pooled[i][j];
            flat[i][j] = cosine(dots.iter().sum(), in_all[i], in_all[j]);
            flat[j][i] = flat[i][j];
        }
    }
    (pooled, flat)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cosines_by_token_and_flat_differ_as_they_should() {
        // Two tokens of width 2: parallel in the first, opposite and ten times as long in the second.
        let a = vec![1.0, 0.0, 10.0, 0.0];
        let b = vec![2.0, 0.0, -10.0, 0.0];
        let (pooled, flat) = cosine_matrices(&[a, b], 2);
        assert_eq!(pooled, vec![vec![1.0, 0.0], vec![0.0, 1.0]]);
        assert!((flat[0][1] + 98.0 / (101.0_f64 * 104.0).sqrt()).abs() < 1e-12);
    }
}

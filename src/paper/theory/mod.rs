//! The paper's lemmas and theorems on the model they are proved for: Monte-Carlo of both sides of each statement.
//! Measures only; whether a statement holds is judged elsewhere, from the rows. docs/theory.md lists the metrics.

mod block_norm;
mod block_update;
mod cone_gain;
mod cone_mass;
mod deep_stack;
mod influence;
mod loop_norm;
mod loop_update;
mod matrix;
mod overlap;
mod regression;
mod rows;
mod sharpness;
mod stack;

use super::tidy::Row;
use matrix::{Matrix, input};
use rayon::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The statements, as numbered in the list of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub enum Check {
    /// Lemma "Positive-cone mass".
    T1,
    /// Lemma "Gaussian gain on the positive cone".
    T2,
    /// Theorem "Looped residual-stream norm scaling".
    T3,
    /// Its corollary on the overlap of activations.
    T4,
    /// Theorem "Loop-wise learning-rate scaling".
    T5,
    /// "Trajectory-direction sharpness" of it.
    T6,
    /// Deep stacks whose layers are not shared.
    T7,
    /// Theorem "Multi-layer block scaling".
    T8,
    /// Its assumptions on drift and replacement.
    T9,
    /// Proposition "Multi-layer learning-rate scaling".
    T10,
}

/// What to measure and how large. Lists that a check does not use are dropped, so that changing them leaves its results alone.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Config {
    pub check: Check,
    /// Width.
    #[serde(default = "default_d")]
    pub d: usize,
    /// Independent draws of weights and inputs. The stage's seed says which: seed g draws g * draws .. (g + 1) * draws.
    #[serde(default = "default_draws")]
    pub draws: usize,
    /// N of a single shared layer: T1 to T6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loops: Option<Vec<usize>>,
    /// L of deep stacks: T7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depths: Option<Vec<usize>>,
    /// eps = L^-alpha: T7.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub alphas: Option<Vec<f64>>,
    /// N of blocks: T8 to T10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_loops: Option<Vec<usize>>,
    /// L of blocks: T8 to T10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub block_depths: Option<Vec<usize>>,
    /// eps = lambda / (N sqrt L): T8 and T10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lambdas: Option<Vec<f64>>,
    /// eps N: T9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub betas: Option<Vec<f64>>,
    /// Sizes of weight updates: T5 and T6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub etas: Option<Vec<f64>>,
    /// Optimiser steps: T6.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steps: Option<u64>,
    /// Inputs that a gradient is summed over: T6 and T10.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub batch: Option<usize>,
    /// Width at which the drift is measured: T9. It falls like 1/d^2, so a large width hides it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub drift_d: Option<usize>,
    /// Copies of a layer that the drift is averaged over: T9.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub copies: Option<usize>,
}

fn default_d() -> usize {
    256
}

fn default_draws() -> usize {
    8
}

/// A value that cannot be measured with.
#[derive(Debug, PartialEq, thiserror::Error)]
#[error("`{field}` is {value}, but must be {must}")]
pub struct OutOfRange {
    pub field: &'static str,
    pub value: String,
    pub must: &'static str,
}

/// The largest width: one matrix then takes 512 MiB.
const MAX_D: usize = 8192;
const MAX_COUNT: usize = 1 << 16;

impl Config {
    /// Defaults filled in, what the check does not use left out, ranges checked.
    pub fn check(self) -> Result<Config, OutOfRange> {
        use Check::*;
        let uses = |checks: &[Check]| checks.contains(&self.check);
        let single = uses(&[T1, T2, T3, T4, T5, T6]).then(|| self.loops.unwrap_or_else(|| vec![1, 2, 4, 8, 16, 32, 64]));
        let blocks = uses(&[T8, T9, T10]);
        let config = Config {
            check: self.check,
            d: self.d,
            draws: self.draws,
            loops: single,
            depths: uses(&[T7]).then(|| self.depths.unwrap_or_else(|| vec![4, 16, 64, 256])),
            alphas: uses(&[T7]).then(|| self.alphas.unwrap_or_else(|| vec![0.25, 0.5, 0.75, 1.0])),
            block_loops: blocks.then(|| self.block_loops.unwrap_or_else(|| vec![1, 4, 16])),
            block_depths: blocks.then(|| self.block_depths.unwrap_or_else(|| vec![1, 4, 16])),
            // The second is the paper's own: its branch scale 1 / (N sqrt(L/12)) is lambda = sqrt 12.
            lambdas: match self.check {
                T8 => Some(self.lambdas.unwrap_or_else(|| vec![1.0, 12_f64.sqrt()])),
                T10 => Some(self.lambdas.unwrap_or_else(|| vec![1.0])),
                _ => None,
            },
            // Three of them below 1 / sqrt L at L = 64.
            betas: uses(&[T9]).then(|| self.betas.unwrap_or_else(|| vec![0.025, 0.05, 0.1, 0.2, 0.4])),
            etas: uses(&[T5, T6]).then(|| self.etas.unwrap_or_else(|| vec![0.01])),
            steps: uses(&[T6]).then(|| self.steps.unwrap_or(3)),
            batch: uses(&[T6, T10]).then(|| self.batch.unwrap_or(4)),
            drift_d: uses(&[T9]).then(|| self.drift_d.unwrap_or(24)),
            copies: uses(&[T9]).then(|| self.copies.unwrap_or(1000)),
        };
        config.in_range()?;
        Ok(config)
    }

    fn in_range(&self) -> Result<(), OutOfRange> {
        let count = |field, value: usize, most: usize, must| match value {
            value if (1..=most).contains(&value) => Ok(()),
            value => Err(OutOfRange { field, value: value.to_string(), must }),
        };
        let width = "between 8 and 8192";
        for (field, d) in [("d", Some(self.d)), ("drift_d", self.drift_d)] {
            if let Some(d) = d.filter(|d| !(8..=MAX_D).contains(d)) {
                return Err(OutOfRange { field, value: d.to_string(), must: width });
            }
        }
        count("draws", self.draws, MAX_COUNT, "between 1 and 65536")?;
        count("batch", self.batch.unwrap_or(1), MAX_COUNT, "between 1 and 65536")?;
        count("steps", self.steps.unwrap_or(1) as usize, MAX_COUNT, "between 1 and 65536")?;
        if let Some(copies) = self.copies.filter(|copies| !(4..=MAX_COUNT).contains(copies) || copies % 2 == 1) {
            return Err(OutOfRange { field: "copies", value: copies.to_string(), must: "even, between 4 and 65536" });
        }
        let counts = [
            ("loops", &self.loops),
            ("depths", &self.depths),
            ("block_loops", &self.block_loops),
            ("block_depths", &self.block_depths),
        ];
        for (field, list) in counts {
            let Some(list) = list else { continue };
            if list.is_empty() || list.iter().any(|n| !(1..=MAX_COUNT).contains(n)) || !list.is_sorted_by(|a, b| a < b) {
                let value = serde_json::to_string(list).expect("numbers are plain data");
                return Err(OutOfRange { field, value, must: "a rising list of numbers between 1 and 65536" });
            }
        }
        let positive = [("alphas", &self.alphas), ("lambdas", &self.lambdas), ("betas", &self.betas), ("etas", &self.etas)];
        for (field, list) in positive {
            let Some(list) = list else { continue };
            let above_zero = |x: &f64| x.is_finite() && *x > 0.0;
            if list.is_empty() || !list.iter().all(above_zero) || !list.is_sorted_by(|a, b| a < b) {
                let value = serde_json::to_string(list).expect("numbers are plain data");
                return Err(OutOfRange { field, value, must: "a rising list of numbers above 0" });
            }
        }
        Ok(())
    }
}

/// The rows of a check, draw by draw, whatever the number of threads. `done` hears how many draws are done.
pub fn measure(config: &Config, group: u64, done: impl Fn(usize) + Sync) -> Vec<Row> {
    let finished = std::sync::atomic::AtomicUsize::new(0);
    let draw = |index: u64| {
        let seed = group * config.draws as u64 + index;
        let rows = one_draw(config, seed);
        done(finished.fetch_add(1, std::sync::atomic::Ordering::Relaxed) + 1);
        rows.into_iter().map(move |row| row.at("seed", seed)).collect::<Vec<_>>()
    };
    let draws: Vec<Vec<Row>> = (0..config.draws as u64).into_par_iter().map(draw).collect();
    let predicted = match config.check {
        Check::T2 => cone_gain::predicted(config),
        Check::T7 => deep_stack::predicted(config),
        _ => Vec::new(),
    };
    predicted.into_iter().chain(draws.into_iter().flatten()).collect()
}

fn one_draw(config: &Config, seed: u64) -> Vec<Row> {
    match config.check {
        Check::T1 => cone_mass::draw(config, seed),
        Check::T2 => cone_gain::draw(config, seed),
        Check::T3 => loop_norm::draw(config, seed),
        Check::T4 => overlap::draw(config, seed),
        Check::T5 => loop_update::draw(config, seed),
        Check::T6 => sharpness::draw(config, seed),
        Check::T7 => deep_stack::draw(config, seed),
        Check::T8 => block_norm::draw(config, seed),
        Check::T9 => influence::draw(config, seed),
        Check::T10 => block_update::draw(config, seed),
    }
}

/// A list that `Config::check` has filled in for this check.
fn list<T>(of: &Option<Vec<T>>) -> &[T] {
    of.as_deref().expect("Config::check fills in what the check uses")
}

/// The weights and the input of a draw: the same for every check, rule, loop count and, as a prefix, depth.
fn weights(d: usize, seed: u64, depth: usize) -> Vec<Matrix> {
    (0..depth).map(|layer| Matrix::gaussian(d, seed, &format!("theory/weights/{layer}"))).collect()
}

fn first_state(d: usize, seed: u64) -> Vec<f64> {
    input(d, seed, "theory/input")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A check at a size that takes a moment.
    pub fn config(check: Check) -> Config {
        let config = Config {
            check,
            d: 64,
            draws: 4,
            loops: Some(vec![1, 4, 16]),
            depths: Some(vec![4, 16]),
            alphas: None,
            block_loops: Some(vec![1, 4]),
            block_depths: Some(vec![1, 4, 16]),
            lambdas: None,
            betas: Some(vec![0.05, 0.2]),
            etas: None,
            steps: Some(2),
            batch: Some(2),
            drift_d: Some(8),
            copies: Some(20),
        };
        config.check().unwrap()
    }

    /// The mean of a metric over the rows that fit; there must be some.
    pub fn mean_of(rows: &[Row], metric: &str, fits: impl Fn(&Row) -> bool) -> f64 {
        let values: Vec<f64> = rows.iter().filter(|row| row.metric == metric && fits(row)).map(|row| row.value).collect();
        assert!(!values.is_empty(), "no row of {metric} fits");
        values.iter().sum::<f64>() / values.len() as f64
    }

    const CHECKS: [Check; 10] =
        [Check::T1, Check::T2, Check::T3, Check::T4, Check::T5, Check::T6, Check::T7, Check::T8, Check::T9, Check::T10];

    #[test]
    fn every_check_gives_the_same_rows_on_one_thread_and_on_three() {
        for check in CHECKS {
            let config = Config { d: 24, draws: 3, ..config(check) };
            let on = |threads| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
                pool.install(|| measure(&config, 1, |_| ()))
            };
            assert_eq!(on(1), on(3), "{check:?}");
        }
    }

    #[test]
    fn every_row_is_a_finite_number_and_groups_draw_different_seeds() {
        for check in CHECKS {
            let config = Config { d: 24, draws: 2, ..config(check) };
            let rows = measure(&config, 3, |_| ());
            assert!(rows.iter().all(|row| row.value.is_finite()), "{check:?}");
            let seeds: std::collections::BTreeSet<i64> = rows.iter().filter_map(|row| row.int("seed")).collect();
            assert_eq!(seeds, [6, 7].into(), "{check:?}");
        }
    }

    #[test]
    fn what_a_check_does_not_use_does_not_reach_its_parameters() {
        let other = Config { alphas: Some(vec![0.3]), copies: Some(8), ..config(Check::T3) };
        assert_eq!(other.check(), config(Check::T3).check());
    }
}

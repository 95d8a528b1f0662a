//! T2, lemma "Gaussian gain on the positive cone": a_gamma ||x|| <= ||Wx|| <= 3 ||x|| for every x >= 0, with high probability.
//! The extremes over the cone are searched for, so the least gain found is an upper bound of the true one.

use super::cone_mass::Cone;
use super::matrix::{Matrix, add_scaled, gaussian, norm, rms};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::tidy::Row;

/// The slacks that the lemma is evaluated at; it needs gamma < 1 - 1/sqrt 2 = 0.2929.
const GAMMAS: [f64; 3] = [0.05, 0.1, 0.2];
const STARTS: usize = 4;
const MAX_STEPS: usize = 2000;
/// Relative gain of a step below which a search ends.
const TOLERANCE: f64 = 1e-7;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let weights = weights(d, seed, 1);
    let input = first_state(d, seed);
    let w = &weights[0];
    let at = Place::of(Check::T2, d);
    let extremes = Extremes::of(w, seed);
    let positive: Vec<f64> = gaussian(d, seed, "theory/width").iter().map(|x| x.max(0.0)).collect();
    let mut rows = vec![
        at.measured("min_gain", extremes.least),
        at.measured("max_gain", extremes.most),
        at.measured("operator_norm", extremes.operator_norm),
        at.measured("cone_width", rms(&positive)),
    ];
    rows.extend(GAMMAS.map(|gamma| {
        let held = bound(gamma) <= extremes.least && extremes.most <= 3.0;
        at.at("variant", variant(gamma)).measured("gain_held", f64::from(u8::from(held)))
    }));
    for model in MODELS {
        for (rule, name) in LOOP_RULES {
            for &loops in list(&config.loops) {
                let stack = Stack { weights: &weights, model, scale: rule.branch_scale(loops, 1.0), loops };
                let sum = Cone::of(&stack, &input).sum;
                let at = at.at("model", model.name()).at("rule", name).at("N", loops);
                rows.push(at.measured("trajectory_gain", norm(&w.apply(&sum)) / norm(&sum)));
            }
        }
    }
    rows
}

/// The lemma's bound and its probability for each slack.
pub fn predicted(config: &Config) -> Vec<Row> {
    let d = config.d as f64;
    let rows = GAMMAS.map(|gamma| {
        let at = Place::of(Check::T2, config.d).at("variant", variant(gamma));
        let probability = 1.0 - (-gamma * gamma * d / 2.0).exp() - 2.0 * (-d / 2.0).exp();
        [at.measured("gain_bound", bound(gamma)), at.measured("gain_probability", probability)]
    });
    rows.into_iter().flatten().collect()
}

/// a_gamma at sigma_W = 1
fn bound(gamma: f64) -> f64 {
    1.0 - std::f64::consts::FRAC_1_SQRT_2 - gamma
}

fn variant(gamma: f64) -> String {
    format!("gamma-{gamma}")
}

/// The least and the largest ||Wx|| over x >= 0 with ||x|| = 1, as far as the search finds them.
struct Extremes {
    least: f64,
    most: f64,
    operator_norm: f64,
}

impl Extremes {
    fn of(w: &Matrix, seed: u64) -> Extremes {
        let operator_norm = w.operator_norm();
        // x'(c - W'W)x is convex in x for c >= ||W||^2, so each projected step can only raise it; likewise x'W'Wx.
        let shift = 1.02 * operator_norm * operator_norm;
        let from = |search: &str, start: usize| {
            let d = (w.values.len() as f64).sqrt() as usize;
            gaussian(d, seed, &format!("theory/{search}/{start}")).iter().map(|x| x.abs()).collect::<Vec<f64>>()
        };
        let least = (0..STARTS).map(|start| climb(w, from("least", start), Some(shift))).fold(f64::INFINITY, f64::min);
        let most = (0..STARTS).map(|start| climb(w, from("most", start), None)).fold(0.0, f64::max);
        Extremes { least, most, operator_norm }
    }
}

/// The gain at the end of x <- normalised positive part of (shift - W'W) x, or of W'W x.
fn climb(w: &Matrix, mut x: Vec<f64>, shift: Option<f64>) -> f64 {
    let mut last = f64::NAN;
    for _ in 0..MAX_STEPS {
        let length = norm(&x);
        x.iter_mut().for_each(|x| *x /= length);
        let y = w.apply(&x);
        let gain = norm(&y);
        if (gain - last).abs() <= TOLERANCE * gain {
            return gain;
        }
        last = gain;
        let mut next = w.apply_transposed(&y);
        if let Some(shift) = shift {
            next.iter_mut().for_each(|x| *x = -*x);
            add_scaled(&mut next, shift, &x);
        }
        x = next.into_iter().map(|x| x.max(0.0)).collect();
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_search_finds_the_extremes_of_a_diagonal_matrix() {
        let mut w = Matrix::zeros(8);
        for (i, gain) in [3.0, 1.5, 0.5, 2.0, 1.0, 0.7, 2.5, 1.2].into_iter().enumerate() {
            w.values[i * 8 + i] = gain;
        }
        let extremes = Extremes::of(&w, 0);
        assert!((extremes.least - 0.5).abs() < 1e-4, "{}", extremes.least);
        assert!((extremes.most - 3.0).abs() < 1e-4);
    }

    #[test]
    fn the_search_stays_in_the_cone() {
        // Wx = x_0 - x_1 in one direction: over all x the least gain is 0, over x >= 0 too, at x_0 = x_1; with a plus it is not.
        let d = 8;
        let mut w = Matrix::zeros(d);
        w.values[..2].copy_from_slice(&[1.0, 1.0]);
        for i in 2..d {
            w.values[i * d + i] = 2.0;
        }
        // x >= 0 with x_0 + x_1 as small as the unit length allows: 1 at a corner.
        assert!((Extremes::of(&w, 0).least - 1.0).abs() < 1e-4);
    }
}

//! T1, lemma "Positive-cone mass": m_- N <= ||U_N|| / sqrt d <= sqrt(q_+) N, for every trajectory and with the tightest m_-, q_+.

use super::matrix::{add_scaled, mean, mean_square, rms};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let weights = weights(config.d, seed, 1);
    let input = first_state(config.d, seed);
    let mut rows = Vec::new();
    for model in MODELS {
        for (rule, name) in LOOP_RULES {
            for &loops in list(&config.loops) {
                let stack = Stack { weights: &weights, model, scale: rule.branch_scale(loops, 1.0), loops };
                let cone = Cone::of(&stack, &input);
                let at = Place::of(Check::T1, config.d).at("model", model.name()).at("rule", name).at("N", loops);
                rows.extend([
                    at.measured("cone_mass", cone.mass),
                    at.measured("cone_norm", cone.norm),
                    at.measured("cone_rms", cone.rms),
                    at.measured("lower_margin", cone.norm / cone.mass),
                    at.measured("upper_margin", cone.rms / cone.norm),
                ]);
            }
        }
    }
    rows
}

/// The sum of activations and the lemma's two bounds on it, each per loop.
pub struct Cone {
    /// Mean over loops of m(u_n): the best m_-.
    pub mass: f64,
    /// ||U_N|| / (sqrt d N)
    pub norm: f64,
    /// Root of the mean over loops of q(u_n): the best sqrt(q_+).
    pub rms: f64,
    /// U_N
    pub sum: Vec<f64>,
}

impl Cone {
    /// Of a stack with one layer.
    pub fn of(stack: &Stack, input: &[f64]) -> Cone {
        let (mut mass, mut square, mut sum) = (0.0, 0.0, vec![0.0; input.len()]);
        stack.forward(input, |visit| {
            mass += mean(visit.u);
            square += mean_square(visit.u);
            add_scaled(&mut sum, 1.0, visit.u);
        });
        let n = stack.loops as f64;
        Cone { mass: mass / n, norm: rms(&sum) / n, rms: (square / n).sqrt(), sum }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn the_lemma_holds_on_every_trajectory() {
        for row in super::super::measure(&config(Check::T1), 0, |_| ()) {
            if row.metric.ends_with("_margin") {
                assert!(row.value >= 1.0 - 1e-12, "{row:?}");
            }
        }
    }

    #[test]
    fn at_one_loop_the_mass_is_that_of_a_gaussian() {
        let rows = super::super::measure(&Config { d: 1024, draws: 8, ..config(Check::T1) }, 0, |_| ());
        let one = |row: &Row| row.int("N") == Some(1);
        // E relu = 1/sqrt(2 pi), E relu^2 = 1/2; standard errors at 8 x 1024 numbers are 0.0065 and 0.009.
        assert!((mean_of(&rows, "cone_mass", one) - 0.3989).abs() < 0.02);
        assert!((mean_of(&rows, "cone_rms", one) - std::f64::consts::FRAC_1_SQRT_2).abs() < 0.02);
    }
}

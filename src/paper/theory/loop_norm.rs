//! T3, theorem "Looped residual-stream norm scaling": ||sum r_n||^2 / d = Theta(N^2), so R_N stays bounded only if eps N does.
//! Without a norm and with eps N unbounded, R grows exponentially: the theorem's q_+ is then not independent of N.

use super::matrix::{add_scaled, mean_square, rms};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Model, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let weights = weights(config.d, seed, 1);
    let input = first_state(config.d, seed);
    let mut rows = Vec::new();
    for model in MODELS {
        for (rule, name) in LOOP_RULES {
            for &loops in list(&config.loops) {
                let stack = Stack { weights: &weights, model, scale: rule.branch_scale(loops, 1.0), loops };
                let mut sum = vec![0.0; config.d];
                let last = stack.forward(&input, |visit| add_scaled(&mut sum, 1.0, visit.r));
                let at = Place::of(Check::T3, config.d).at("model", model.name()).at("rule", name).at("N", loops);
                let r = rms(&last);
                rows.extend([at.measured("branch_energy", mean_square(&sum)), at.measured("R", r), at.measured("log_R", r.ln())]);
                if model == Model::Raw && rule == Rule::None {
                    rows.push(at.measured("growth_per_loop", r.powf(1.0 / loops as f64)));
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn with_linear_scaling_the_energy_is_quadratic_and_the_norm_is_bounded() {
        let rows = super::super::measure(&config(Check::T3), 0, |_| ());
        for model in MODELS {
            let at = |loops| {
                move |row: &Row| {
                    row.text("model") == Some(model.name()) && row.text("rule") == Some("linear") && row.int("N") == Some(loops)
                }
            };
            let slope = (mean_of(&rows, "branch_energy", at(16)) / mean_of(&rows, "branch_energy", at(1))).ln() / 16_f64.ln();
            assert!((slope - 2.0).abs() < 0.15, "{model:?}: {slope}");
            assert!(mean_of(&rows, "R", at(16)) < 2.0, "{model:?}");
        }
    }

    #[test]
    fn with_a_norm_and_no_scaling_the_stream_grows_with_the_loops() {
        let rows = super::super::measure(&config(Check::T3), 0, |_| ());
        let at = |loops| {
            move |row: &Row| {
                row.text("model") == Some(Model::Prenorm.name())
                    && row.text("rule") == Some("none")
                    && row.int("N") == Some(loops)
            }
        };
        let slope = (mean_of(&rows, "R", at(16)) / mean_of(&rows, "R", at(4))).ln() / 4_f64.ln();
        assert!((slope - 1.0).abs() < 0.2, "{slope}");
    }
}

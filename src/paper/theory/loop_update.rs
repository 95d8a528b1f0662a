//! T5, theorem "Loop-wise learning-rate scaling": an update of size eta moves h_N by O(eta eps N).
//! The bound of the proof is evaluated too, with every constant as measured.

use super::matrix::{Matrix, difference, rms};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Model, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let weights = weights(d, seed, 1);
    let input = first_state(d, seed);
    let direction = Matrix::random_signs(d, seed, "theory/update/0");
    let (norm, update_norm) = (weights[0].operator_norm(), direction.operator_norm());
    let mut rows = vec![Place::of(Check::T5, d).measured("update_norm", update_norm)];
    for &eta in list(&config.etas) {
        let mut updated = weights.clone();
        updated[0].add_scaled(eta, &direction);
        for model in MODELS {
            for (rule, name) in LOOP_RULES {
                for &loops in list(&config.loops) {
                    let scale = rule.branch_scale(loops, 1.0);
                    let before = Stack { weights: &weights, model, scale, loops };
                    let after = Stack { weights: &updated, ..before };
                    // Q_+ of the proof: the largest activation after the update.
                    let mut activation: f64 = 0.0;
                    let end = after.forward(&input, |visit| activation = activation.max(rms(visit.u)));
                    let change = rms(&difference(&end, &before.output(&input)));
                    let at = Place::of(Check::T5, d).at("model", model.name()).at("rule", name).at("N", loops).at("eta", eta);
                    rows.push(at.measured("update_per_eta", change / eta));
                    // The proof uses that phi is 1-Lipschitz, and that eps N is bounded.
                    if model == Model::Raw && rule == Rule::Linear {
                        let reach = scale * loops as f64;
                        let bound = update_norm * activation * (norm * reach).exp() * eta * reach;
                        rows.push(at.measured("bound_ratio", change / bound));
                    }
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
    fn the_bound_of_the_proof_holds_and_at_one_loop_the_change_is_that_of_the_activation() {
        let rows = super::super::measure(&Config { draws: 16, ..config(Check::T5) }, 0, |_| ());
        let bounds = rows.iter().filter(|row| row.metric == "bound_ratio");
        assert!(bounds.map(|row| row.value).fold(0.0, f64::max) <= 1.0);
        // RMS of S u / sqrt d is that of u, 0.707; the standard error at 16 x 64 numbers is 0.03.
        let one = mean_of(&rows, "update_per_eta", |row| row.int("N") == Some(1));
        assert!((one - std::f64::consts::FRAC_1_SQRT_2).abs() < 0.09, "{one}");
    }
}

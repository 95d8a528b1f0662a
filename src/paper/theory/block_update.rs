//! T10, proposition "Multi-layer learning-rate scaling": the linearised change of h_out is at most C_J C_Delta eta lambda sqrt L,
//! and of that size when the layers' updates are coherent. Coherent, independent and real Adam updates are compared.

use super::matrix::{Matrix, add_scaled, gaussian, mean, operator_norm, rms, signs};
use super::regression::{Adam, Regression};
use super::rows::{FACTORISED, Place};
use super::stack::{MODELS, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

/// Adam's gradient costs several times the rest, and N hardly matters from here on: it is measured at the largest N up to this.
const ADAM_LOOPS: usize = 4;
/// Uses of a matrix up to which the norm of the Jacobian is found by power iteration.
const JACOBIAN_USES: usize = 64;
const JACOBIAN_TOLERANCE: f64 = 1e-3;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let depths = list(&config.block_depths);
    let deepest = depths.iter().copied().max().unwrap_or(1);
    let layers = weights(d, seed, deepest);
    let input = first_state(d, seed);
    let task = Regression::new(d, seed, config.batch.expect("Config::check fills in what the check uses"));
    let random: Vec<Matrix> =
        (0..deepest).map(|layer| Matrix::random_signs(d, seed, &format!("theory/update/{layer}"))).collect();
    // The same rank-one sign matrix in every layer, divided by its norm: dW u = eta m(u) s.
    let s = signs(d, seed, "theory/rank-one");
    let coherent = |_: usize, u: &[f64]| s.iter().map(|s| s * mean(u)).collect::<Vec<f64>>();
    let adam_loops = list(&config.block_loops).iter().copied().filter(|&loops| loops <= ADAM_LOOPS).max();
    let mut rows = Vec::new();
    for model in MODELS {
        for &lambda in list(&config.lambdas) {
            for &depth in depths {
                for &loops in list(&config.block_loops) {
                    let scale = Rule::Factorised { lambda }.branch_scale(loops, depth as f64);
                    let stack = Stack { weights: &layers[..depth], model, scale, loops };
                    let at = Place::of(Check::T10, d)
                        .at("model", model.name())
                        .at("rule", FACTORISED)
                        .at("lambda", lambda)
                        .at("L", depth)
                        .at("N", loops);
                    let states = stack.states(&input);
                    rows.extend(Change::of(&stack, &states, coherent).rows(&at, "coherent", &stack));
                    rows.extend(Change::of(&stack, &states, |l, u| random[l].apply(u)).rows(&at, "random-sign", &stack));
                    if adam_loops == Some(loops) {
                        rows.extend(adam(&task, &stack).rows(&at, "adam", &stack));
                    }
                    if depth * loops <= JACOBIAN_USES {
                        let start = gaussian(d, seed, "theory/jacobian");
                        let norm =
                            operator_norm(start, JACOBIAN_TOLERANCE, |v| stack.push(&states, v), |g| stack.pull(&states, g));
                        rows.push(at.measured("jacobian_norm", norm));
                    }
                }
            }
        }
    }
    rows
}

/// The linearised change of h_out for an update of size eta = 1.
struct Change {
    size: f64,
    /// max over n, l of RMS(dW_l phi(h_nl)): C_Delta
    scale: f64,
}

impl Change {
    fn of(stack: &Stack, states: &[Vec<f64>], update: impl Fn(usize, &[f64]) -> Vec<f64>) -> Change {
        let mut change = vec![0.0; states[0].len()];
        let mut scale: f64 = 0.0;
        for (at, h) in states[..states.len() - 1].iter().enumerate() {
            let layer = at % stack.weights.len();
            let carried = stack.weights[layer].apply(&stack.model.tangent(h, &change));
            let added = update(layer, &stack.model.activate(h));
            scale = scale.max(rms(&added));
            add_scaled(&mut change, stack.scale, &carried);
            add_scaled(&mut change, stack.scale, &added);
        }
        Change { size: rms(&change), scale }
    }

    fn rows(self, at: &Place, variant: &str, stack: &Stack) -> [Row; 3] {
        let at = at.at("variant", variant);
        let reach = stack.scale * (stack.loops * stack.weights.len()) as f64;
        [
            at.measured("update_per_eta", self.size),
            at.measured("update_scale", self.scale),
            at.measured("coherence", self.size / (self.scale * reach)),
        ]
    }
}

/// Adam's first step on all layers at once, seen by the inputs it was computed from: means over them.
fn adam(task: &Regression, stack: &Stack) -> Change {
    let d = task.inputs[0].len();
    let (_, gradient) = task.gradient(stack);
    let directions: Vec<Matrix> = gradient.iter().map(|gradient| Adam::new(d).direction(gradient, d)).collect();
    let mut mean = Change { size: 0.0, scale: 0.0 };
    for input in &task.inputs {
        let change = Change::of(stack, &stack.states(input), |layer, u| directions[layer].apply(u));
        mean.size += change.size / task.inputs.len() as f64;
        mean.scale += change.scale / task.inputs.len() as f64;
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::super::matrix::difference;
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn the_linearised_change_is_the_limit_of_the_real_one() {
        let (d, eta) = (24, 1e-6);
        for model in MODELS {
            let weights = weights(d, 0, 3);
            let updates: Vec<Matrix> = (0..3).map(|l| Matrix::random_signs(d, 0, &format!("update/{l}"))).collect();
            let mut updated = weights.clone();
            updated.iter_mut().zip(&updates).for_each(|(w, update)| w.add_scaled(eta, update));
            let input = first_state(d, 0);
            let before = Stack { weights: &weights, model, scale: 0.2, loops: 4 };
            let real = difference(&Stack { weights: &updated, ..before }.output(&input), &before.output(&input));
            let linear = Change::of(&before, &before.states(&input), |l, u| updates[l].apply(u));
            assert!((rms(&real) / eta / linear.size - 1.0).abs() < 1e-4, "{model:?}");
        }
    }

    #[test]
    fn coherent_updates_grow_with_the_root_of_depth_and_independent_ones_do_not() {
        let rows = super::super::measure(&Config { draws: 8, ..config(Check::T10) }, 0, |_| ());
        for model in MODELS {
            let slope = |variant: &'static str| {
                let at = |depth| {
                    move |row: &Row| {
                        row.text("model") == Some(model.name())
                            && row.text("variant") == Some(variant)
                            && row.int("L") == Some(depth)
                            && row.int("N") == Some(4)
                    }
                };
                (mean_of(&rows, "update_per_eta", at(16)) / mean_of(&rows, "update_per_eta", at(1))).ln() / 16_f64.ln()
            };
            assert!((slope("coherent") - 0.5).abs() < 0.15, "{model:?}: {}", slope("coherent"));
            assert!(slope("random-sign").abs() < 0.15, "{model:?}: {}", slope("random-sign"));
        }
    }
}

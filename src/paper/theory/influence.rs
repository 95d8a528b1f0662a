//! T9, the assumptions of the block theorem: the conditional mean of a branch (drift B_l) and the change of a branch when another
//! layer is replaced (Y_l - Y_l^(s)) are both O(beta^2) in squared norm, beta = eps N.

use super::matrix::{Matrix, add_scaled, difference, dot, mean_square};
use super::rows::Place;
use super::stack::{MODELS, Model, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::tidy::Row;

/// The block of the drift: two layers, one of them drawn again, and enough loops that it acts on its own input.
const DRIFT_DEPTH: usize = 2;
const DRIFT_LOOPS: usize = 4;
/// Uses of a matrix up to which replacement is measured: every point takes four runs for each beta.
const MOST_USES: usize = 64;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let mut rows = replacement(config, seed);
    rows.extend(drift(config, seed));
    rows
}

/// Replaces one layer at a time, and looks at all the others.
fn replacement(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let depths: Vec<usize> = list(&config.block_depths).iter().copied().filter(|&depth| depth > 1).collect();
    let deepest = depths.iter().copied().max().unwrap_or(0);
    let mut layers = weights(d, seed, deepest);
    let input = first_state(d, seed);
    let mut rows = Vec::new();
    for &depth in &depths {
        // The first, the middle and the last layer stand for all.
        let mut replaced = vec![0, depth / 2, depth - 1];
        replaced.dedup();
        let mut copies: Vec<Matrix> =
            replaced.iter().map(|s| Matrix::gaussian(d, seed, &format!("theory/replaced/{s}"))).collect();
        for model in MODELS {
            for &loops in list(&config.block_loops).iter().filter(|&&loops| loops * depth <= MOST_USES) {
                for &beta in list(&config.betas) {
                    let run = |layers: &[Matrix]| {
                        branches(&Stack { weights: &layers[..depth], model, scale: beta / loops as f64, loops }, &input)
                    };
                    let before = run(&layers);
                    let mut total = 0.0;
                    for (&s, copy) in replaced.iter().zip(&mut copies) {
                        std::mem::swap(&mut layers[s], copy);
                        let after = run(&layers);
                        std::mem::swap(&mut layers[s], copy);
                        let changed = (0..depth).filter(|&l| l != s).map(|l| mean_square(&difference(&before[l], &after[l])));
                        total += 0.5 * changed.sum::<f64>() / (depth - 1) as f64;
                    }
                    let value = total / replaced.len() as f64;
                    // The theorem is about beta = lambda / sqrt L: beyond lambda = 1 the constant of a raw stack depends on L.
                    let variant = if beta * (depth as f64).sqrt() <= 1.0 { "small" } else { "large" };
                    let at = place(d, model, beta, depth, loops).at("variant", variant);
                    rows.extend([at.measured("replacement", value), at.measured("replacement_constant", value / (beta * beta))]);
                }
            }
        }
    }
    rows
}

/// E ||B_l||^2 / d without the bias of a finite average: products of different copies only.
fn drift(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.drift_d.expect("Config::check fills in what the check uses");
    let copies = config.copies.expect("Config::check fills in what the check uses");
    let mut layers = weights(d, seed, DRIFT_DEPTH);
    let input = first_state(d, seed);
    let settings: Vec<(Model, f64)> =
        MODELS.into_iter().flat_map(|model| list(&config.betas).iter().map(move |&beta| (model, beta))).collect();
    let mut sums = vec![(vec![0.0; d], 0.0); settings.len()];
    for copy in 0..copies / 2 {
        let layer = Matrix::gaussian(d, seed, &format!("theory/drift/{copy}"));
        for ((model, beta), (sum, squares)) in settings.iter().zip(&mut sums) {
            // W and -W together: what is odd in W, nearly all of the branch, cancels, and the mean is the same.
            let mut pair = vec![0.0; d];
            for sign in [1.0, -1.0] {
                layers[0] = layer.clone().scaled(sign);
                let scale = beta / DRIFT_LOOPS as f64;
                let stack = Stack { weights: &layers, model: *model, scale, loops: DRIFT_LOOPS };
                add_scaled(&mut pair, 0.5, &branches(&stack, &input)[0]);
            }
            add_scaled(sum, 1.0, &pair);
            *squares += dot(&pair, &pair);
        }
    }
    let n = (copies / 2) as f64;
    let rows = settings.iter().zip(sums).flat_map(|(&(model, beta), (sum, squares))| {
        let value = (dot(&sum, &sum) - squares) / (n * (n - 1.0) * d as f64);
        let at = place(d, model, beta, DRIFT_DEPTH, DRIFT_LOOPS);
        [at.measured("drift", value), at.measured("drift_constant", value / (beta * beta))]
    });
    rows.collect()
}

fn place(d: usize, model: Model, beta: f64, depth: usize, loops: usize) -> Place {
    Place::of(Check::T9, d).at("model", model.name()).at("beta", beta).at("L", depth).at("N", loops)
}

/// Y_l = W_l (1/N) sum_n phi(h_nl) of every layer.
fn branches(stack: &Stack, input: &[f64]) -> Vec<Vec<f64>> {
    let mut branches = vec![vec![0.0; input.len()]; stack.weights.len()];
    stack.forward(input, |visit| add_scaled(&mut branches[visit.layer], 1.0 / stack.loops as f64, visit.r));
    branches
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn replacing_a_layer_moves_the_others_by_beta_squared() {
        let rows = super::super::measure(&Config { draws: 8, ..config(Check::T9) }, 0, |_| ());
        for model in MODELS {
            let at = |beta| {
                move |row: &Row| {
                    row.text("model") == Some(model.name()) && row.number("beta") == Some(beta) && row.int("N") == Some(4)
                }
            };
            let slope = (mean_of(&rows, "replacement", at(0.2)) / mean_of(&rows, "replacement", at(0.05))).ln() / 4_f64.ln();
            assert!((slope - 2.0).abs() < 0.2, "{model:?}: {slope}");
            // One loop: a layer moves the next ones by beta^2 (W - W')u, which ReLU halves twice, and the earlier ones not at all:
            // 1/4 of beta^2 for half of the pairs.
            let one = |row: &Row| {
                row.text("model") == Some(model.name())
                    && row.number("beta") == Some(0.05)
                    && row.int("N") == Some(1)
                    && row.int("L") == Some(4)
            };
            let constant = mean_of(&rows, "replacement_constant", one);
            assert!((constant - 0.125).abs() < 0.02, "{model:?}: {constant}");
        }
    }

    #[test]
    fn the_drift_of_a_raw_layer_is_what_steins_lemma_gives() {
        let config = Config { draws: 16, drift_d: Some(16), copies: Some(400), ..config(Check::T9) };
        let rows: Vec<Row> = (0..16).flat_map(|seed| drift(&config, seed)).collect();
        let small = |row: &Row| row.text("model") == Some(Model::Raw.name()) && row.number("beta") == Some(0.05);
        // B_l = beta (N - 1) / (2 N) u / d to first order in beta, and ||u||^2 / d = 1/2.
        let expected = (3.0_f64 / 8.0).powi(2) * 0.5 / (16.0 * 16.0);
        let constant = mean_of(&rows, "drift_constant", small);
        assert!((constant / expected - 1.0).abs() < 0.25, "{constant} for {expected}");
    }

    #[test]
    fn without_a_second_loop_a_layer_has_no_drift() {
        // Y_l = W_l phi(h_l) is odd in W_l when nothing before it depends on W_l: the pair cancels exactly.
        let weights = weights(16, 0, 2);
        let input = first_state(16, 0);
        let mut pair = vec![0.0; 16];
        for sign in [1.0, -1.0] {
            let layers = [weights[0].clone().scaled(sign), weights[1].clone()];
            let stack = Stack { weights: &layers, model: Model::Raw, scale: 0.3, loops: 1 };
            add_scaled(&mut pair, 1.0, &branches(&stack, &input)[0]);
        }
        assert!(mean_square(&pair) < 1e-28);
    }
}

//! T8, theorem "Multi-layer block scaling": ||sum_l G_l||^2 / d = Theta(L N^2) at eps = lambda / (N sqrt L), for small lambda.

use super::matrix::{add_scaled, mean_square, rms};
use super::rows::{FACTORISED, Place};
use super::stack::{MODELS, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let depths = list(&config.block_depths);
    let layers = weights(d, seed, depths.iter().copied().max().unwrap_or(1));
    let input = first_state(d, seed);
    let mut rows = Vec::new();
    for model in MODELS {
        for &lambda in list(&config.lambdas) {
            for &depth in depths {
                for &loops in list(&config.block_loops) {
                    let scale = Rule::Factorised { lambda }.branch_scale(loops, depth as f64);
                    let stack = Stack { weights: &layers[..depth], model, scale, loops };
                    let mut sum = vec![0.0; d];
                    let last = stack.forward(&input, |visit| add_scaled(&mut sum, 1.0, visit.r));
                    let at = Place::of(Check::T8, d)
                        .at("model", model.name())
                        .at("rule", FACTORISED)
                        .at("lambda", lambda)
                        .at("L", depth)
                        .at("N", loops);
                    let (l, n, energy) = (depth as f64, loops as f64, mean_square(&sum));
                    let beta = scale * n;
                    rows.extend([
                        at.measured("branch_energy", energy),
                        at.measured("branch_ratio", energy / (l * n * n)),
                        at.measured("branch_bound", energy / (n * n * (l + beta * beta * l * l))),
                        at.measured("R", rms(&last)),
                    ]);
                }
            }
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::super::stack::Model;
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn at_one_loop_the_energy_is_that_of_the_deep_stack() {
        let rows = super::super::measure(&Config { draws: 32, ..config(Check::T8) }, 0, |_| ());
        for depth in [1, 4] {
            let at = |row: &Row| {
                row.text("model") == Some(Model::Raw.name())
                    && row.number("lambda") == Some(1.0)
                    && row.int("L") == Some(depth)
                    && row.int("N") == Some(1)
            };
            let eps2 = 1.0 / depth as f64;
            // E ||sum r||^2 / d = (E R^2 - 1) / eps^2; 32 draws at d = 64 leave 0.05 of spread.
            let expected = ((1.0 + eps2 / 2.0).powi(depth as i32) - 1.0) / eps2 / depth as f64;
            let ratio = mean_of(&rows, "branch_ratio", at);
            assert!((ratio / expected - 1.0).abs() < 0.2, "{depth}: {ratio} for {expected}");
        }
    }
}

//! T4, the corollary on overlap: the mean of <u_n, u_m> / d over all pairs is ||U_N||^2 / (d N^2), and bounded from both sides.
//! The same is measured without sharing: activations overlap there too, because they are not negative; residuals do not.

use super::matrix::{add_scaled, dot, mean_square};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let input = first_state(config.d, seed);
    let counts = list(&config.loops);
    // As many independent layers as they can be held and multiplied in reasonable time.
    let deepest = counts.iter().copied().filter(|&n| n <= 64).max().unwrap_or(1);
    let layers = weights(config.d, seed, deepest);
    let mut rows = Vec::new();
    for model in MODELS {
        for (rule, name) in LOOP_RULES {
            for &loops in counts {
                let scale = rule.branch_scale(loops, 1.0);
                let at = Place::of(Check::T4, config.d).at("model", model.name()).at("rule", name).at("N", loops);
                let looped = Stack { weights: &layers[..1], model, scale, loops };
                rows.extend(measured(&at.at("stack", "looped"), &looped, &input));
                if loops <= deepest && rule == Rule::Linear {
                    let deep = Stack { weights: &layers[..loops], model, scale, loops: 1 };
                    rows.extend(measured(&at.at("stack", "deep"), &deep, &input));
                }
            }
        }
    }
    rows
}

fn measured(at: &Place, stack: &Stack, input: &[f64]) -> [Row; 3] {
    let (mut us, mut rs) = (Vec::new(), Vec::new());
    stack.forward(input, |visit| {
        us.push(visit.u.to_vec());
        rs.push(visit.r.to_vec());
    });
    let overlap = mean_overlap(&us);
    [
        at.measured("overlap", overlap),
        at.measured("overlap_error", (square_of_the_sum(&us) / overlap - 1.0).abs()),
        at.measured("residual_overlap", square_of_the_sum(&rs)),
    ]
}

/// Mean over n, m of <x_n, x_m> / d by the double sum.
fn mean_overlap(x: &[Vec<f64>]) -> f64 {
    let n = x.len();
    let own: f64 = x.iter().map(|x| dot(x, x)).sum();
    let pairs: f64 = (0..n).map(|i| (0..i).map(|j| dot(&x[i], &x[j])).sum::<f64>()).sum();
    (own + 2.0 * pairs) / (x[0].len() * n * n) as f64
}

/// ||sum x_n||^2 / (d N^2)
fn square_of_the_sum(x: &[Vec<f64>]) -> f64 {
    let mut sum = vec![0.0; x[0].len()];
    x.iter().for_each(|x| add_scaled(&mut sum, 1.0, x));
    mean_square(&sum) / (x.len() * x.len()) as f64
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn the_double_sum_is_the_square_of_the_sum_and_sharing_makes_residuals_overlap() {
        let rows = super::super::measure(&config(Check::T4), 0, |_| ());
        let errors = rows.iter().filter(|row| row.metric == "overlap_error");
        assert!(errors.map(|row| row.value).fold(0.0, f64::max) < 1e-12);
        let at = |stack| {
            move |row: &Row| row.text("stack") == Some(stack) && row.text("rule") == Some("linear") && row.int("N") == Some(16)
        };
        assert!(mean_of(&rows, "overlap", at("looped")) > 0.3);
        assert!(mean_of(&rows, "overlap", at("deep")) > 0.3);
        assert!(mean_of(&rows, "residual_overlap", at("looped")) > 5.0 * mean_of(&rows, "residual_overlap", at("deep")));
    }
}

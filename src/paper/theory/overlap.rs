//! T4, the corollary on overlap: the mean of <u_n, u_m> / d over all pairs is ||U_N||^2 / (d N^2), and bounded from both sides.
//! The same is measured without sharing: activations overlap there too, because they are not negative; residuals do not.

use super::matrix::{add_scaled, dot, mean_square};
use super::rows::{LOOP_RULES, Row, rule_name};
use super::stack::{MODELS, Model, Stack};
use super::{Check, Config, first_state, list, weights};
use crate::paper::scaling::Rule;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let input = first_state(config.d, seed);
    let counts = list(&config.loops);
    // As many independent layers as they can be held and multiplied in reasonable time.
    let deepest = counts.iter().copied().filter(|&n| n <= 64).max().unwrap_or(1);
    let layers = weights(config.d, seed, deepest);
    let mut rows = Vec::new();
    for model in MODELS {
        for rule in LOOP_RULES {
            for &loops in counts {
                let scale = rule.branch_scale(loops, 1.0);
                let looped = Stack { weights: &layers[..1], model, scale, loops };
                rows.extend(measured(config, "looped", rule, loops, &looped, &input));
                if loops <= deepest && rule == Rule::Linear {
                    let deep = Stack { weights: &layers[..loops], model, scale, loops: 1 };
                    rows.extend(measured(config, "deep", rule, loops, &deep, &input));
                }
            }
        }
    }
    rows
}

fn measured(config: &Config, name: &'static str, rule: Rule, loops: usize, stack: &Stack, input: &[f64]) -> [Row; 3] {
    let (mut us, mut rs) = (Vec::new(), Vec::new());
    stack.forward(input, |visit| {
        us.push(visit.u.to_vec());
        rs.push(visit.r.to_vec());
    });
    let overlap = mean_overlap(&us);
    let model: Model = stack.model;
    let at = Row {
        stack: Some(name),
        model: Some(model),
        rule: Some(rule_name(rule)),
        loops: Some(loops),
        ..Row::at(Check::T4, config.d)
    };
    [
        at.of("overlap", overlap),
        at.of("overlap_error", (square_of_the_sum(&us) / overlap - 1.0).abs()),
        at.of("residual_overlap", square_of_the_sum(&rs)),
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
        let at = |stack| move |row: &Row| row.stack == Some(stack) && row.rule == Some("linear") && row.loops == Some(16);
        assert!(mean_of(&rows, "overlap", at("looped")) > 0.3);
        assert!(mean_of(&rows, "overlap", at("deep")) > 0.3);
        assert!(mean_of(&rows, "residual_overlap", at("looped")) > 5.0 * mean_of(&rows, "residual_overlap", at("deep")));
    }
}

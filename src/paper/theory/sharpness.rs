//! T6, "Trajectory-direction sharpness": where dW has gain zeta on U_N and the remainder is a fraction theta < 1 of the leading
//! term, the change of h_N is Theta(zeta eta eps N). Both are measured, on model updates and on real Adam steps.

use super::cone_mass::Cone;
use super::matrix::{Matrix, add_scaled, difference, norm, rms, signs};
use super::regression::{Adam, Regression};
use super::rows::{LOOP_RULES, Place};
use super::stack::{MODELS, Model, Stack};
use super::{Check, Config, list, weights};
use crate::paper::scaling::Rule;
use crate::paper::tidy::Row;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let d = config.d;
    let weights = weights(d, seed, 1);
    let task = Regression::new(d, seed, config.batch.expect("Config::check fills in what the check uses"));
    let random = Matrix::random_signs(d, seed, "theory/update/0");
    // The sign of a gradient of one input is rank one, sign(g) x 1, of norm sqrt d: divided by it, the norm is eta again.
    let mut rank_one = Matrix::zeros(d);
    rank_one.add_outer(1.0 / d as f64, &signs(d, seed, "theory/rank-one"), &vec![1.0; d]);
    let random_norm = random.operator_norm();
    let mut rows = Vec::new();
    for model in MODELS {
        for (rule, name) in LOOP_RULES {
            for &loops in list(&config.loops) {
                let stack = Stack { weights: &weights, model, scale: rule.branch_scale(loops, 1.0), loops };
                for &eta in list(&config.etas) {
                    let at = Place::of(Check::T6, d)
                        .at("model", model.name())
                        .at("rule", name)
                        .at("N", loops)
                        .at("eta", eta)
                        .at("step", 1_u64);
                    rows.extend(measured(&at, "random-sign", &stack, &random, random_norm, eta, &task.inputs));
                    rows.extend(measured(&at, "rank-one", &stack, &rank_one, 1.0, eta, &task.inputs));
                    // Without a norm only linear scaling keeps the stream, and so the gradient, in range.
                    if model == Model::Prenorm || rule == Rule::Linear {
                        let steps = config.steps.expect("Config::check fills in what the check uses");
                        // Later steps matter where training would go on: with linear scaling.
                        let steps = if rule == Rule::Linear { steps } else { 1 };
                        rows.extend(adam(&at, stack, &task, eta, steps));
                    }
                }
            }
        }
    }
    rows
}

/// Trains, and measures every step before it is taken.
fn adam(at: &Place, stack: Stack, task: &Regression, eta: f64, steps: u64) -> Vec<Row> {
    let mut weights = stack.weights.to_vec();
    let d = task.inputs[0].len();
    let mut optimiser = Adam::new(d);
    let mut rows = Vec::new();
    for step in 1..=steps {
        let stack = Stack { weights: &weights, ..stack };
        let (loss, gradient) = task.gradient(&stack);
        let direction = optimiser.direction(&gradient[0], d);
        let size = direction.operator_norm();
        let at = at.at("step", step);
        rows.push(at.at("variant", "adam").measured("loss", loss));
        rows.extend(measured(&at, "adam", &stack, &direction, size, eta, &task.inputs));
        let normalised = direction.clone().scaled(1.0 / size);
        let normalised = measured(&at, "adam-normalised", &stack, &normalised, 1.0, eta, &task.inputs);
        rows.extend(normalised.into_iter().filter(|row| matches!(row.metric.as_str(), "zeta" | "theta")));
        weights[0].add_scaled(eta, &direction);
    }
    rows
}

/// Means over the inputs, for dW = eta direction.
fn measured(at: &Place, variant: &str, stack: &Stack, direction: &Matrix, size: f64, eta: f64, inputs: &[Vec<f64>]) -> Vec<Row> {
    let mut updated = stack.weights.to_vec();
    updated[0].add_scaled(eta, direction);
    let after = Stack { weights: &updated, ..*stack };
    let reach = stack.scale * stack.loops as f64;
    let mut sums = [0.0; 5];
    for input in inputs {
        let cone = Cone::of(stack, input);
        let moved = direction.apply(&cone.sum);
        let zeta = norm(&moved) / norm(&cone.sum);
        let leading: Vec<f64> = moved.iter().map(|x| x * eta * stack.scale).collect();
        let change = difference(&after.output(input), &stack.output(input));
        let theta = norm(&difference(&change, &leading)) / norm(&leading);
        let sharpness = rms(&change) / (zeta * eta * reach);
        add_scaled(&mut sums, 1.0, &[zeta, theta, sharpness, (1.0 - theta) * cone.mass, (1.0 + theta) * cone.rms]);
    }
    let at = at.at("variant", variant);
    let metrics = ["zeta", "theta", "sharpness", "sharpness_low", "sharpness_high"];
    let mut rows: Vec<Row> =
        metrics.into_iter().zip(sums).map(|(name, sum)| at.measured(name, sum / inputs.len() as f64)).collect();
    rows.push(at.measured("update_norm", size));
    rows
}

#[cfg(test)]
mod tests {
    use super::super::tests::{config, mean_of};
    use super::*;

    #[test]
    fn random_signs_have_gain_one_and_a_rank_one_step_that_of_the_cone() {
        let rows = super::super::measure(&config(Check::T6), 0, |_| ());
        let of = |variant: &'static str| move |row: &Row| row.text("variant") == Some(variant) && row.int("N") == Some(1);
        assert!((mean_of(&rows, "zeta", of("random-sign")) - 1.0).abs() < 0.1);
        // mass over root of square: 0.399 / 0.707
        assert!((mean_of(&rows, "zeta", of("rank-one")) - 0.564).abs() < 0.06);
        let normalised = mean_of(&rows, "zeta", of("adam-normalised"));
        assert!((0.4..=1.0).contains(&normalised), "{normalised}");
        // A sign matrix of few inputs is nearly rank one: far above the 2 of random signs at this width of 64.
        assert!(mean_of(&rows, "update_norm", of("adam")) > 3.0);
    }

    #[test]
    fn at_one_loop_there_is_no_remainder_and_the_interval_always_holds() {
        let rows = super::super::measure(&config(Check::T6), 0, |_| ());
        let theta = rows.iter().filter(|row| row.metric == "theta" && row.int("N") == Some(1));
        assert!(theta.map(|row| row.value).fold(0.0, f64::max) < 1e-9);
        let all = |metric: &'static str| rows.iter().filter(move |row| row.metric == metric).map(|row| row.value);
        for ((low, value), high) in all("sharpness_low").zip(all("sharpness")).zip(all("sharpness_high")) {
            // At one loop the upper end is attained.
            assert!(low <= value && value <= high * (1.0 + 1e-9), "{low} {value} {high}");
        }
    }
}

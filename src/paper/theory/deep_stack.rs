//! T7, deep stacks whose layers are not shared: E R_L^2 = (1 + eps^2/2)^L for ReLU, so eps = L^-1/2 suffices.
//! With a norm each layer adds eps^2/2 instead of multiplying.

use super::matrix::{add_scaled, gaussian, mean_square, rms};
use super::rows::Place;
use super::stack::{MODELS, Model};
use super::{Check, Config, first_state, list};
use crate::paper::tidy::Row;

/// Stacks that a draw is the mean of: the energy of one varies by half its mean, and a stack costs little.
const STACKS: u64 = 64;

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let points: Vec<(Model, f64, usize)> = points(config).collect();
    let mut energies = vec![0.0; points.len()];
    for stack in 0..STACKS {
        add_scaled(&mut energies, 1.0 / STACKS as f64, &energies_of(config.d, seed * STACKS + stack, &points));
    }
    let rows = points.into_iter().zip(energies).flat_map(|((model, alpha, depth), energy)| {
        let eps = (depth as f64).powf(-alpha);
        let at = place(config, model, alpha, depth);
        [at.measured("energy", energy), at.measured("energy_ratio", energy / prediction(model, eps, depth))]
    });
    rows.collect()
}

/// What the recursion of the paper says for each point.
pub fn predicted(config: &Config) -> Vec<Row> {
    let row = |(model, alpha, depth): (Model, f64, usize)| {
        let eps = (depth as f64).powf(-alpha);
        place(config, model, alpha, depth).measured("energy_predicted", prediction(model, eps, depth))
    };
    points(config).map(row).collect()
}

fn points(config: &Config) -> impl Iterator<Item = (Model, f64, usize)> + '_ {
    let depths = move |model, alpha| list(&config.depths).iter().map(move |&depth| (model, alpha, depth));
    let alphas = move |model| list(&config.alphas).iter().flat_map(move |&alpha| depths(model, alpha));
    MODELS.into_iter().flat_map(alphas)
}

fn place(config: &Config, model: Model, alpha: f64, depth: usize) -> Place {
    Place::of(Check::T7, config.d).at("stack", "deep").at("model", model.name()).at("alpha", alpha).at("L", depth)
}

fn prediction(model: Model, eps: f64, depth: usize) -> f64 {
    match model {
        Model::Raw => (1.0 + eps * eps / 2.0).powi(depth as i32),
        Model::Prenorm => 1.0 + depth as f64 * eps * eps / 2.0,
    }
}

/// R_L^2 of one stack at each point, all with the same noise. A Gaussian matrix that is used once acts on a given u like a
/// Gaussian vector of size ||u|| / sqrt d, so none is drawn: the law is the same and a layer costs d numbers instead of d^2.
fn energies_of(d: usize, seed: u64, points: &[(Model, f64, usize)]) -> Vec<f64> {
    let mut states = vec![first_state(d, seed); points.len()];
    let deepest = points.iter().map(|point| point.2).max().unwrap_or(0);
    for layer in 0..deepest {
        let noise = gaussian(d, seed, &format!("theory/deep/{layer}"));
        for (h, &(model, alpha, depth)) in states.iter_mut().zip(points).filter(|(_, point)| layer < point.2) {
            let size = rms(&model.activate(h));
            add_scaled(h, (depth as f64).powf(-alpha) * size, &noise);
        }
    }
    states.iter().map(|h| mean_square(h)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::stack::Stack;
    use super::super::tests::{config, mean_of};
    use super::super::weights;
    use super::*;

    #[test]
    fn the_mean_energy_is_that_of_the_recursion() {
        let rows = super::super::measure(&config(Check::T7), 0, |_| ());
        for model in MODELS {
            for (alpha, depth) in [(0.5, 16), (1.0, 16), (0.5, 4)] {
                let at = |row: &Row| {
                    row.text("model") == Some(model.name()) && row.number("alpha") == Some(alpha) && row.int("L") == Some(depth)
                };
                let ratio = mean_of(&rows, "energy_ratio", at);
                // One stack at d = 64 has a spread of at most 0.25 here; these are 256.
                assert!((ratio - 1.0).abs() < 0.08, "{model:?} {alpha} {depth}: {ratio}");
            }
        }
    }

    #[test]
    fn drawing_vectors_instead_of_matrices_leaves_the_law_alone() {
        let (d, depth, draws) = (24, 6, 400);
        let eps = (depth as f64).powf(-0.5);
        for model in MODELS {
            let vectors: Vec<f64> = (0..draws).map(|seed| energies_of(d, seed, &[(model, 0.5, depth)])[0]).collect();
            let matrices: Vec<f64> = (0..draws)
                .map(|seed| {
                    let weights = weights(d, seed, depth);
                    let stack = Stack { weights: &weights, model, scale: eps, loops: 1 };
                    mean_square(&stack.output(&first_state(d, seed)))
                })
                .collect();
            let moments = |x: &[f64]| {
                let mean = x.iter().sum::<f64>() / x.len() as f64;
                (mean, (x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64).sqrt())
            };
            let ((a, spread_a), (b, spread_b)) = (moments(&vectors), moments(&matrices));
            let error = ((spread_a.powi(2) + spread_b.powi(2)) / draws as f64).sqrt();
            assert!((a - b).abs() < 4.0 * error, "{model:?}: {a} and {b}");
            assert!((spread_a / spread_b).ln().abs() < 0.3, "{model:?}: {spread_a} and {spread_b}");
        }
    }
}

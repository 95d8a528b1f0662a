//! T7, deep stacks whose layers are not shared: E R_L^2 = (1 + eps^2/2)^L for ReLU, so eps = L^-1/2 suffices.
//! With a norm each layer adds eps^2/2 instead of multiplying.

use super::matrix::{add_scaled, gaussian, mean_square, rms};
use super::rows::Row;
use super::stack::{MODELS, Model};
use super::{Check, Config, first_state, list};

pub fn draw(config: &Config, seed: u64) -> Vec<Row> {
    let mut rows = Vec::new();
    for (model, alpha, depth) in points(config) {
        let eps = (depth as f64).powf(-alpha);
        let energy = energy(config.d, seed, model, eps, depth);
        let at = place(config, model, alpha, depth);
        rows.extend([at.of("energy", energy), at.of("energy_ratio", energy / prediction(model, eps, depth))]);
    }
    rows
}

/// What the recursion of the paper says for each point.
pub fn predicted(config: &Config) -> Vec<Row> {
    let row = |(model, alpha, depth): (Model, f64, usize)| {
        let eps = (depth as f64).powf(-alpha);
        place(config, model, alpha, depth).of("energy_predicted", prediction(model, eps, depth))
    };
    points(config).map(row).collect()
}

fn points(config: &Config) -> impl Iterator<Item = (Model, f64, usize)> + '_ {
    let depths = move |model, alpha| list(&config.depths).iter().map(move |&depth| (model, alpha, depth));
    let alphas = move |model| list(&config.alphas).iter().flat_map(move |&alpha| depths(model, alpha));
    MODELS.into_iter().flat_map(alphas)
}

fn place(config: &Config, model: Model, alpha: f64, depth: usize) -> Row {
    let at = Row::at(Check::T7, config.d);
    Row { stack: Some("deep"), model: Some(model), alpha: Some(alpha), depth: Some(depth), ..at }
}

fn prediction(model: Model, eps: f64, depth: usize) -> f64 {
    match model {
        Model::Raw => (1.0 + eps * eps / 2.0).powi(depth as i32),
        Model::Prenorm => 1.0 + depth as f64 * eps * eps / 2.0,
    }
}

/// R_L^2 of one stack. A Gaussian matrix that is used once acts on a given u like a Gaussian vector of size ||u|| / sqrt d,
/// so none is drawn: the law is the same and a draw costs L d numbers instead of L d^2.
fn energy(d: usize, seed: u64, model: Model, eps: f64, depth: usize) -> f64 {
    let mut h = first_state(d, seed);
    for layer in 0..depth {
        let size = rms(&model.activate(&h));
        add_scaled(&mut h, eps * size, &gaussian(d, seed, &format!("theory/deep/{layer}")));
    }
    mean_square(&h)
}

#[cfg(test)]
mod tests {
    use super::super::stack::Stack;
    use super::super::tests::{config, mean_of};
    use super::super::weights;
    use super::*;

    #[test]
    fn the_mean_energy_is_that_of_the_recursion() {
        let rows = super::super::measure(&Config { draws: 64, ..config(Check::T7) }, 0, |_| ());
        for model in MODELS {
            for (alpha, depth) in [(0.5, 16), (1.0, 16), (0.5, 4)] {
                let at = |row: &Row| row.model == Some(model) && row.alpha == Some(alpha) && row.depth == Some(depth);
                let ratio = mean_of(&rows, "energy_ratio", at);
                // One draw at d = 64 has a spread of at most 0.25 here.
                assert!((ratio - 1.0).abs() < 0.1, "{model:?} {alpha} {depth}: {ratio}");
            }
        }
    }

    #[test]
    fn drawing_vectors_instead_of_matrices_leaves_the_law_alone() {
        let (d, depth, draws) = (24, 6, 400);
        let eps = (depth as f64).powf(-0.5);
        for model in MODELS {
            let vectors: Vec<f64> = (0..draws).map(|seed| energy(d, seed, model, eps, depth)).collect();
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

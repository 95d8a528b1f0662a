//! A task for the model, so that there are real optimiser steps to measure: inputs to random targets by least squares, with Adam.

use super::matrix::{Matrix, difference, dot, input};
use super::stack::Stack;

const BETAS: (f64, f64) = (0.9, 0.95);
const EPS: f64 = 1e-8;

/// Inputs and targets, all of R = 1.
pub struct Regression {
    pub inputs: Vec<Vec<f64>>,
    targets: Vec<Vec<f64>>,
}

impl Regression {
    pub fn new(d: usize, seed: u64, batch: usize) -> Regression {
        let draw = |what: &str| (0..batch).map(|b| input(d, seed, &format!("theory/{what}/{b}"))).collect();
        Regression { inputs: draw("regression-input"), targets: draw("regression-target") }
    }

    /// Mean over inputs of ||h_out - y||^2 / (2 d), and its gradient times d, one matrix per layer.
    pub fn gradient(&self, stack: &Stack) -> (f64, Vec<Matrix>) {
        let d = self.inputs[0].len();
        let (mut loss, mut gradient) = (0.0, vec![Matrix::zeros(d); stack.weights.len()]);
        for (input, target) in self.inputs.iter().zip(&self.targets) {
            let states = stack.states(input);
            let error = difference(states.last().expect("the output is the last state"), target);
            loss += dot(&error, &error) / (2 * d * self.inputs.len()) as f64;
            let error: Vec<f64> = error.iter().map(|x| x / self.inputs.len() as f64).collect();
            stack.add_gradient(&states, &error, &mut gradient);
        }
        (loss, gradient)
    }
}

/// Adam's memory for one matrix.
pub struct Adam {
    first: Matrix,
    second: Matrix,
    steps: i32,
}

impl Adam {
    pub fn new(d: usize) -> Adam {
        Adam { first: Matrix::zeros(d), second: Matrix::zeros(d), steps: 0 }
    }

    /// The update divided by eta, where the rate of an entry is eta / sqrt d: entries of +-1/sqrt d at the first step.
    pub fn direction(&mut self, gradient: &Matrix, d: usize) -> Matrix {
        self.steps += 1;
        let (one, two) = (1.0 - BETAS.0.powi(self.steps), 1.0 - BETAS.1.powi(self.steps));
        let rate = (d as f64).powf(-0.5);
        let mut out = Matrix::zeros(d);
        let moments = self.first.values.iter_mut().zip(&mut self.second.values);
        for ((out, g), (m, v)) in out.values.iter_mut().zip(&gradient.values).zip(moments) {
            *m = BETAS.0 * *m + (1.0 - BETAS.0) * g;
            *v = BETAS.1 * *v + (1.0 - BETAS.1) * g * g;
            *out = -rate * (*m / one) / ((*v / two).sqrt() + EPS);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::super::stack::{MODELS, Stack};
    use super::super::weights;
    use super::*;

    #[test]
    fn the_first_step_is_the_sign_of_the_gradient_and_ten_lower_the_loss() {
        let d = 32;
        for model in MODELS {
            let mut weights = weights(d, 0, 1);
            let task = Regression::new(d, 0, 4);
            let mut adam = Adam::new(d);
            let mut losses = Vec::new();
            for step in 0..10 {
                let (loss, gradient) = task.gradient(&Stack { weights: &weights, model, scale: 0.25, loops: 4 });
                let direction = adam.direction(&gradient[0], d);
                for (direction, g) in direction.values.iter().zip(&gradient[0].values) {
                    if step == 0 && g.abs() > 1e-3 {
                        assert!((direction * (d as f64).sqrt() + g.signum()).abs() < 1e-4);
                    }
                }
                losses.push(loss);
                weights[0].add_scaled(0.05, &direction);
            }
            assert!(losses[9] < 0.9 * losses[0], "{model:?}: {losses:?}");
        }
    }
}

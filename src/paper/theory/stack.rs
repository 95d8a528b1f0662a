//! The model of the paper's theorems: h <- h + eps W_l phi(h) over l = 0..L, the whole repeated N times. Forward, tangent and gradient.
// d width, L layers, N loops, u = phi(h), r = W u

use super::matrix::{Matrix, add_scaled, dot, mean_square, rms};

/// What the nonlinearity sees.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// phi = ReLU, as in the paper's proofs.
    Raw,
    /// phi = ReLU after RMSNorm (gain 1, epsilon 0), as in Transformers.
    Prenorm,
}

pub const MODELS: [Model; 2] = [Model::Raw, Model::Prenorm];

impl Model {
    /// As in the tables.
    pub fn name(self) -> &'static str {
        match self {
            Model::Raw => "raw",
            Model::Prenorm => "prenorm",
        }
    }

    /// phi(h)
    pub fn activate(self, h: &[f64]) -> Vec<f64> {
        let scale = self.scale(h);
        h.iter().map(|&x| if x > 0.0 { x * scale } else { 0.0 }).collect()
    }

    /// The derivative of phi at h along v.
    pub fn tangent(self, h: &[f64], v: &[f64]) -> Vec<f64> {
        let scale = self.scale(h);
        let along = self.along(h, dot(h, v));
        h.iter().zip(v).map(|(&h, &v)| if h > 0.0 { (v - h * along) * scale } else { 0.0 }).collect()
    }

    /// The transpose of the derivative of phi at h, applied to g.
    pub fn adjoint(self, h: &[f64], g: &[f64]) -> Vec<f64> {
        let scale = self.scale(h);
        let gated: Vec<f64> = h.iter().zip(g).map(|(&h, &g)| if h > 0.0 { g } else { 0.0 }).collect();
        let along = self.along(h, dot(h, &gated));
        h.iter().zip(gated).map(|(&h, g)| (g - h * along) * scale).collect()
    }

    fn scale(self, h: &[f64]) -> f64 {
        match self {
            Model::Raw => 1.0,
            Model::Prenorm => 1.0 / rms(h),
        }
    }

    /// What the norm takes away along h: <h, v> / ||h||^2.
    fn along(self, h: &[f64], product: f64) -> f64 {
        match self {
            Model::Raw => 0.0,
            Model::Prenorm => product / (mean_square(h) * h.len() as f64),
        }
    }
}

/// One model with its weights. `weights` has L matrices, each used N times.
#[derive(Clone, Copy)]
pub struct Stack<'a> {
    pub weights: &'a [Matrix],
    pub model: Model,
    /// eps
    pub scale: f64,
    pub loops: usize,
}

/// One use of a matrix: what the branch of layer `layer` saw.
pub struct Visit<'a> {
    pub layer: usize,
    pub h: &'a [f64],
    pub u: &'a [f64],
    pub r: &'a [f64],
}

impl Stack<'_> {
    /// h_out; `look` sees every branch on the way.
    pub fn forward(&self, input: &[f64], mut look: impl FnMut(Visit)) -> Vec<f64> {
        let mut h = input.to_vec();
        for _ in 0..self.loops {
            for (layer, w) in self.weights.iter().enumerate() {
                let u = self.model.activate(&h);
                let r = w.apply(&u);
                look(Visit { layer, h: &h, u: &u, r: &r });
                add_scaled(&mut h, self.scale, &r);
            }
        }
        h
    }

    pub fn output(&self, input: &[f64]) -> Vec<f64> {
        self.forward(input, |_| ())
    }

    /// Every state that a branch saw, in order, and h_out after them.
    pub fn states(&self, input: &[f64]) -> Vec<Vec<f64>> {
        let mut states = Vec::with_capacity(self.loops * self.weights.len() + 1);
        let last = self.forward(input, |visit| states.push(visit.h.to_vec()));
        states.push(last);
        states
    }

    /// Adds the gradient of a loss to `gradient`, one matrix per layer, given its derivative at h_out.
    pub fn add_gradient(&self, states: &[Vec<f64>], at_output: &[f64], gradient: &mut [Matrix]) {
        let mut g = at_output.to_vec();
        for at in (0..states.len() - 1).rev() {
            let (h, layer) = (&states[at], at % self.weights.len());
            gradient[layer].add_outer(self.scale, &g, &self.model.activate(h));
            let back = self.model.adjoint(h, &self.weights[layer].apply_transposed(&g));
            add_scaled(&mut g, self.scale, &back);
        }
    }

    /// How a change v of the state after the first branch moves h_out.
    pub fn push(&self, states: &[Vec<f64>], v: &[f64]) -> Vec<f64> {
        let mut v = v.to_vec();
        for (at, h) in states.iter().enumerate().take(states.len() - 1).skip(1) {
            let change = self.weights[at % self.weights.len()].apply(&self.model.tangent(h, &v));
            add_scaled(&mut v, self.scale, &change);
        }
        v
    }

    /// The transpose of [`Stack::push`].
    pub fn pull(&self, states: &[Vec<f64>], g: &[f64]) -> Vec<f64> {
        let mut g = g.to_vec();
        for at in (1..states.len() - 1).rev() {
            let back = self.weights[at % self.weights.len()].apply_transposed(&g);
            add_scaled(&mut g, self.scale, &self.model.adjoint(&states[at], &back));
        }
        g
    }
}

#[cfg(test)]
mod tests {
    use super::super::matrix::{difference, gaussian, input, norm, operator_norm};
    use super::*;

    const D: usize = 12;

    fn weights(depth: usize) -> Vec<Matrix> {
        (0..depth).map(|l| Matrix::gaussian(D, 5, &format!("w{l}"))).collect()
    }

    #[test]
    fn the_tangent_and_its_transpose_are_the_derivative() {
        for model in MODELS {
            let (h, v, g) = (gaussian(D, 1, "h"), gaussian(D, 1, "v"), gaussian(D, 1, "g"));
            let step = 1e-6;
            let moved = |sign: f64| {
                let mut h = h.clone();
                add_scaled(&mut h, sign * step, &v);
                model.activate(&h)
            };
            let tangent = model.tangent(&h, &v);
            for ((up, down), tangent) in moved(1.0).iter().zip(moved(-1.0)).zip(&tangent) {
                assert!(((up - down) / (2.0 * step) - tangent).abs() < 1e-8, "{model:?}");
            }
            assert!((dot(&g, &tangent) - dot(&model.adjoint(&h, &g), &v)).abs() < 1e-12, "{model:?}");
        }
    }

    #[test]
    fn the_gradient_agrees_with_finite_differences() {
        for model in MODELS {
            let weights = weights(2);
            let (h0, target) = (input(D, 2, "h"), input(D, 2, "y"));
            let loss = |weights: &[Matrix]| {
                let out = Stack { weights, model, scale: 0.4, loops: 3 }.output(&h0);
                0.5 * norm(&difference(&out, &target)).powi(2)
            };
            let stack = Stack { weights: &weights, model, scale: 0.4, loops: 3 };
            let states = stack.states(&h0);
            let mut gradient = vec![Matrix::zeros(D); 2];
            stack.add_gradient(&states, &difference(&states[6], &target), &mut gradient);
            for (layer, entry) in [(0, 0), (0, 17), (1, 5), (1, 143)] {
                let at = |step: f64| {
                    let mut moved = weights.clone();
                    moved[layer].values[entry] += step;
                    loss(&moved)
                };
                let numeric = (at(1e-6) - at(-1e-6)) / 2e-6;
                assert!((numeric - gradient[layer].values[entry]).abs() < 1e-7, "{model:?} {layer} {entry}");
            }
        }
    }

    #[test]
    fn the_jacobian_of_the_first_branch_agrees_with_a_small_change_there() {
        for model in MODELS {
            let weights = weights(2);
            let stack = Stack { weights: &weights, model, scale: 0.3, loops: 2 };
            let states = stack.states(&input(D, 2, "h"));
            let v = gaussian(D, 4, "v");
            // The state after the first branch, moved: the rest of the way by hand.
            let rest = |step: f64| {
                let mut h = states[1].clone();
                add_scaled(&mut h, step, &v);
                for layer in [1, 0, 1] {
                    let r = weights[layer].apply(&model.activate(&h));
                    add_scaled(&mut h, 0.3, &r);
                }
                h
            };
            let numeric: Vec<f64> = rest(1e-6).iter().zip(rest(-1e-6)).map(|(up, down)| (up - down) / 2e-6).collect();
            assert!(norm(&difference(&numeric, &stack.push(&states, &v))) < 1e-7);
            let g = gaussian(D, 4, "g");
            assert!((dot(&g, &stack.push(&states, &v)) - dot(&stack.pull(&states, &g), &v)).abs() < 1e-12);
            assert!(operator_norm(v, 1e-5, |v| stack.push(&states, v), |g| stack.pull(&states, g)) > 1.0);
        }
    }
}

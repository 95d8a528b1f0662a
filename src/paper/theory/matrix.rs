//! Vectors and square matrices of the theory checks, in f64. Every sum has one order, so results do not depend on threads.
// d width

use super::super::random::Philox;

/// Partial sums of a dot product: enough to fill the vector unit, fixed so that every machine adds in the same order.
const LANES: usize = 8;
/// Rows, and partial sums of each, that a matrix product works on at once.
const ROWS: usize = 4;

pub fn dot(a: &[f64], b: &[f64]) -> f64 {
    assert_eq!(a.len(), b.len(), "dot: lengths agree");
    let mut sums = [0.0; LANES];
    let (a_chunks, b_chunks) = (a.chunks_exact(LANES), b.chunks_exact(LANES));
    let tail: f64 = a_chunks.remainder().iter().zip(b_chunks.remainder()).map(|(a, b)| a * b).sum();
    for (a, b) in a_chunks.zip(b_chunks) {
        for lane in 0..LANES {
            sums[lane] += a[lane] * b[lane];
        }
    }
    sums.iter().sum::<f64>() + tail
}

pub fn norm(x: &[f64]) -> f64 {
    dot(x, x).sqrt()
}

/// ||x||^2 / d
pub fn mean_square(x: &[f64]) -> f64 {
    dot(x, x) / x.len() as f64
}

/// d^-1/2 ||x||
pub fn rms(x: &[f64]) -> f64 {
    mean_square(x).sqrt()
}

pub fn mean(x: &[f64]) -> f64 {
    x.iter().sum::<f64>() / x.len() as f64
}

/// y += factor x
pub fn add_scaled(y: &mut [f64], factor: f64, x: &[f64]) {
    assert_eq!(y.len(), x.len(), "add_scaled: lengths agree");
    for (y, x) in y.iter_mut().zip(x) {
        *y += factor * x;
    }
}

pub fn difference(a: &[f64], b: &[f64]) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a - b).collect()
}

/// Standard normal numbers, which depend on seed, name and index only.
pub fn gaussian(len: usize, seed: u64, name: &str) -> Vec<f64> {
    let random = Philox::new(seed, name);
    let mut out = Vec::with_capacity(len + 1);
    // Box-Muller, two numbers at a time.
    for pair in 0..len.div_ceil(2) {
        let [u, v] = random.uniforms(pair as u64);
        let radius = (-2.0 * u.ln()).sqrt();
        let (sin, cos) = (std::f64::consts::TAU * v).sin_cos();
        out.extend([radius * cos, radius * sin]);
    }
    out.truncate(len);
    out
}

/// A random input with R = 1 exactly: uniform on the sphere of radius sqrt d.
pub fn input(d: usize, seed: u64, name: &str) -> Vec<f64> {
    let mut h = gaussian(d, seed, name);
    let scale = 1.0 / rms(&h);
    h.iter_mut().for_each(|x| *x *= scale);
    h
}

/// Random signs, +1 or -1.
pub fn signs(len: usize, seed: u64, name: &str) -> Vec<f64> {
    let random = Philox::new(seed, name);
    let mut out = Vec::with_capacity(len + 127);
    for block in 0..len.div_ceil(128) {
        for word in random.block(block as u64) {
            out.extend((0..32).map(|bit| if word >> bit & 1 == 1 { 1.0 } else { -1.0 }));
        }
    }
    out.truncate(len);
    out
}

/// A d x d matrix, row by row.
#[derive(Clone, Debug)]
pub struct Matrix {
    d: usize,
    pub values: Vec<f64>,
}

impl Matrix {
    pub fn zeros(d: usize) -> Matrix {
        Matrix { d, values: vec![0.0; d * d] }
    }

    /// The paper's initialisation: independent entries of variance 1/d.
    pub fn gaussian(d: usize, seed: u64, name: &str) -> Matrix {
        Matrix { d, values: gaussian(d * d, seed, name) }.scaled((d as f64).powf(-0.5))
    }

    /// S / sqrt d with random signs S: the paper's model of an Adam step, eta apart.
    pub fn random_signs(d: usize, seed: u64, name: &str) -> Matrix {
        Matrix { d, values: signs(d * d, seed, name) }.scaled((d as f64).powf(-0.5))
    }

    pub fn scaled(mut self, factor: f64) -> Matrix {
        self.values.iter_mut().for_each(|x| *x *= factor);
        self
    }

    /// W += factor D
    pub fn add_scaled(&mut self, factor: f64, other: &Matrix) {
        add_scaled(&mut self.values, factor, &other.values);
    }

    /// W += factor a b'
    pub fn add_outer(&mut self, factor: f64, a: &[f64], b: &[f64]) {
        for (row, a) in self.values.chunks_exact_mut(self.d).zip(a) {
            add_scaled(row, factor * a, b);
        }
    }

    /// W x
    pub fn apply(&self, x: &[f64]) -> Vec<f64> {
        assert_eq!(x.len(), self.d, "apply: lengths agree");
        let mut out = Vec::with_capacity(self.d);
        let blocks = self.values.chunks_exact(ROWS * self.d);
        let rest = blocks.remainder();
        // Four rows at a time read x once, which is half of what has to be read.
        for block in blocks {
            let (a, b) = block.split_at(2 * self.d);
            let ((a, b), (c, d)) = (a.split_at(self.d), b.split_at(self.d));
            let mut sums = [[0.0; ROWS]; ROWS];
            let columns = a.chunks_exact(ROWS).zip(b.chunks_exact(ROWS)).zip(c.chunks_exact(ROWS)).zip(d.chunks_exact(ROWS));
            for (x, (((a, b), c), d)) in x.chunks_exact(ROWS).zip(columns) {
                for lane in 0..ROWS {
                    sums[0][lane] += a[lane] * x[lane];
                    sums[1][lane] += b[lane] * x[lane];
                    sums[2][lane] += c[lane] * x[lane];
                    sums[3][lane] += d[lane] * x[lane];
                }
            }
            let done = self.d - self.d % ROWS;
            for (row, sums) in [a, b, c, d].into_iter().zip(sums) {
                let tail: f64 = row[done..].iter().zip(&x[done..]).map(|(w, x)| w * x).sum();
                out.push((sums[0] + sums[1]) + (sums[2] + sums[3]) + tail);
            }
        }
        out.extend(rest.chunks_exact(self.d).map(|row| dot(row, x)));
        out
    }

    /// W' y
    pub fn apply_transposed(&self, y: &[f64]) -> Vec<f64> {
        assert_eq!(y.len(), self.d, "apply_transposed: lengths agree");
        let mut out = vec![0.0; self.d];
        let (blocks, ys) = (self.values.chunks_exact(ROWS * self.d), y.chunks_exact(ROWS));
        let rest = blocks.remainder().chunks_exact(self.d).zip(ys.remainder());
        for (block, y) in blocks.zip(ys) {
            let (a, b) = block.split_at(2 * self.d);
            let ((a, b), (c, d)) = (a.split_at(self.d), b.split_at(self.d));
            for (out, (((a, b), c), d)) in out.iter_mut().zip(a.iter().zip(b).zip(c).zip(d)) {
                *out += (y[0] * a + y[1] * b) + (y[2] * c + y[3] * d);
            }
        }
        rest.for_each(|(row, y)| add_scaled(&mut out, *y, row));
        out
    }

    /// The largest singular value, from below.
    pub fn operator_norm(&self) -> f64 {
        let start = gaussian(self.d, 0, "operator-norm");
        operator_norm(start, 1e-5, |x| self.apply(x), |y| self.apply_transposed(y))
    }
}

const POWER_STEPS: usize = 300;

/// The largest singular value of a linear map given with its transpose, from below: power iteration from `x`, until a step gains
/// less than `tolerance` of it.
pub fn operator_norm(
    mut x: Vec<f64>,
    tolerance: f64,
    forward: impl Fn(&[f64]) -> Vec<f64>,
    back: impl Fn(&[f64]) -> Vec<f64>,
) -> f64 {
    let mut last = 0.0;
    for _ in 0..POWER_STEPS {
        let length = norm(&x);
        if length == 0.0 {
            return 0.0;
        }
        x.iter_mut().for_each(|x| *x /= length);
        let y = forward(&x);
        let gain = norm(&y);
        if (gain - last).abs() <= tolerance * gain {
            return gain;
        }
        last = gain;
        x = back(&y);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn products_agree_with_the_definition_on_an_odd_size() {
        let d = 11;
        let w = Matrix::gaussian(d, 3, "w");
        let x = gaussian(d, 3, "x");
        let (wx, wtx) = (w.apply(&x), w.apply_transposed(&x));
        for i in 0..d {
            let plain: f64 = (0..d).map(|j| w.values[i * d + j] * x[j]).sum();
            let transposed: f64 = (0..d).map(|j| w.values[j * d + i] * x[j]).sum();
            assert!((wx[i] - plain).abs() < 1e-14 && (wtx[i] - transposed).abs() < 1e-14);
        }
    }

    #[test]
    fn the_numbers_are_normal_and_the_signs_are_fair() {
        let n = 1 << 16;
        let g = gaussian(n, 1, "g");
        // Standard errors: 0.0039 of the mean, 0.0055 of the second and 0.04 of the fourth moment; four of each.
        assert!(mean(&g).abs() < 0.016);
        assert!((mean_square(&g) - 1.0).abs() < 0.022);
        assert!((g.iter().map(|x| x.powi(4)).sum::<f64>() / n as f64 - 3.0).abs() < 0.16);
        assert!(mean(&signs(n, 1, "s")).abs() < 0.016);
        assert_eq!(signs(5, 1, "s"), signs(300, 1, "s")[..5]);
    }

    #[test]
    fn operator_norms_are_those_of_random_matrix_theory() {
        // Edge of the Marchenko-Pastur law, 2, from below by a few d^-2/3.
        let gaussian = Matrix::gaussian(256, 0, "w").operator_norm();
        assert!((1.85..2.03).contains(&gaussian), "{gaussian}");
        let mut rank_one = Matrix::zeros(64);
        rank_one.add_outer(1.0, &signs(64, 0, "a"), &signs(64, 0, "b"));
        assert!((rank_one.operator_norm() - 64.0).abs() < 1e-9);
    }
}

//! How an op is checked: its kernel against its definition, and its gradients against finite differences. Generic over the
//! device; each op names its inputs, each device has a shell per op.

use super::{Backend, Matrix};
use dfdx::prelude::*;

/// Numbers between -1 and 1 that look random and are the same everywhere.
pub fn numbers(len: usize, salt: u32) -> Vec<f32> {
    let mut state = salt.wrapping_mul(0x9e37_79b9) | 1;
    (0..len)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (f64::from(state) / f64::from(u32::MAX) * 2.0 - 1.0) as f32
        })
        .collect()
}

pub fn matrix<D: Backend>(dev: &D, rows: usize, cols: usize, salt: u32) -> Matrix<D> {
    dev.tensor_from_vec(numbers(rows * cols, salt), (rows, cols))
}

type Traced<D> = Matrix<D, OwnedTape<f32, D>>;
type Op<'a, D> = &'a dyn Fn(Traced<D>, &[Matrix<D>]) -> Traced<D>;

/// Output, and the gradients of all inputs for a fixed upstream gradient.
fn run<D: Backend>(inputs: &[Matrix<D>], op: Op<D>) -> (Vec<f32>, Vec<Vec<f32>>) {
    let x = inputs[0].leaky_trace();
    let y = op(x, &inputs[1..]);
    let values = y.as_vec();
    let upstream = matrix(inputs[0].device(), y.shape().0, y.shape().1, 99);
    let mut grads = (y * upstream).sum::<Rank0, _>().backward();
    let all = inputs
        .iter()
        .map(|input| {
            grads.get_or_alloc_mut(input).expect("a gradient");
            grads.get(input).as_vec()
        })
        .collect();
    (values, all)
}

fn assert_near(what: &str, found: &[f32], expected: &[f32], tolerance: f32) {
    assert_eq!(found.len(), expected.len(), "{what}: length");
    let size = expected.iter().fold(1e-6_f32, |m, x| m.max(x.abs()));
    for (i, (a, b)) in found.iter().zip(expected).enumerate() {
        assert!((a - b).abs() <= tolerance * size, "{what}[{i}]: {a} is not {b}");
    }
}

/// `kernel` and `definition` take the first input with a tape and the rest without.
pub fn check<D: Backend>(
    inputs: &[Matrix<D>],
    kernel: impl Fn(Traced<D>, &[Matrix<D>]) -> Traced<D>,
    definition: impl Fn(Traced<D>, &[Matrix<D>]) -> Traced<D>,
) {
    let (y, grads) = run(inputs, &kernel);
    let (y_expected, grads_expected) = run(inputs, &definition);
    // Both round every sum differently: a few units in the last place of sums of tens of terms.
    assert_near("output", &y, &y_expected, 2e-6);
    for (i, (found, expected)) in grads.iter().zip(&grads_expected).enumerate() {
        assert_near(&format!("gradient of input {i}"), found, expected, 5e-6);
    }
    finite_differences(inputs, &kernel, &grads);
}

/// Central differences of the f64-summed output, in a random direction per input. With steps of 1/128 the truncation error
/// and the f32 rounding of the output are both near 1e-4 of the derivative; 2e-3 separates a wrong formula from noise.
fn finite_differences<D: Backend>(inputs: &[Matrix<D>], op: Op<D>, grads: &[Vec<f32>]) {
    const STEP: f32 = 1.0 / 128.0;
    let value = |inputs: &[Matrix<D>]| -> f64 {
        let y = op(inputs[0].leaky_trace(), &inputs[1..]);
        let upstream = numbers(y.shape().0 * y.shape().1, 99);
        y.as_vec().iter().zip(&upstream).map(|(&y, &u)| f64::from(y) * f64::from(u)).sum()
    };
    for (i, grad) in grads.iter().enumerate() {
        let direction = numbers(grad.len(), 7 + i as u32);
        let moved = |sign: f32| {
            let mut inputs = inputs.to_vec();
            let values = inputs[i].as_vec().iter().zip(&direction).map(|(x, d)| x + sign * STEP * d).collect();
            inputs[i] = inputs[i].device().tensor_from_vec(values, *inputs[i].shape());
            value(&inputs)
        };
        let found: f64 = grad.iter().zip(&direction).map(|(&g, &d)| f64::from(g) * f64::from(d)).sum();
        let expected = (moved(1.0) - moved(-1.0)) / (2.0 * f64::from(STEP));
        let size = expected.abs().max(0.1);
        assert!((found - expected).abs() < 2e-3 * size, "input {i}: derivative {found}, differences say {expected}");
    }
}

//! The matrix product on tiles of our own.

use super::super::cpu::gemm::{Packed, View, Workers, matmul, product};
use super::super::cpu::view::as_slice;
use super::super::{Matrix, oracle, take_grad};
use super::Linear;
use dfdx::prelude::*;

impl Linear for Cpu {
    fn linear<T: Tape<f32, Self>>(x: Matrix<Self, T>, weight: &Matrix<Self>) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(x, weight);
        }
        let (x, mut tape) = x.split_tape();
        let dev = x.device().clone();
        let (rows, inner) = *x.shape();
        let (outer, weight_inner) = *weight.shape();
        assert_eq!(inner, weight_inner, "linear: x and weight agree on the inner size");
        let out = forward_new(as_slice(&x), as_slice(weight), rows, inner, outer);
        let y = dev.try_tensor_from_vec(out, (rows, outer))?;
        if T::OWNS_TAPE {
            let weight = weight.clone();
            let y_ghost = y.ghost();
            tape.add_backward_op(move |grads| {
                let dy = take_grad!(grads, &y_ghost, &dev);
                backward_input(&dy, as_slice(&weight), grads.get_or_alloc_mut(&x)?, rows, inner, outer);
                backward_weight(&dy, as_slice(&x), grads.get_or_alloc_mut(&weight)?, rows, inner, outer);
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

fn new_product(a: View, b: View, work: usize) -> Vec<f32> {
    let workers = Workers::for_work(work);
    product(a, &Packed::new(b, workers), 1.0, workers)
}

/// x W^T in memory of its own
pub fn forward_new(x: &[f32], weight: &[f32], rows: usize, inner: usize, outer: usize) -> Vec<f32> {
    new_product(View::new(x, rows, inner), View::new(weight, outer, inner).t(), rows * inner * outer)
}

/// out = x W^T
pub fn forward(x: &[f32], weight: &[f32], out: &mut [f32], rows: usize, inner: usize, outer: usize) {
    matmul(out, outer, false, View::new(x, rows, inner), View::new(weight, outer, inner).t(), 1.0);
}

/// dy W in memory of its own
pub fn backward_input_new(dy: &[f32], weight: &[f32], rows: usize, inner: usize, outer: usize) -> Vec<f32> {
    new_product(View::new(dy, rows, outer), View::new(weight, outer, inner), rows * inner * outer)
}

/// dx += dy W
pub fn backward_input(dy: &[f32], weight: &[f32], dx: &mut [f32], rows: usize, inner: usize, outer: usize) {
    matmul(dx, inner, true, View::new(dy, rows, outer), View::new(weight, outer, inner), 1.0);
}

/// dW += dy^T x
pub fn backward_weight(dy: &[f32], x: &[f32], dw: &mut [f32], rows: usize, inner: usize, outer: usize) {
    matmul(dw, inner, true, View::new(dy, rows, outer).t(), View::new(x, rows, inner), 1.0);
}

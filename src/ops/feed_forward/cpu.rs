//! Feed-forward as one op: keeps (gate, up) only and recomputes their product in backward, which is cheaper than storing it.
//! Training runs it inside the block; this op is for looking at one branch.

use super::super::cpu::view::as_slice;
use super::super::cpu::{math, rows};
use super::super::{Matrix, linear::cpu as product, oracle, take_grad};
use super::FeedForward;
use dfdx::prelude::*;

impl FeedForward for Cpu {
    fn feed_forward<T: Tape<f32, Self>>(
        x: Matrix<Self, T>,
        gate_up: &Matrix<Self>,
        down: &Matrix<Self>,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(x, gate_up, down);
        }
        let (x, mut tape) = x.split_tape();
        let dev = x.device().clone();
        let (n_rows, width) = *x.shape();
        let inner = down.shape().1;
        assert_eq!(*gate_up.shape(), (2 * inner, width), "feed_forward: gate_up is (2F, D)");
        assert_eq!(*down.shape(), (width, inner), "feed_forward: down is (D, F)");
        let mut both = product::forward_new(as_slice(&x), as_slice(gate_up), n_rows, width, 2 * inner);
        let active = activate(&both, n_rows, inner);
        let out = product::forward_new(&active, as_slice(down), n_rows, inner, width);
        drop(active);
        let y = dev.try_tensor_from_vec(out, (n_rows, width))?;
        if T::OWNS_TAPE {
            let (gate_up, down) = (gate_up.clone(), down.clone());
            let y_ghost = y.ghost();
            tape.add_backward_op(move |grads| {
                let dy = take_grad!(grads, &y_ghost, &dev);
                let mut active = product::backward_input_new(&dy, as_slice(&down), n_rows, inner, width);
                rows::for_rows2(&mut both, 2 * inner, &mut active, inner, |_, both, active| {
                    math::swiglu_rows_backward(both, active, inner);
                });
                let dboth = both;
                product::backward_weight(&dy, &active, grads.get_or_alloc_mut(&down)?, n_rows, inner, width);
                drop((dy, active));
                product::backward_input(&dboth, as_slice(&gate_up), grads.get_or_alloc_mut(&x)?, n_rows, width, 2 * inner);
                product::backward_weight(&dboth, as_slice(&x), grads.get_or_alloc_mut(&gate_up)?, n_rows, width, 2 * inner);
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

fn activate(both: &[f32], n_rows: usize, inner: usize) -> Vec<f32> {
    let mut out = vec![0.0; n_rows * inner];
    rows::for_rows(&mut out, inner, |first, out| {
        math::swiglu_rows(&both[first * 2 * inner..][..2 * out.len()], out, inner);
    });
    out
}

//! Residual add in one pass; backward hands the upstream gradient to both inputs.

use super::super::cpu::view::as_slice;
use super::super::cpu::{math, rows};
use super::super::{Matrix, oracle, take_grad};
use super::ResidualAdd;
use dfdx::prelude::*;

impl ResidualAdd for Cpu {
    fn residual_add<T: Tape<f32, Self>>(
        stream: Matrix<Self, T>,
        branch: Matrix<Self, T>,
        scale: f32,
    ) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(stream, branch, scale);
        }
        let (stream, tape) = stream.split_tape();
        let (branch, branch_tape) = branch.split_tape();
        let mut tape = tape.merge(branch_tape);
        let dev = stream.device().clone();
        let shape = *stream.shape();
        assert_eq!(shape, *branch.shape(), "residual_add: stream and branch have one shape");
        let mut out = vec![0.0; shape.0 * shape.1];
        {
            let (stream, branch) = (as_slice(&stream), as_slice(&branch));
            rows::for_rows(&mut out, shape.1, |first, out| {
                let span = first * shape.1..first * shape.1 + out.len();
                math::sum_scaled(out, &stream[span.clone()], &branch[span], scale);
            });
        }
        let y = dev.try_tensor_from_vec(out, shape)?;
        if T::OWNS_TAPE {
            let y_ghost = y.ghost();
            let (stream, branch) = (stream.ghost(), branch.ghost());
            tape.add_backward_op(move |grads| {
                let dy = take_grad!(grads, &y_ghost, &dev);
                rows::for_rows(grads.get_or_alloc_mut(&branch)?, shape.1, |first, d| {
                    math::add_scaled(d, &dy[first * shape.1..], scale);
                });
                rows::for_rows(grads.get_or_alloc_mut(&stream)?, shape.1, |first, d| {
                    math::add_scaled(d, &dy[first * shape.1..], 1.0);
                });
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

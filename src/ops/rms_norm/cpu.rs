//! RMSNorm in one pass over each row, forward and backward.

use super::super::cpu::view::as_slice;
use super::super::cpu::{math, rows};
use super::super::{Matrix, oracle, take_grad};
use super::RmsNorm;
use dfdx::prelude::*;

impl RmsNorm for Cpu {
    fn rms_norm<T: Tape<f32, Self>>(x: Matrix<Self, T>, gain: &Matrix<Self>, eps: f32) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(x, gain, eps);
        }
        let (x, mut tape) = x.split_tape();
        let dev = x.device().clone();
        let (n_rows, width) = *x.shape();
        let mut out = vec![0.0; n_rows * width];
        let mut inverse = vec![0.0; n_rows];
        {
            let (x, gain) = (as_slice(&x), as_slice(gain));
            rows::for_rows2(&mut out, width, &mut inverse, 1, |first, out, inverse| {
                math::rms_norm_rows(&x[first * width..][..out.len()], gain, eps, out, inverse);
            });
        }
        let y = dev.try_tensor_from_vec(out, (n_rows, width))?;
        if T::OWNS_TAPE {
            let gain = gain.clone();
            let y_ghost = y.ghost();
            tape.add_backward_op(move |grads| {
                let dy = take_grad!(grads, &y_ghost, &dev);
                let (xs, gains) = (as_slice(&x), as_slice(&gain));
                rows::for_rows(grads.get_or_alloc_mut(&x)?, width, |first, dx| {
                    let span = first * width..first * width + dx.len();
                    math::rms_norm_rows_backward(&xs[span.clone()], gains, &inverse[first..], &dy[span], dx);
                });
                rows::sum_over_rows(grads.get_or_alloc_mut(&gain)?, n_rows, |first, end, dgain| {
                    let span = first * width..end * width;
                    math::rms_norm_gain_backward(&xs[span.clone()], &inverse[first..end], &dy[span], dgain);
                });
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

//! RMSNorm in one pass over each row, forward and backward.

use super::super::cpu::clock::{Part, span};
use super::super::cpu::view::as_slice;
use super::super::cpu::{math, pool, rows, scratch};
use super::super::{Matrix, oracle, take_grad};
use super::RmsNorm;
use dfdx::prelude::*;

/// Rows per partial sum of the gain's gradient: fixed, so that threads change no bit.
const SUM_ROWS: usize = 128;

impl RmsNorm for Cpu {
    fn rms_norm<T: Tape<f32, Self>>(x: Matrix<Self, T>, gain: &Matrix<Self>, eps: f32) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(x, gain, eps);
        }
        let _timed = span(Part::FinalNorm);
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
                let _timed = span(Part::FinalNormBackward);
                let dy = take_grad!(grads, &y_ghost, &dev);
                let (xs, gains) = (as_slice(&x), as_slice(&gain));
                let mut partials = scratch::zeros(n_rows.div_ceil(SUM_ROWS) * width);
                {
                    let pieces = grads.get_or_alloc_mut(&x)?.chunks_mut(SUM_ROWS * width).zip(partials.chunks_mut(width));
                    pool::each(pieces.enumerate().collect(), |(i, (dx, dgain))| {
                        let (first, span) = (i * SUM_ROWS, i * SUM_ROWS * width..i * SUM_ROWS * width + dx.len());
                        math::rms_norm_rows_backward(&xs[span.clone()], gains, &inverse[first..], &dy[span], dx, dgain);
                    });
                }
                let dgain = grads.get_or_alloc_mut(&gain)?;
                for partial in partials.chunks_exact(width) {
                    math::add_scaled(dgain, partial, 1.0);
                }
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

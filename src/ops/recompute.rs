//! Trades time for memory: a segment of the model keeps its input only, and runs forward again when its backward comes.

use super::{Backend, Matrix, Scalar, take_grad};
use dfdx::prelude::*;

/// A piece of a model that can run twice with the same result.
pub trait Segment<D: Backend>: 'static {
    fn run<T: Tape<f32, D>>(&self, x: Matrix<D, T>) -> Result<Matrix<D, T>, D::Err>;
    /// Every weight the segment reads. Gradients of anything else it made are dropped with it.
    fn weights(&self) -> Vec<Matrix<D>>;
}

/// Runs `segment` on x without a tape; its backward runs it once more with one.
pub fn recompute<D: Backend, T: Tape<f32, D>, S: Segment<D>>(x: Matrix<D, T>, segment: S) -> Result<Matrix<D, T>, D::Err> {
    let (x, mut tape) = x.split_tape();
    let y = segment.run(x.clone())?;
    if T::OWNS_TAPE {
        let y_ghost = y.ghost();
        tape.add_backward_op(move |outer: &mut Gradients<f32, D>| {
            let dev = x.device().clone();
            let dy = take_grad!(outer, &y_ghost, &dev);
            // A map of gradients of its own, so that temporaries die with the segment; what outlives it moves in and out.
            let weights = segment.weights();
            let mut inner = Gradients::leaky();
            for weight in &weights {
                *inner.get_or_alloc_mut(weight)? = take_grad!(outer, weight, &dev);
            }
            *inner.get_or_alloc_mut(&x)? = take_grad!(outer, &x, &dev);
            let again = segment.run(x.clone().traced(inner))?;
            let mut inner = backward_from(again, dy)?;
            for weight in &weights {
                *outer.get_or_alloc_mut(weight)? = take_grad!(inner, weight, &dev);
            }
            *outer.get_or_alloc_mut(&x)? = take_grad!(inner, &x, &dev);
            Ok(())
        });
    }
    Ok(y.put_tape(tape))
}

/// Backward from a tensor that is no scalar, given the gradient it received.
fn backward_from<D: Backend>(y: Matrix<D, OwnedTape<f32, D>>, dy: <D as Storage<f32>>::Vec) -> Result<Gradients<f32, D>, D::Err> {
    let (y, mut tape) = y.split_tape();
    let dev = y.device().clone();
    tape.add_backward_op(move |grads: &mut Gradients<f32, D>| {
        *grads.get_or_alloc_mut(&y)? = dy;
        Ok(())
    });
    let seed: Scalar<D> = dev.try_zeros_like(&())?;
    seed.put_tape(tape).try_backward()
}

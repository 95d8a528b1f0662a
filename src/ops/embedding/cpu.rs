//! Copies rows forward, adds them back in token order, so that repeated tokens always sum in the same order.

use super::super::cpu::clock::{Part, span};
use super::super::cpu::math;
use super::super::cpu::view::as_slice;
use super::super::{Ids, Matrix, oracle, take_grad};
use super::Embedding;
use dfdx::prelude::*;

impl Embedding for Cpu {
    fn embedding<T: Tape<f32, Self>>(ids: &Ids<Self>, table: &Matrix<Self>, tape: T) -> Result<Matrix<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(ids, table, tape);
        }
        let _timed = span(Part::Embedding);
        let mut tape = tape;
        let dev = table.device().clone();
        let (vocabulary, width) = *table.shape();
        let ids = ids.as_vec();
        let mut out = Vec::with_capacity(ids.len() * width);
        for &id in &ids {
            assert!(id < vocabulary, "embedding: every id is below the vocabulary");
            out.extend_from_slice(&as_slice(table)[id * width..][..width]);
        }
        let y = dev.try_tensor_from_vec(out, (ids.len(), width))?;
        if T::OWNS_TAPE {
            let table = table.clone();
            let y_ghost = y.ghost();
            tape.add_backward_op(move |grads| {
                let _timed = span(Part::EmbeddingBackward);
                let dy = take_grad!(grads, &y_ghost, &dev);
                let dtable = grads.get_or_alloc_mut(&table)?;
                for (&id, dy) in ids.iter().zip(dy.chunks_exact(width)) {
                    math::add_scaled(&mut dtable[id * width..][..width], dy, 1.0);
                }
                Ok(())
            });
        }
        Ok(y.put_tape(tape))
    }
}

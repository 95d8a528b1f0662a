//! Rows of the embedding table, one per token.

mod cpu;

use super::{Ids, Matrix};
use dfdx::prelude::*;

pub trait Embedding: Device<f32> {
    /// ids (R), table (V, D) -> (R, D). `tape` begins here: the embedding is the first op of a forward pass.
    fn embedding<T: Tape<f32, Self>>(ids: &Ids<Self>, table: &Matrix<Self>, tape: T) -> Result<Matrix<Self, T>, Self::Err> {
        define(ids, table, tape)
    }
}

#[cfg(feature = "cuda")]
impl Embedding for Cuda {}

pub fn define<D: Device<f32>, T: Tape<f32, D>>(ids: &Ids<D>, table: &Matrix<D>, tape: T) -> Result<Matrix<D, T>, D::Err> {
    table.clone().put_tape(tape).try_gather(ids.clone())
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        let table = check::matrix(&dev, 11, 5, 1);
        let ids = dev.tensor_from_vec(vec![3, 3, 10, 0, 3], (5,));
        check::check(
            &[table],
            |table, _| {
                let (table, tape) = table.split_tape();
                D::embedding(&ids, &table, tape).expect("memory")
            },
            |table, _| {
                let (table, tape) = table.split_tape();
                define(&ids, &table, tape).expect("memory")
            },
        );
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }
}

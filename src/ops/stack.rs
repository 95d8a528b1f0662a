//! The ops of a whole model in their order: embedding, blocks as often as they are visited, final norm, head and loss.
// R rows, D width, V vocabulary

use super::block::{BlockShape, BlockWeights};
use super::recompute::{Segment, recompute};
use super::{Backend, Ids, Matrix};
use dfdx::prelude::*;

pub struct Stack<'a, D: Backend> {
    /// (V, D), also the head
    pub embedding: &'a Matrix<D>,
    /// Blocks that follow each other; those of one segment are recomputed together, if they are.
    pub segments: Vec<&'a [BlockWeights<D>]>,
    pub recomputes: bool,
    pub shape: BlockShape<D>,
    pub final_norm: &'a Matrix<D>,
    /// Rows of logits in memory at a time.
    pub loss_chunk_rows: usize,
}

impl<D: Backend> Stack<'_, D> {
    /// The stream (R, D) after the last block, before the final norm.
    pub fn stream<T: Tape<f32, D>>(&self, ids: &[usize], tape: T) -> Result<Matrix<D, T>, D::Err> {
        let mut h = embed(ids, self.embedding, tape)?;
        for blocks in &self.segments {
            let blocks = Blocks { blocks: blocks.to_vec(), shape: self.shape.clone() };
            h = if self.recomputes { recompute(h, blocks)? } else { blocks.run(h)? };
        }
        Ok(h)
    }

    /// Forward and backward: `factor` * the sum of the cross-entropies, and all gradients added to `grads`.
    pub fn pass(
        &self,
        inputs: &[usize],
        targets: &[usize],
        factor: f32,
        grads: Gradients<f32, D>,
    ) -> Result<(f64, Gradients<f32, D>), D::Err> {
        let (_, tape) = self.embedding.clone().traced(grads).split_tape();
        let h = D::rms_norm(self.stream(inputs, tape)?, self.final_norm, self.shape.norm_eps)?;
        let loss = D::head_loss(h, self.embedding, targets, factor, self.loss_chunk_rows)?;
        Ok((f64::from(loss.as_vec()[0]), loss.try_backward()?))
    }
}

/// Rows of the table, one per token.
pub fn embed<D: Backend, T: Tape<f32, D>>(ids: &[usize], table: &Matrix<D>, tape: T) -> Result<Matrix<D, T>, D::Err> {
    let ids: Ids<D> = table.device().try_tensor_from_vec(ids.to_vec(), (ids.len(),))?;
    D::embedding(&ids, table, tape)
}

/// Blocks one after another.
struct Blocks<D: Backend> {
    blocks: Vec<BlockWeights<D>>,
    shape: BlockShape<D>,
}

impl<D: Backend> Segment<D> for Blocks<D> {
    fn run<T: Tape<f32, D>>(&self, x: Matrix<D, T>) -> Result<Matrix<D, T>, D::Err> {
        self.blocks.iter().try_fold(x, |h, block| D::block(h, block, &self.shape))
    }

    fn weights(&self) -> Vec<Matrix<D>> {
        self.blocks.iter().flat_map(BlockWeights::each).cloned().collect()
    }
}

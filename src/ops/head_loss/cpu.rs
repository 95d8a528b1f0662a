//! Head and loss by chunks. One chunk: its gradient of the logits waits for backward. More: each chunk's gradients of h and
//! of the table are finished while its logits are in cache, so that logits are computed once.

use super::super::cpu::gemm::{View, matmul};
use super::super::cpu::view::as_slice;
use super::super::cpu::{math, rows};
use super::super::{Matrix, Scalar, linear::cpu as product, oracle, take_grad};
use super::HeadLoss;
use dfdx::prelude::*;

/// What forward leaves to backward; all of it for an upstream gradient of one.
enum Saved {
    Logits(Vec<f32>),
    Finished { dh: Vec<f32>, dtable: Vec<f32> },
}

impl HeadLoss for Cpu {
    fn head_loss<T: Tape<f32, Self>>(
        h: Matrix<Self, T>,
        table: &Matrix<Self>,
        targets: &[usize],
        factor: f32,
        chunk: usize,
    ) -> Result<Scalar<Self, T>, Self::Err> {
        if oracle::on() {
            return super::define(h, table, targets, factor, chunk);
        }
        let (h, mut tape) = h.split_tape();
        let dev = h.device().clone();
        let (n_rows, width) = *h.shape();
        let vocabulary = table.shape().0;
        assert_eq!(n_rows, targets.len(), "head_loss: one target per row");
        assert!(chunk > 0 && targets.iter().all(|&t| t < vocabulary), "head_loss: targets are below the vocabulary");
        let mut total = 0.0_f64;
        let mut saved = Saved::Logits(Vec::new());
        if T::OWNS_TAPE && n_rows > chunk {
            saved = Saved::Finished { dh: vec![0.0; n_rows * width], dtable: vec![0.0; vocabulary * width] };
        }
        let mut logits = vec![0.0; chunk.min(n_rows) * vocabulary];
        for (start, targets) in (0..n_rows).step_by(chunk).zip(targets.chunks(chunk)) {
            let n = targets.len();
            let logits = &mut logits[..n * vocabulary];
            let part = &as_slice(&h)[start * width..][..n * width];
            total += losses(part, as_slice(table), targets, logits, width).iter().map(|&l| f64::from(l)).sum::<f64>();
            if !T::OWNS_TAPE {
                continue;
            }
            // logits now hold probabilities: their gradient is (p - onehot) * factor
            rows::for_rows(logits, vocabulary, |first, p| {
                for (p, &target) in p.chunks_exact_mut(vocabulary).zip(&targets[first..]) {
                    p[target] -= 1.0;
                    math::scale(p, factor);
                }
            });
            if let Saved::Finished { dh, dtable } = &mut saved {
                product::backward_input(logits, as_slice(table), &mut dh[start * width..][..n * width], n, width, vocabulary);
                product::backward_weight(logits, part, dtable, n, width, vocabulary);
            }
        }
        if let Saved::Logits(kept) = &mut saved {
            *kept = logits;
        }
        let loss = dev.try_tensor_from_vec(vec![(total * f64::from(factor)) as f32], ())?;
        if T::OWNS_TAPE {
            let table = table.clone();
            let loss_ghost = loss.ghost();
            tape.add_backward_op(move |grads| {
                let upstream = take_grad!(grads, &loss_ghost, &dev)[0];
                match saved {
                    Saved::Logits(dlogits) => {
                        let dlogits = View::new(&dlogits, n_rows, vocabulary);
                        let (hs, tables) =
                            (View::new(as_slice(&h), n_rows, width), View::new(as_slice(&table), vocabulary, width));
                        matmul(grads.get_or_alloc_mut(&h)?, width, true, dlogits, tables, upstream);
                        matmul(grads.get_or_alloc_mut(&table)?, width, true, dlogits.t(), hs, upstream);
                    }
                    Saved::Finished { dh, dtable } => {
                        math::add_scaled(grads.get_or_alloc_mut(&h)?, &dh, upstream);
                        rows::for_rows(grads.get_or_alloc_mut(&table)?, width, |first, d| {
                            math::add_scaled(d, &dtable[first * width..], upstream);
                        });
                    }
                }
                Ok(())
            });
        }
        Ok(loss.put_tape(tape))
    }

    fn token_losses(h: &Matrix<Self>, table: &Matrix<Self>, targets: &[usize], chunk: usize) -> Result<Vec<f32>, Self::Err> {
        if oracle::on() {
            return super::define_token_losses(h, table, targets, chunk);
        }
        let ((_, width), vocabulary) = (*h.shape(), table.shape().0);
        let mut logits = vec![0.0; chunk.min(targets.len()) * vocabulary];
        let mut all = Vec::with_capacity(targets.len());
        for (start, targets) in (0..).step_by(chunk).zip(targets.chunks(chunk)) {
            let part = &as_slice(h)[start * width..][..targets.len() * width];
            all.extend(losses(part, as_slice(table), targets, &mut logits[..targets.len() * vocabulary], width));
        }
        Ok(all)
    }
}

/// Cross-entropy of each row; `logits` is left holding the probabilities.
fn losses(h: &[f32], table: &[f32], targets: &[usize], logits: &mut [f32], width: usize) -> Vec<f32> {
    let vocabulary = table.len() / width;
    product::forward(h, table, logits, targets.len(), width, vocabulary);
    let mut losses = vec![0.0; targets.len()];
    rows::for_rows2(logits, vocabulary, &mut losses, 1, |first, logits, losses| {
        for ((logits, loss), &target) in logits.chunks_exact_mut(vocabulary).zip(losses).zip(&targets[first..]) {
            let correct = logits[target];
            *loss = math::softmax(logits) - correct;
        }
    });
    losses
}

//! Head and loss in pieces of rows: the gradients of h and of the table are finished while a piece's logits are in cache, so that
//! logits are computed once and never kept.
#![allow(unsafe_code)]

use super::super::cpu::clock::{Part, span};
use super::super::cpu::gemm::{Packed, Start, View, Workers, multiply};
use super::super::cpu::scratch::{self, Buffer};
use super::super::cpu::shared::Shared;
use super::super::cpu::view::as_slice;
use super::super::cpu::{math, pool, rows};
use super::super::{Matrix, Scalar, oracle, take_grad};
use super::{HeadLoss, PIECE_ROWS};
use dfdx::prelude::*;

/// Tables of at most this many numbers: groups of rows, each with a gradient of its own, go through the head side by side.
const GROUPED_TO: usize = 1 << 17;
const GROUPS: usize = 4;
/// Rows of a group that are in cache together.
const GROUP_ROWS: usize = 128;

/// Tables of more numbers are packed a part at a time: a packed copy of all of it would be the largest buffer of a step.
const PACKED_TO: usize = 1 << 23;
/// Words of such a part.
const PART_WORDS: usize = 4096;

/// What all pieces share.
struct Head<'a> {
    width: usize,
    vocabulary: usize,
    factor: f32,
    table: View<'a>,
    /// The table for h table^T, and for dlogits table, unless it is large.
    packed: Option<(Packed<'a>, Packed<'a>)>,
}

/// What forward leaves to backward, for an upstream gradient of one.
enum DTable {
    /// Not begun: one piece held all rows, and these are their dlogits.
    Logits(Buffer),
    Finished(Buffer),
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
        let timed = span(Part::HeadLoss);
        let (h, mut tape) = h.split_tape();
        let dev = h.device().clone();
        let (n_rows, width) = *h.shape();
        let vocabulary = table.shape().0;
        assert_eq!(n_rows, targets.len(), "head_loss: one target per row");
        assert!(chunk > 0 && targets.iter().all(|&t| t < vocabulary), "head_loss: targets are below the vocabulary");
        if !T::OWNS_TAPE {
            let total: f64 = token_losses(&h, table, targets, chunk).into_iter().map(f64::from).sum();
            return Ok(dev.try_tensor_from_vec(vec![(total * f64::from(factor)) as f32], ())?.put_tape(tape));
        }
        let workers = Workers::for_work(n_rows * width * vocabulary);
        let head = Head::new(as_slice(table), width, factor, workers);
        let mut dh = scratch::take(n_rows * width);
        let piece = chunk.min(PIECE_ROWS);
        let (total, dtable) = if vocabulary * width <= GROUPED_TO && n_rows > GROUP_ROWS {
            let mut dtable = scratch::zeros(vocabulary * width);
            let total = head.in_groups(as_slice(&h), targets, piece.min(GROUP_ROWS), &mut dh, &mut dtable);
            (total, DTable::Finished(dtable))
        } else if n_rows <= piece {
            let (total, dlogits) = head.piece(as_slice(&h), targets, &mut dh, workers);
            (total, DTable::Logits(dlogits))
        } else {
            let mut dtable = scratch::zeros(vocabulary * width);
            let mut total = 0.0;
            for (targets, (h, dh)) in
                targets.chunks(piece).zip(as_slice(&h).chunks(piece * width).zip(dh.chunks_mut(piece * width)))
            {
                let (part, dlogits) = head.piece(h, targets, dh, workers);
                total += part;
                add_to_table(&dlogits, h, targets.len(), &mut dtable, 1.0, workers);
            }
            (total, DTable::Finished(dtable))
        };
        drop(head);
        drop(timed);
        let loss = dev.try_tensor_from_vec(vec![(total * f64::from(factor)) as f32], ())?;
        let table = table.clone();
        let loss_ghost = loss.ghost();
        tape.add_backward_op(move |grads| {
            let _timed = span(Part::HeadBackward);
            let upstream = take_grad!(grads, &loss_ghost, &dev)[0];
            rows::for_rows(grads.get_or_alloc_mut(&h)?, width, |first, d| {
                math::add_scaled(d, &dh[first * width..], upstream);
            });
            let total = grads.get_or_alloc_mut(&table)?;
            match dtable {
                DTable::Logits(dlogits) => add_to_table(&dlogits, as_slice(&h), n_rows, total, upstream, workers),
                DTable::Finished(dtable) => rows::for_rows(total, width, |first, d| {
                    math::add_scaled(d, &dtable[first * width..], upstream);
                }),
            }
            Ok(())
        });
        Ok(loss.put_tape(tape))
    }

    fn token_losses(h: &Matrix<Self>, table: &Matrix<Self>, targets: &[usize], chunk: usize) -> Result<Vec<f32>, Self::Err> {
        if oracle::on() {
            return super::define_token_losses(h, table, targets, chunk);
        }
        Ok(token_losses(h, table, targets, chunk))
    }
}

/// total (V, D) += factor * dlogits^T h
fn add_to_table(dlogits: &[f32], h: &[f32], n: usize, total: &mut [f32], factor: f32, workers: Workers) {
    let (vocabulary, width) = (dlogits.len() / n, h.len() / n);
    let h = Packed::new(View::new(h, n, width), workers);
    multiply(total, width, Start::Out, View::new(dlogits, n, vocabulary).t(), &h, factor, workers);
}

impl<'a> Head<'a> {
    fn new(table: &'a [f32], width: usize, factor: f32, workers: Workers) -> Self {
        let vocabulary = table.len() / width;
        let view = View::new(table, vocabulary, width);
        let packed = (table.len() <= PACKED_TO).then(|| (Packed::new(view.t(), workers), Packed::new(view, workers)));
        Self { width, vocabulary, factor, table: view, packed }
    }

    /// First and last word of each part of a large table.
    fn parts(&self) -> impl Iterator<Item = (usize, usize)> {
        let vocabulary = self.vocabulary;
        (0..vocabulary).step_by(PART_WORDS).map(move |first| (first, (first + PART_WORDS).min(vocabulary)))
    }

    /// The logits of some rows.
    fn logits(&self, h: &[f32], logits: &mut [f32], workers: Workers) {
        let h = View::new(h, h.len() / self.width, self.width);
        match &self.packed {
            Some((forward, _)) => multiply(logits, self.vocabulary, Start::Nothing, h, forward, 1.0, workers),
            None => {
                for (first, end) in self.parts() {
                    let part = Packed::new(self.table.rows(first, end).t(), workers);
                    multiply(&mut logits[first..], self.vocabulary, Start::Nothing, h, &part, 1.0, workers);
                }
            }
        }
    }

    /// The summed losses of some rows and the gradient of their logits; writes their dh.
    fn piece(&self, h: &[f32], targets: &[usize], dh: &mut [f32], workers: Workers) -> (f64, Buffer) {
        let (n, width, vocabulary) = (targets.len(), self.width, self.vocabulary);
        let (mut dlogits, mut losses) = (scratch::take(n * vocabulary), scratch::take(n));
        let rows = rows::together(width);
        // Rows that one thread takes from h to dh stay with it; shared in every product they would go from one to another.
        if workers == Workers::All && self.packed.is_some() && n.div_ceil(rows) >= pool::threads() {
            let tasks = h.chunks(rows * width).zip(dh.chunks_mut(rows * width)).zip(targets.chunks(rows));
            let tasks = tasks.zip(dlogits.chunks_mut(rows * vocabulary).zip(losses.chunks_mut(rows)));
            pool::each(tasks.collect(), |(((h, dh), targets), (dlogits, losses))| {
                self.rows(h, targets, dh, dlogits, losses, Workers::One);
            });
        } else {
            self.rows(h, targets, dh, &mut dlogits, &mut losses, workers);
        }
        (losses.iter().map(|&loss| f64::from(loss)).sum(), dlogits)
    }

    /// Writes losses, gradients of logits and dh of some rows.
    fn rows(&self, h: &[f32], targets: &[usize], dh: &mut [f32], dlogits: &mut [f32], losses: &mut [f32], workers: Workers) {
        let (n, width, vocabulary) = (targets.len(), self.width, self.vocabulary);
        self.logits(h, dlogits, workers);
        let gradient = |first: usize, logits: &mut [f32], losses: &mut [f32]| {
            for ((logits, loss), &target) in logits.chunks_exact_mut(vocabulary).zip(losses).zip(&targets[first..]) {
                let correct = logits[target];
                // The gradient of a logit is (p - onehot) * factor.
                *loss = math::softmax_scaled(logits, self.factor) - correct;
                logits[target] -= self.factor;
            }
        };
        match workers {
            Workers::One => gradient(0, dlogits, losses),
            Workers::All => rows::for_rows2(dlogits, vocabulary, losses, 1, gradient),
        }
        let view = View::new(dlogits, n, vocabulary);
        match &self.packed {
            Some((_, backward)) => multiply(dh, width, Start::Nothing, view, backward, 1.0, workers),
            None => {
                for (first, end) in self.parts() {
                    let part = Packed::new(self.table.rows(first, end), workers);
                    let start = if first == 0 { Start::Nothing } else { Start::Out };
                    multiply(dh, width, start, view.cols(first, end), &part, 1.0, workers);
                }
            }
        }
    }

    /// All rows in groups of a fixed number, whose gradients of the table are added up in order.
    fn in_groups(&self, h: &[f32], targets: &[usize], piece: usize, dh: &mut [f32], dtable: &mut [f32]) -> f64 {
        let (width, len) = (self.width, dtable.len());
        let rows = targets.len().div_ceil(GROUPS).next_multiple_of(piece);
        let shared = Shared::new(dh);
        // Lent to the tasks by this thread: a buffer goes back to the thread that drops it.
        let mut sums: Vec<Buffer> = (0..GROUPS).map(|_| scratch::zeros(len)).collect();
        let group = |(group, own): (usize, &mut Buffer)| -> f64 {
            let (first, end) = ((group * rows).min(targets.len()), ((group + 1) * rows).min(targets.len()));
            let mut total = 0.0;
            for start in (first..end).step_by(piece) {
                let end = (start + piece).min(end);
                // SAFETY: groups, and pieces of a group, are disjoint ranges of rows.
                let dh = unsafe { shared.part(start * width..end * width) };
                let h = &h[start * width..end * width];
                let (part, dlogits) = self.piece(h, &targets[start..end], dh, Workers::One);
                total += part;
                add_to_table(&dlogits, h, end - start, own, 1.0, Workers::One);
            }
            total
        };
        let totals = pool::map(sums.iter_mut().enumerate().collect(), group);
        for sum in &sums {
            math::add_scaled(dtable, sum, 1.0);
        }
        totals.into_iter().sum()
    }
}

fn token_losses(h: &Matrix<Cpu>, table: &Matrix<Cpu>, targets: &[usize], chunk: usize) -> Vec<f32> {
    let ((_, width), vocabulary) = (*h.shape(), table.shape().0);
    let workers = Workers::for_work(targets.len() * width * vocabulary);
    let head = Head::new(as_slice(table), width, 1.0, workers);
    let chunk = chunk.min(PIECE_ROWS);
    let mut all = vec![0.0; targets.len()];
    for ((h, targets), losses) in as_slice(h).chunks(chunk * width).zip(targets.chunks(chunk)).zip(all.chunks_mut(chunk)) {
        let mut logits = scratch::take(targets.len() * vocabulary);
        head.logits(h, &mut logits, workers);
        rows::for_rows2(&mut logits, vocabulary, losses, 1, |first, logits, losses| {
            for ((logits, loss), &target) in logits.chunks_exact_mut(vocabulary).zip(losses).zip(&targets[first..]) {
                let correct = logits[target];
                *loss = math::softmax_scaled(logits, 1.0) - correct;
            }
        });
    }
    all
}

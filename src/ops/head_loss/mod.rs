//! The tied head and the cross-entropy in one op, a chunk of rows at a time: logits of all rows never exist together.
// R rows, D width, V vocabulary

mod cpu;

use super::{Ids, Matrix, Scalar, linear, take_grad};
use dfdx::prelude::*;

/// Most rows of logits the CPU holds at a time, whatever the chunk.
pub const PIECE_ROWS: usize = 512;

pub trait HeadLoss: Device<f32> {
    /// h (R, D), table (V, D), targets (R) -> `factor` * sum over rows of -log softmax(h table^T)[target].
    /// `chunk` rows of logits are in memory at a time.
    fn head_loss<T: Tape<f32, Self>>(
        h: Matrix<Self, T>,
        table: &Matrix<Self>,
        targets: &[usize],
        factor: f32,
        chunk: usize,
    ) -> Result<Scalar<Self, T>, Self::Err> {
        define(h, table, targets, factor, chunk)
    }

    /// The cross-entropy of every row, without a tape.
    fn token_losses(h: &Matrix<Self>, table: &Matrix<Self>, targets: &[usize], chunk: usize) -> Result<Vec<f32>, Self::Err> {
        define_token_losses(h, table, targets, chunk)
    }
}

#[cfg(feature = "cuda")]
impl HeadLoss for Cuda {}

fn rows<D: Device<f32>>(h: &Matrix<D>, start: usize, end: usize) -> Result<Matrix<D>, D::Err> {
    let width = h.shape().1;
    h.clone().try_slice((start..end, ..))?.try_reshape_like(&(end - start, width))
}

fn chunk_losses<D: Device<f32>, T: Tape<f32, D>>(
    h: Matrix<D, T>,
    table: &Matrix<D>,
    targets: Ids<D>,
) -> Result<Tensor<(usize,), f32, D, T>, D::Err> {
    linear::define(h, table)?.try_log_softmax::<Axis<1>>()?.try_select(targets)?.try_negate()
}

pub fn define_token_losses<D: Device<f32>>(
    h: &Matrix<D>,
    table: &Matrix<D>,
    targets: &[usize],
    chunk: usize,
) -> Result<Vec<f32>, D::Err> {
    let mut losses = Vec::with_capacity(targets.len());
    for start in (0..targets.len()).step_by(chunk) {
        let end = (start + chunk).min(targets.len());
        let ids = h.device().try_tensor_from_vec(targets[start..end].to_vec(), (end - start,))?;
        losses.extend(chunk_losses(rows(h, start, end)?, table, ids)?.as_vec());
    }
    Ok(losses)
}

/// Each chunk is computed without a tape, and again with one in backward. `h` must feed nothing but this loss: backward of
/// dfdx's slice overwrites the gradient of the rows it took.
pub fn define<D: Device<f32>, T: Tape<f32, D>>(
    h: Matrix<D, T>,
    table: &Matrix<D>,
    targets: &[usize],
    factor: f32,
    chunk: usize,
) -> Result<Scalar<D, T>, D::Err> {
    let (h, mut tape) = h.split_tape();
    let dev = h.device().clone();
    let chunks: Vec<(usize, usize)> =
        (0..targets.len()).step_by(chunk).map(|start| (start, (start + chunk).min(targets.len()))).collect();
    let ids =
        |(start, end): (usize, usize), targets: &[usize]| dev.try_tensor_from_vec(targets[start..end].to_vec(), (end - start,));
    let mut total: Scalar<D> = dev.try_zeros_like(&())?;
    for &span in &chunks {
        let losses = chunk_losses(rows(&h, span.0, span.1)?, table, ids(span, targets)?)?;
        total = total.try_add(losses.try_sum::<Rank0, _>()?)?;
    }
    let loss = total.try_mul(factor)?;
    if T::OWNS_TAPE {
        let table = table.clone();
        let targets = targets.to_vec();
        let loss_ghost = loss.ghost();
        let dev = dev.clone();
        tape.add_backward_op(move |outer: &mut Gradients<f32, D>| {
            let dloss = take_grad!(outer, &loss_ghost, &dev);
            for (start, end) in chunks {
                let mut inner = Gradients::leaky();
                *inner.get_or_alloc_mut(&table)? = take_grad!(outer, &table, &dev);
                *inner.get_or_alloc_mut(&h)? = take_grad!(outer, &h, &dev);
                let width = h.shape().1;
                let part = h.clone().traced(inner).try_slice((start..end, ..))?.try_reshape_like(&(end - start, width))?;
                let ids = dev.try_tensor_from_vec(targets[start..end].to_vec(), (end - start,))?;
                let loss = chunk_losses(part, &table, ids)?.try_sum::<Rank0, _>()?.try_mul(factor)?;
                let (loss, mut tape) = loss.split_tape();
                let dloss = dloss.clone();
                tape.add_backward_op(move |grads: &mut Gradients<f32, D>| {
                    *grads.get_or_alloc_mut(&loss)? = dloss;
                    Ok(())
                });
                let seed: Scalar<D> = dev.try_zeros_like(&())?;
                let mut inner = seed.put_tape(tape).try_backward()?;
                *outer.get_or_alloc_mut(&table)? = take_grad!(inner, &table, &dev);
                *outer.get_or_alloc_mut(&h)? = take_grad!(inner, &h, &dev);
            }
            Ok(())
        });
    }
    Ok(loss.put_tape(tape))
}

#[cfg(test)]
mod tests {
    use super::super::{Backend, check};
    use super::*;

    fn check_on<D: Backend>(dev: D) {
        // One chunk, several, and a last one that is not full.
        for (rows, width, vocabulary, chunk) in [(1, 2, 3, 1), (9, 4, 17, 100), (9, 4, 17, 3), (10, 5, 300, 4)] {
            let inputs = [check::matrix(&dev, rows, width, 1), check::matrix(&dev, vocabulary, width, 2)];
            let targets: Vec<usize> = (0..rows).map(|r| r * 7 % vocabulary).collect();
            let as_matrix = |loss: Scalar<D, OwnedTape<f32, D>>| loss.reshape_like(&(1, 1));
            check::check(
                &inputs,
                |h, w| as_matrix(D::head_loss(h, &w[0], &targets, 0.1, chunk).expect("memory")),
                |h, w| as_matrix(define(h, &w[0], &targets, 0.1, chunk).expect("memory")),
            );
            let losses = D::token_losses(&inputs[0], &inputs[1], &targets, chunk).expect("memory");
            let expected = define_token_losses(&inputs[0], &inputs[1], &targets, chunk).expect("memory");
            for (found, expected) in losses.iter().zip(expected) {
                assert!((found - expected).abs() < 1e-5, "{found} is not {expected}");
            }
            let sum = D::head_loss(inputs[0].clone(), &inputs[1], &targets, 0.1, chunk).expect("memory").as_vec()[0];
            assert!((losses.iter().sum::<f32>() * 0.1 - sum).abs() < 1e-5 * sum);
        }
    }

    #[test]
    fn on_cpu() {
        check_on(Cpu::default());
    }

    /// (rows, D, V): groups of rows; pieces of more and of less than a task of each thread; wide rows; a table packed in parts.
    #[test]
    fn results_do_not_depend_on_the_number_of_threads() {
        let dev = Cpu::default();
        for (rows, width, vocabulary) in [(300, 16, 500), (700, 40, 3300), (300, 513, 300), (130, 1025, 8200)] {
            let (h, table) = (check::matrix(&dev, rows, width, 1), check::matrix(&dev, vocabulary, width, 2) * 0.1);
            let targets: Vec<usize> = (0..rows).map(|r| r * 7 % vocabulary).collect();
            let results = |loss: Scalar<Cpu, OwnedTape<f32, Cpu>>| {
                let mut all = loss.as_vec();
                let mut grads = loss.backward();
                all.extend_from_slice(grads.get_or_alloc_mut(&h).expect("a gradient"));
                all.extend_from_slice(grads.get_or_alloc_mut(&table).expect("a gradient"));
                all
            };
            let on = |threads: usize| {
                let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool");
                pool.install(|| results(Cpu::head_loss(h.leaky_trace(), &table, &targets, 0.1, 1000).expect("memory")))
            };
            let one = on(1);
            assert!((2..=4).all(|threads| on(threads) == one), "{rows} rows of {width}, vocabulary {vocabulary}");
            let defined = results(define(h.leaky_trace(), &table, &targets, 0.1, 1000).expect("memory"));
            let largest = |numbers: &[f32]| numbers.iter().fold(0.0_f32, |m, x| m.max(x.abs()));
            for (found, expected) in [(&one[..1], &defined[..1]), (&one[1..], &defined[1..])] {
                let miss: Vec<f32> = found.iter().zip(expected).map(|(a, b)| a - b).collect();
                // Sums of up to 8,200 terms, in another order.
                assert!(largest(&miss) < 1e-4 * largest(expected), "{rows} rows of {width}, vocabulary {vocabulary}");
            }
        }
    }
}

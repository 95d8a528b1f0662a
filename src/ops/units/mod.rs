//! How the sequences of a batch go through a model: all of them together, or in units that each go forward and backward alone.
// D width, F feed-forward width

mod cpu;

use super::stack::Stack;
use super::{Backend, Matrix, take_grad};
use dfdx::prelude::*;

/// Units add to the gradients of at most this many groups, one after another in each: more threads than this do not help one small model.
pub const GROUPS: usize = 4;

/// What decides how large a unit is.
#[derive(Clone, Copy, Debug)]
pub struct ModelSizes {
    /// D
    pub width: usize,
    /// F
    pub inner: usize,
    pub parameters: usize,
    pub seq_len: usize,
}

/// Inputs and targets of some sequences.
pub type Unit<'a> = (&'a [usize], &'a [usize]);

pub trait Units: Device<f32> {
    /// Sequences of a unit; None: a batch is one.
    fn unit(_sizes: ModelSizes) -> Option<usize> {
        None
    }

    /// Takes every unit forward and backward: `factor` * the sum of all cross-entropies, and the gradients of `weights`, added to those in
    /// `grads`; what else there are gradients of is dropped.
    fn in_units(
        stack: &Stack<Self>,
        weights: &[&Matrix<Self>],
        units: Vec<Unit>,
        factor: f32,
        grads: Gradients<f32, Self>,
    ) -> Result<(f64, Gradients<f32, Self>), Self::Err>
    where
        Self: Backend,
    {
        let pass = |(inputs, targets): Unit, grads| stack.pass(inputs, targets, factor, grads);
        let (loss, all) = one_by_one(units, grads, pass)?;
        Ok((loss, only(weights, all, Gradients::leaky())?))
    }
}

#[cfg(feature = "cuda")]
impl Units for Cuda {}

/// Each unit after the one before.
fn one_by_one<D: Device<f32>, U>(
    units: impl IntoIterator<Item = U>,
    grads: Gradients<f32, D>,
    pass: impl Fn(U, Gradients<f32, D>) -> Result<(f64, Gradients<f32, D>), D::Err>,
) -> Result<(f64, Gradients<f32, D>), D::Err> {
    units.into_iter().try_fold((0.0, grads), |(sum, grads), unit| {
        let (loss, grads) = pass(unit, grads)?;
        Ok((sum + loss, grads))
    })
}

/// The gradients of the weights, moved to `own`: those of everything between them would otherwise stay until the end of the step.
fn only<D: Device<f32>>(
    weights: &[&Matrix<D>],
    mut all: Gradients<f32, D>,
    mut own: Gradients<f32, D>,
) -> Result<Gradients<f32, D>, D::Err> {
    for &weight in weights {
        *own.get_or_alloc_mut(weight)? = take_grad!(all, weight, weight.device());
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use super::super::check;
    use super::cpu::in_groups;
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

    /// A model of one weight: a unit's loss is its number times the sum of the weight's squares.
    fn pass(weight: &Matrix<Cpu>, unit: usize, grads: Gradients<f32, Cpu>) -> (f64, Gradients<f32, Cpu>) {
        let loss = (weight.clone().traced(grads).square() * unit as f32).sum::<Rank0, _>();
        (f64::from(loss.array()), loss.backward())
    }

    fn on<R: Send>(threads: usize, f: impl FnOnce() -> R + Send) -> R {
        rayon::ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread pool").install(f)
    }

    #[test]
    fn units_on_any_number_of_threads_add_up_to_the_same_bits_and_to_the_definition() {
        let dev = Cpu::default();
        let weight = check::matrix(&dev, 31, 1025, 3);
        for count in [1_usize, 2, 3, 4, 5, 16, 21] {
            let begun = || pass(&weight, 7, Gradients::leaky()).1;
            let pass = |unit, grads| Ok(pass(&weight, unit, grads));
            let run = |threads: usize| {
                on(threads, || {
                    let units = (1..=count).collect();
                    let (loss, mut grads) = in_groups(&[&weight], units, begun(), pass).expect("memory");
                    (loss, grads.get_or_alloc_mut(&weight).expect("memory").to_vec())
                })
            };
            let one = run(1);
            for threads in 2..=5 {
                assert!(run(threads) == one, "{count} units, {threads} threads");
            }
            let (loss, mut grads) = one_by_one(1..=count, begun(), pass).expect("memory");
            assert!((loss / one.0 - 1.0).abs() < 1e-6);
            for (a, b) in grads.get_or_alloc_mut(&weight).expect("memory").iter().zip(&one.1) {
                assert!((a - b).abs() <= 1e-5 * b.abs(), "{a} is not {b}");
            }
        }
    }

    #[test]
    fn a_unit_that_fails_ends_its_group_and_is_returned() {
        let dev = Cpu::default();
        let weight = check::matrix(&dev, 2, 3, 3);
        for threads in [1, 2, 3] {
            let begun = AtomicUsize::new(0);
            let failed = on(threads, || {
                in_groups(&[&weight], (0..1000).collect(), Gradients::leaky(), |unit: usize, grads| {
                    begun.fetch_add(1, SeqCst);
                    if unit == 3 { Err(CpuError::OutOfMemory) } else { Ok((0.0, grads)) }
                })
            });
            assert!(failed.is_err());
            // The group that fails stops; the others go to their end.
            assert!(begun.load(SeqCst) < 1000);
        }
    }
}

//! Units of small models on the threads of a CPU: each thread takes a unit from the first op to the last and back, alone. What forward leaves
//! for backward is then near, little of it exists at a time, and threads wait for each other once in a step instead of in every op.

use super::super::block::Sizes;
use super::super::cpu::{math, pool, rows};
use super::super::stack::Stack;
use super::super::{Matrix, oracle, take_grad};
use super::{GROUPS, ModelSizes, Unit, Units, one_by_one, only};
use dfdx::prelude::*;
use std::sync::{Mutex, PoisonError};

/// Models of more parameters would need too much memory for so many gradients.
const PARAMETERS: usize = 1 << 22;

/// Losses and gradients so far.
type Sum = (f64, Gradients<f32, Cpu>);

/// Units that follow each other, and what came of those that are done.
struct Group<U> {
    left: std::vec::IntoIter<U>,
    /// None: somebody is at a unit.
    sum: Option<Result<Sum, CpuError>>,
}

impl Units for Cpu {
    fn unit(sizes: ModelSizes) -> Option<usize> {
        let ModelSizes { width, inner, parameters, seq_len } = sizes;
        let block = Sizes { rows: seq_len, seq_len, width, inner };
        (block.small() && parameters <= PARAMETERS && !oracle::on()).then(|| block.unit_rows() / seq_len)
    }

    fn in_units(
        stack: &Stack<Self>,
        weights: &[&Matrix<Self>],
        units: Vec<Unit>,
        factor: f32,
        grads: Gradients<f32, Self>,
    ) -> Result<Sum, Self::Err> {
        let [places, grads] = places(weights, grads)?;
        let pass = |(inputs, targets): Unit, grads| stack.pass(inputs, targets, factor, grads);
        let (loss, all) = if units.len() > 1 { in_groups(weights, units, grads, pass)? } else { one_by_one(units, grads, pass)? };
        Ok((loss, only(weights, all, places)?))
    }
}

/// Gradients of the weights without their numbers, and the gradients given: where there is no place yet, putting numbers there would mean to
/// allocate and clear as many first.
fn places(weights: &[&Matrix<Cpu>], mut grads: Gradients<f32, Cpu>) -> Result<[Gradients<f32, Cpu>; 2], CpuError> {
    // There AdamW makes new weights, and the places of the old ones must not pile up.
    if oracle::on() {
        return Ok([Gradients::leaky(), grads]);
    }
    let mut numbers = Vec::with_capacity(weights.len());
    for &weight in weights {
        numbers.push(take_grad!(grads, weight, weight.device()));
    }
    let places = grads.clone();
    for (&weight, numbers) in weights.iter().zip(numbers) {
        *grads.get_or_alloc_mut(weight)? = numbers;
    }
    Ok([places, grads])
}

/// All units on all threads; their losses and gradients in sum.
pub(super) fn in_groups<U: Send>(
    weights: &[&Matrix<Cpu>],
    units: Vec<U>,
    grads: Gradients<f32, Cpu>,
    pass: impl Fn(U, Gradients<f32, Cpu>) -> Result<Sum, CpuError> + Sync,
) -> Result<Sum, CpuError> {
    let groups = Mutex::new(into_groups(units, grads));
    pool::for_each(pool::threads().min(GROUPS), |_| work(&groups, &pass));
    let (mut losses, mut all) = (0.0, Vec::new());
    for group in groups.into_inner().unwrap_or_else(PoisonError::into_inner) {
        let (loss, grads) = group.sum.expect("who takes a sum puts it back")?;
        losses += loss;
        all.push(grads);
    }
    let others = all.split_off(1);
    let mut total = all.pop().expect("there is a first group");
    add_up(weights, &mut total, others)?;
    Ok((losses, total))
}

/// Units in groups of nearly one size, their order kept. The first group goes on from `grads`, the others begin at nothing.
fn into_groups<U>(units: Vec<U>, grads: Gradients<f32, Cpu>) -> Vec<Group<U>> {
    let count = GROUPS.min(units.len());
    let (size, larger) = (units.len() / count, units.len() % count);
    let (mut units, mut grads) = (units.into_iter(), Some(grads));
    let group = |number: usize| {
        let own: Vec<U> = units.by_ref().take(size + usize::from(number < larger)).collect();
        let grads = grads.take().unwrap_or_else(Gradients::leaky);
        Group { left: own.into_iter(), sum: Some(Ok((0.0, grads))) }
    };
    (0..count).map(group).collect()
}

/// Does units as long as there is a group that has some and that nobody is at: of several the one with most of them left, so that groups come
/// to their end together and no thread waits long for the last. Which thread does a unit changes nothing.
fn work<U>(groups: &Mutex<Vec<Group<U>>>, pass: &impl Fn(U, Gradients<f32, Cpu>) -> Result<Sum, CpuError>) {
    let locked = || groups.lock().unwrap_or_else(PoisonError::into_inner);
    let next = || -> Option<(usize, U, Sum)> {
        let mut groups = locked();
        let free = groups.iter_mut().enumerate().filter(|(_, group)| matches!(group.sum, Some(Ok(_))));
        let (number, group) = free.max_by_key(|(_, group)| group.left.len())?;
        let unit = group.left.next()?;
        Some((number, unit, group.sum.take()?.ok()?))
    };
    while let Some((number, unit, (losses, grads))) = next() {
        let sum = pass(unit, grads).map(|(loss, grads)| (losses + loss, grads));
        locked()[number].sum = Some(sum);
    }
}

/// total += each of the others, in order.
fn add_up(
    weights: &[&Matrix<Cpu>],
    total: &mut Gradients<f32, Cpu>,
    mut others: Vec<Gradients<f32, Cpu>>,
) -> Result<(), CpuError> {
    for &weight in weights {
        let mut parts = Vec::with_capacity(others.len());
        for other in &mut others {
            parts.push(&*other.get_or_alloc_mut(weight)?);
        }
        rows::for_rows(total.get_or_alloc_mut(weight)?, 1, |first, total| {
            for part in &parts {
                math::add_scaled(total, &part[first..first + total.len()], 1.0);
            }
        });
    }
    Ok(())
}

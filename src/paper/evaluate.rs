//! Held-out loss of a model: mean and per-token cross-entropy in nats.

use super::batch::Batch;
use super::model::{Model, ModelError, split};
use crate::ops::Backend;

/// Losses of every target, in the order of the batches.
pub fn token_losses<D: Backend>(model: &Model<D>, batches: &[Batch]) -> Result<Vec<f32>, ModelError> {
    let mut all = Vec::new();
    for batch in batches {
        all.extend(model.token_losses(batch)?);
    }
    Ok(all)
}

/// Logits of every target, in the order of the batches: targets x V numbers in one row.
pub fn logits<D: Backend>(model: &Model<D>, batches: &[Batch]) -> Result<Vec<f32>, ModelError> {
    let mut all = Vec::new();
    for batch in batches {
        all.extend(model.logits(&split(batch).0, batch.seq_len)?.as_vec());
    }
    Ok(all)
}

/// Summed in order and in f64, so that it does not depend on how sequences fall into batches.
pub fn mean(losses: &[f32]) -> f64 {
    losses.iter().map(|&l| f64::from(l)).sum::<f64>() / losses.len() as f64
}

/// Cuts ids into sequences of `seq_len` inputs, each overlapping the next by one token, a few thousand tokens per batch.
/// What is left over becomes a shorter sequence of its own, so that every id but the first is a target exactly once.
pub fn batches(ids: &[u32], seq_len: usize) -> Vec<Batch> {
    let targets = ids.len().saturating_sub(1);
    let rows = |first: usize, rows: usize, seq_len: usize| Batch {
        rows,
        seq_len,
        tokens: (0..rows).flat_map(|r| &ids[first + r * seq_len..][..seq_len + 1]).copied().collect(),
    };
    let whole = targets / seq_len;
    let at_once = (4096 / seq_len).max(1);
    let mut all: Vec<Batch> = (0..whole).step_by(at_once).map(|r| rows(r * seq_len, at_once.min(whole - r), seq_len)).collect();
    if !targets.is_multiple_of(seq_len) {
        all.push(rows(whole * seq_len, 1, targets % seq_len));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_but_the_first_is_a_target_once() {
        let ids: Vec<u32> = (0..5000 * 3 + 2).collect();
        for seq_len in [1, 7, 1000, 20_000] {
            let targets: Vec<u32> = batches(&ids, seq_len).iter().flat_map(|b| split(b).1).collect();
            assert_eq!(targets, ids[1..]);
        }
        assert_eq!(batches(&ids[..1], 4), []);
    }
}

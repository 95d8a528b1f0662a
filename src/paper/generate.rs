//! Samples tokens from a model, one forward pass over the context per token.

use super::model::{Model, ModelError};
use super::random::Philox;
use crate::ops::Backend;

#[derive(Clone, Copy, Debug)]
pub struct Sampling {
    /// 0: always the likeliest token.
    pub temperature: f64,
    /// Only the likeliest k; absent: all.
    pub top_k: Option<usize>,
    pub seed: u64,
    /// Tokens the model sees at most.
    pub context: usize,
}

/// `count` tokens that follow `prompt`, which must not be empty; `show` sees each as it comes.
pub fn generate<D: Backend>(
    model: &Model<D>,
    prompt: &[u32],
    count: usize,
    sampling: Sampling,
    mut show: impl FnMut(u32),
) -> Result<Vec<u32>, ModelError> {
    let random = Philox::new(sampling.seed, "generate");
    let mut tokens = prompt.to_vec();
    for i in 0..count {
        let seen = &tokens[tokens.len().saturating_sub(sampling.context)..];
        let logits = model.next_logits(seen)?;
        let token = pick(&logits, sampling, random.uniforms(i as u64)[0]);
        tokens.push(token);
        show(token);
    }
    Ok(tokens.split_off(prompt.len()))
}

/// The token at the quantile `u` of the tempered distribution over the likeliest k.
fn pick(logits: &[f32], sampling: Sampling, u: f64) -> u32 {
    let mut order: Vec<usize> = (0..logits.len()).collect();
    order.sort_by(|&a, &b| logits[b].total_cmp(&logits[a]).then(a.cmp(&b)));
    if sampling.temperature == 0.0 {
        return order[0] as u32;
    }
    order.truncate(sampling.top_k.unwrap_or(logits.len()).max(1));
    let weight = |&i: &usize| (f64::from(logits[i] - logits[order[0]]) / sampling.temperature).exp();
    let mut left = u * order.iter().map(weight).sum::<f64>();
    for i in &order {
        left -= weight(i);
        if left <= 0.0 {
            return *i as u32;
        }
    }
    order[order.len() - 1] as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn greedy_takes_the_likeliest_and_top_k_nothing_outside() {
        let logits = [0.0, 3.0, 1.0, 2.9];
        let with = |temperature, top_k, u| pick(&logits, Sampling { temperature, top_k, seed: 0, context: 1 }, u);
        assert_eq!(with(0.0, None, 0.9), 1);
        assert_eq!(with(1.0, Some(2), 0.999_999), 3);
        assert_eq!(with(1.0, None, 0.999_999), 0);
        assert_eq!(with(1.0, Some(2), 0.0), 1);
    }
}

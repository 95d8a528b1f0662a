//! What a training run costs before it runs: floating-point operations and memory, from its sizes alone.
// T time, D width, F feed-forward width, L depth, N loops, V vocabulary

use super::config::{ModelConfig, Recompute, RunConfig};
use super::model::{unit, visits_of_a_tape};
use crate::ops::block::keeps_weights;
use crate::ops::units::GROUPS;
use dfdx::prelude::Cpu;

/// Multiplications and additions per token of forward and backward: 6 for each weight it passes through, once per visit, and
/// attention over half of the sequence, which a causal token sees on average. Norms, softmax, the optimiser are not counted.
pub fn flops_per_token(model: &ModelConfig, seq_len: usize) -> f64 {
    let (d, f) = (model.width as f64, model.mlp as f64);
    let visits = (model.depth * model.loops) as f64;
    let weights = visits * (4.0 * d * d + 3.0 * d * f) + model.vocabulary as f64 * d;
    6.0 * weights + 12.0 * visits * d * seq_len as f64 / 2.0
}

/// Of a whole run: its steps, and a forward pass (a third) for every held-out token it evaluates.
pub fn flops(config: &RunConfig) -> f64 {
    let evaluated = config.raw.eval.as_ref().map_or(0.0, |eval| {
        let times = eval.every_steps.map_or(1, |every| config.steps.div_ceil(every).max(1));
        (eval.sequences * config.seq_len) as f64 * times as f64
    });
    let tokens = config.tokens_per_step() as f64 * config.steps as f64;
    flops_per_token(&config.model, config.seq_len) * (tokens + evaluated / 3.0)
}

/// Peak resident memory on a CPU: weights, gradients and moments, what backward keeps, a chunk of logits, and the program itself.
pub fn memory_bytes(config: &RunConfig) -> u64 {
    const PROGRAM: usize = 48 << 20;
    let model = &config.model;
    let (d, f) = (model.width, model.mlp);
    // Units that are on their way at a time, each of which has gradients of its own.
    let (at_once, sequences) = match unit::<Cpu>(model, config.seq_len) {
        Some(unit) if unit < config.micro_sequences => {
            let units = config.micro_sequences.div_ceil(unit).min(GROUPS);
            (units, units * unit)
        }
        _ => (1, config.micro_sequences),
    };
    let rows = sequences * config.seq_len;
    // Per row and block: input, qkv, heads' output, middle of the stream, gate and up.
    let kept = d + 3 * d + d + d + 2 * f;
    let blocks = match config.raw.recompute {
        Recompute::None => model.depth * model.loops,
        Recompute::Block => 1,
        Recompute::Visit => model.depth,
    };
    let inputs = match config.raw.recompute {
        Recompute::None => 0,
        Recompute::Block => model.depth * model.loops,
        Recompute::Visit => model.loops,
    };
    let passing = 8 * d + 2 * f;
    let visits = visits_of_a_tape(model.sharing, config.raw.recompute, model.loops);
    let blocks_packed = if keeps_weights(d, visits) { model.depth } else { 1 };
    let weights_packed = (blocks_packed * (4 * d * d + 3 * d * f)).max(model.vocabulary * d);
    let logits = config.loss_chunk_rows.min(rows).min(crate::ops::head_loss::PIECE_ROWS) * model.vocabulary;
    let numbers = (3 + at_once) * model.parameters() + weights_packed + rows * (blocks * kept + inputs * d + passing) + logits;
    (numbers * size_of::<f32>() + PROGRAM) as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::config::RawRun;
    use serde_json::json;

    fn paper(depth: usize, loops: usize) -> RunConfig {
        let run = json!({
            "model": {"width": 768, "depth": depth, "loops": loops, "heads": 12, "mlp": 2048, "vocabulary": 128_256},
            "scaling": {"rule": "linear"},
            "optimiser": {"lr": 1.25e-3},
            "batch": {"sequences": 256, "micro_sequences": 1, "seq_len": 2048},
            "steps": 20_000,
            "data": {"kind": "random"},
        });
        serde_json::from_value::<RawRun>(run).unwrap().check().unwrap()
    }

    #[test]
    fn the_papers_run_of_twelve_blocks_and_one_loop_costs_1_27e19_operations() {
        assert_eq!(format!("{:.2e}", flops(&paper(12, 1))), "1.27e19");
    }

    #[test]
    fn cost_is_linear_in_loops_and_in_tokens() {
        let [one, two, three] = [1, 2, 3].map(|loops| flops(&paper(12, loops)));
        assert!(((three - two) / (two - one) - 1.0).abs() < 1e-12);
        let mut half = paper(12, 1);
        half.steps /= 2;
        assert!((flops(&half) * 2.0 / one - 1.0).abs() < 1e-12);
    }

    /// The case that was measured: 2.82 GiB resident.
    #[test]
    fn the_memory_of_the_largest_diagnostic_is_known_to_a_tenth() {
        let mut run = paper(12, 64);
        (run.micro_sequences, run.micro_batches, run.seq_len) = (1, 1, 128);
        run.raw.recompute = Recompute::Visit;
        run.loss_chunk_rows = 128;
        let gib = memory_bytes(&run) as f64 / (1 << 30) as f64;
        assert!((2.82 * 0.9..2.82 * 1.25).contains(&gib), "{gib} GiB");
    }
}

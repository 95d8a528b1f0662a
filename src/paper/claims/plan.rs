//! What the `paper` profile would train, as a table: the configuration that the claims about it are checked against, and what it costs.

use crate::paper::config::{RawBatch, RawInit, RawModel, RawOptimiser, RawScaling, RawSchedule};
use crate::paper::cost::flops_per_token;
use crate::paper::scaling::Role;
use crate::paper::tidy::Row;
use serde::Deserialize;

/// The metrics of the table.
pub const METRICS: &[&str] = &[
    "width",
    "heads",
    "mlp",
    "vocabulary",
    "rope_theta",
    "norm_eps",
    "steps",
    "warmup_steps",
    "decay_steps",
    "seq_len",
    "tokens_per_step",
    "tokens",
    "eval_tokens",
    "beta1",
    "beta2",
    "weight_decay",
    "adam_eps",
    "clip",
    "init_std",
    "hidden_std",
    "diverged_above",
    "parameters",
    "branch_scale",
    "hidden_lr",
    "train_flops",
];

/// The parameters of a training stage, as far as they are of interest here.
#[derive(Deserialize)]
struct Run {
    model: RawModel,
    scaling: RawScaling,
    #[serde(default)]
    init: RawInit,
    optimiser: RawOptimiser,
    #[serde(default)]
    schedule: RawSchedule,
    batch: RawBatch,
    steps: u64,
    #[serde(default)]
    eval: Option<Eval>,
    #[serde(default)]
    diverged_above: Option<f64>,
}

#[derive(Deserialize)]
struct Eval {
    sequences: usize,
}

/// The rows of one training run that is planned. None of parameters that are not those of a training run.
pub fn rows(node: &str, seed: Option<u64>, params: &serde_json::Value) -> Option<Vec<Row>> {
    let run: Run = serde_json::from_value(params.clone()).ok()?;
    let model = run.model.check().ok()?;
    let scaling = run.scaling.check(&model, &run.init, &run.optimiser).ok()?;
    let tokens_per_step = (run.batch.sequences * run.batch.seq_len) as f64;
    let tokens = tokens_per_step * run.steps as f64;
    let alpha = run.scaling.alpha.map(|alpha| format!("-{alpha}")).unwrap_or_default();
    let rule = serde_json::to_value(run.scaling.rule).ok().and_then(|rule| rule.as_str().map(str::to_string)).unwrap_or_default();
    let here = |metric: &str, unit: &str, value: f64| {
        let row = Row::new(metric, unit, value).at("node", node).at("rule", format!("{rule}{alpha}")).at("d", model.width);
        let row = row.at("L", model.depth).at("N", model.loops).at("lr", run.optimiser.lr);
        match seed {
            Some(seed) => row.at("seed", seed),
            None => row,
        }
    };
    let mut rows = vec![
        here("width", "1", model.width as f64),
        here("heads", "1", model.heads as f64),
        here("mlp", "1", model.mlp as f64),
        here("vocabulary", "1", model.vocabulary as f64),
        here("rope_theta", "1", model.rope_theta),
        here("norm_eps", "1", run.model.norm_eps),
        here("steps", "steps", run.steps as f64),
        here("warmup_steps", "steps", run.schedule.warmup_steps as f64),
        here("decay_steps", "steps", run.schedule.decay_steps as f64),
        here("seq_len", "tokens", run.batch.seq_len as f64),
        here("tokens_per_step", "tokens", tokens_per_step),
        here("tokens", "tokens", tokens),
        here("beta1", "1", run.optimiser.betas[0]),
        here("beta2", "1", run.optimiser.betas[1]),
        here("weight_decay", "1", run.optimiser.weight_decay),
        here("adam_eps", "1", run.optimiser.eps),
        here("init_std", "1", run.init.std),
        here("hidden_std", "1", run.init.hidden_std.unwrap_or(run.init.std)),
        here("parameters", "1", model.parameters() as f64),
        here("branch_scale", "1", scaling.branch_scale()),
        here("hidden_lr", "1", scaling.group(Role::Hidden).lr),
        here("train_flops", "FLOP", tokens * flops_per_token(&model, run.batch.seq_len)),
    ];
    rows.extend(run.optimiser.clip.map(|clip| here("clip", "1", clip)));
    rows.extend(run.diverged_above.map(|bound| here("diverged_above", "nats/token", bound)));
    rows.extend(run.eval.map(|eval| here("eval_tokens", "tokens", (eval.sequences * run.batch.seq_len) as f64)));
    Some(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_papers_smallest_run_costs_what_the_paper_says() {
        let params = json!({
            "model": {"width": 768, "depth": 12, "loops": 1, "heads": 12, "mlp": 2048, "vocabulary": 128_256},
            "scaling": {"rule": "linear"}, "optimiser": {"lr": 1.25e-3}, "steps": 20_000,
            "batch": {"sequences": 256, "seq_len": 2048}
        });
        let rows = rows("lr-transfer/x", Some(0), &params).unwrap();
        let of = |metric: &str| rows.iter().find(|row| row.metric == metric).unwrap().value;
        assert!((of("train_flops") / 1.27e19 - 1.0).abs() < 0.005, "{}", of("train_flops"));
        assert_eq!(of("tokens"), 10_485_760_000.0);
        assert!(rows.iter().all(|row| METRICS.contains(&row.metric.as_str())));
        assert!(super::rows("x", None, &json!({"run": "true"})).is_none());
    }
}

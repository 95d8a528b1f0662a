//! The rows of a training run and of a trained model, from the files a run leaves.

use super::{Row, TidyError};
use crate::paper::checkpoint::Identity;
use crate::paper::config::{RawInit, RawModel, RawOptimiser, RawScaling, RuleName, Sharing};
use crate::paper::cost;
use crate::paper::metrics::{METRICS, PROBES};
use crate::paper::probes::ProbeReport;
use crate::paper::trainer::{Outcome, Status};
use serde::Deserialize;
use std::path::Path;

/// One line of `metrics.jsonl`; lines of evaluations have no loss.
#[derive(Deserialize)]
struct Line {
    step: u64,
    #[serde(default)]
    loss: Option<f64>,
}

/// Loss curve, probes and result of the run in `dir`. A run that ended above `diverged_above` counts as diverged.
pub fn of_run(identity: &Identity, outcome: &Outcome, diverged_above: Option<f64>, dir: &Path) -> Result<Vec<Row>, TidyError> {
    let here = |row: Row| at_run(row, identity);
    let mut rows = Vec::new();
    let eval_loss = outcome.eval_loss.unwrap_or(f64::NAN);
    let above = diverged_above.is_some_and(|bound| outcome.eval_loss.is_some_and(|loss| loss > bound));
    let diverged = outcome.status == Status::Diverged || above;
    rows.push(here(Row::new("diverged", "1", f64::from(u8::from(diverged)))));
    if diverged || outcome.eval_loss.is_some() {
        rows.push(here(Row::new("eval_loss", "nats/token", if diverged { f64::NAN } else { eval_loss })));
    }
    rows.push(here(Row::new("tokens", "tokens", outcome.tokens_seen as f64)));
    if let Ok(model) = identity.model.check() {
        let flops = cost::flops_per_token(&model, identity.batch.seq_len) * outcome.tokens_seen as f64;
        rows.push(here(Row::new("train_flops", "FLOP", flops)));
    }
    rows.push(here(Row::new("parameters", "1", outcome.parameters as f64)));
    rows.push(here(Row::new("branch_scale", "1", outcome.branch_scale)));
    for line in lines::<Line>(&dir.join(METRICS))? {
        if let Some(loss) = line.loss {
            rows.push(here(Row::new("loss", "nats/token", loss).at("step", line.step)));
        }
    }
    let probes = dir.join(PROBES);
    if probes.exists() {
        let reports: Vec<ProbeReport> = lines(&probes)?;
        for (at, report) in reports.iter().enumerate() {
            let here = |row: Row| here(row).at("step", report.step);
            rows.extend(report.stream_rms.last().map(|&r| here(Row::new("R", "1", r))));
            rows.extend(report.update_rms.map(|update| here(Row::new("update", "1", update))));
            // A matrix for every step would be most of the table, and the paper shows the last.
            if at == 0 || at + 1 == reports.len() {
                rows.extend(cosines(report).into_iter().map(here));
            }
        }
    }
    Ok(rows)
}

/// What probes saw of a model at rest: norms after every visit, cosines of increments.
pub fn of_model(identity: &Identity, report: &ProbeReport) -> Vec<Row> {
    let here = |row: Row| at_run(row, identity).at("step", report.step);
    let mut rows = Vec::new();
    for (visit, (&norm, &rms)) in report.stream_norm.iter().zip(&report.stream_rms).enumerate() {
        rows.push(here(Row::new("norm", "1", norm).at("visit", visit)));
        rows.push(here(Row::new("R", "1", rms).at("visit", visit)));
    }
    rows.extend(cosines(report).into_iter().map(here));
    rows
}

fn cosines(report: &ProbeReport) -> Vec<Row> {
    let mut rows = Vec::new();
    for (metric, matrix) in [("cosine", &report.cosine_by_token), ("cosine_flat", &report.cosine_flat)] {
        for (i, line) in matrix.iter().flatten().enumerate() {
            for (j, &cosine) in line.iter().enumerate().skip(i + 1) {
                rows.push(Row::new(metric, "1", cosine).at("i", i + 1).at("j", j + 1));
            }
        }
    }
    rows
}

/// The coordinates of a run. Of a deep stack, N is the number of copies.
fn at_run(row: Row, identity: &Identity) -> Row {
    let RawModel { width, depth, loops, sharing, .. } = identity.model;
    let stack = match sharing {
        Sharing::Looped => "looped",
        Sharing::Deep => "deep",
    };
    let row = row.at("stack", stack).at("rule", rule(&identity.scaling)).at("d", width).at("L", depth).at("N", loops);
    let row = row.at("lr", identity.optimiser.lr).at("seed", identity.seed);
    let variant = variant(&identity.model, &identity.init, &identity.optimiser);
    if variant.is_empty() { row } else { row.at("variant", variant) }
}

fn rule(scaling: &RawScaling) -> String {
    match (scaling.rule, scaling.alpha) {
        (RuleName::Power, Some(alpha)) => format!("power-{alpha}"),
        (rule, _) => rule.to_string(),
    }
}

/// The settings that the paper leaves open and that differ from the defaults, in words.
fn variant(model: &RawModel, init: &RawInit, optimiser: &RawOptimiser) -> String {
    let mut words = Vec::new();
    match optimiser.clip {
        None => words.push("clip-off".to_string()),
        Some(clip) if clip != 1.0 => words.push(format!("clip-{clip}")),
        Some(_) => {}
    }
    if model.norm_eps != 1e-5 {
        words.push(format!("norm-eps-{:e}", model.norm_eps));
    }
    if model.rope_theta != 10_000.0 {
        words.push(format!("rope-{}", model.rope_theta));
    }
    if init.truncate != 3.0 {
        words.push(format!("truncate-{}", init.truncate));
    }
    if optimiser.decay_norms {
        words.push("decay-norms".to_string());
    }
    if optimiser.weight_decay != 0.1 {
        words.push(format!("decay-{}", optimiser.weight_decay));
    }
    words.join("+")
}

fn lines<T: serde::de::DeserializeOwned>(path: &Path) -> Result<Vec<T>, TidyError> {
    let text = std::fs::read_to_string(path).map_err(|error| TidyError::Read { path: path.into(), what: error.to_string() })?;
    let parse = |(at, line): (usize, &str)| {
        serde_json::from_str(line).map_err(|error| TidyError::BadRow { path: path.into(), line: at + 1, what: error.to_string() })
    };
    text.lines().enumerate().map(parse).collect()
}

//! Measures training on this machine: steps of a run on random tokens, beside the best this machine does at a plain matrix product.

use super::config::{RawRun, RunConfig};
use super::cost;
use super::device::{DeviceError, with_threads};
use super::sources::RandomSource;
use super::trainer::{TrainError, Trainer};
use crate::ops::cpu::clock::{self, Part};
use crate::ops::cpu::gemm::{Packed, Start, View, Workers, crate_product, matmul, multiply};
use crate::ops::cpu::level::{Level, level};
use dfdx::prelude::Cpu;
use serde::Serialize;
use serde_json::json;
use std::time::Instant;

/// The sizes of the benchmark, the same as those of its peer (docs/benchmarks.md).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Case {
    Small,
    Medium,
    Large,
}

impl Case {
    pub const ALL: [Case; 3] = [Case::Small, Case::Medium, Case::Large];

    pub fn name(self) -> &'static str {
        match self {
            Case::Small => "small",
            Case::Medium => "medium",
            Case::Large => "large",
        }
    }

    pub fn config(self) -> RunConfig {
        let (d, l, n, h, f, v, t, b) = match self {
            Case::Small => (64, 2, 4, 4, 176, 512, 128, 16),
            Case::Medium => (256, 4, 2, 4, 688, 4096, 256, 8),
            Case::Large => (768, 2, 2, 12, 2048, 4096, 256, 4),
        };
        let run = json!({
            "model": {"width": d, "depth": l, "loops": n, "heads": h, "mlp": f, "vocabulary": v, "rope_theta": 500_000.0},
            "scaling": {"rule": "linear"},
            "optimiser": {"lr": 1e-3},
            "batch": {"sequences": b, "seq_len": t},
            "steps": 1,
            "data": {"kind": "random"},
        });
        let raw: RawRun = serde_json::from_value(run).expect("the cases are valid runs");
        raw.check().expect("the cases are valid runs")
    }
}

/// What was measured.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// A case, or a node of the pipeline.
    pub name: String,
    pub threads: usize,
    /// Instructions in use, and the processor they run on.
    pub simd: &'static str,
    pub processor: String,
    pub parameters: usize,
    pub flops_per_token: f64,
    pub tokens_per_step: u64,
    pub steps: usize,
    /// Median over the steps.
    pub step_s: f64,
    pub fastest_step_s: f64,
    pub slowest_step_s: f64,
    pub tokens_per_s: f64,
    /// The same by the processor's own time, which other programs disturb less.
    pub tokens_per_cpu_s: f64,
    pub gflops: f64,
    /// The faster of our product in vector registers and crate `gemm`'s, 1024 x 1024 x 1024, on as many threads, measured after the
    /// steps.
    pub gemm_peak_gflops: f64,
    pub fraction_of_peak: f64,
    /// The same product on AMX tiles, where there are some.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub amx_peak_gflops: Option<f64>,
    /// Peak resident memory, counted from before the model existed.
    pub peak_rss_mb: f64,
    pub loss: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub breakdown: Option<Vec<Share>>,
}

/// A part of a step.
#[derive(Clone, Debug, Serialize)]
pub struct Share {
    pub phase: &'static str,
    pub part: &'static str,
    /// Per step, summed over threads.
    pub ms: f64,
    pub share: f64,
}

pub struct Wish {
    pub threads: Option<usize>,
    /// Absent: as many as take a few seconds.
    pub steps: Option<usize>,
    pub breakdown: bool,
}

/// Steps that are not counted: buffers, caches and clocks settle.
const WARM_UP: usize = 2;
const SECONDS: f64 = 6.0;

pub fn measure(name: String, config: RunConfig, wish: &Wish) -> Result<Report, TrainError> {
    let threads = wish.threads.unwrap_or_else(|| std::thread::available_parallelism().map_or(1, usize::from));
    let report: Result<Result<Report, TrainError>, DeviceError> =
        with_threads(Some(threads), || measure_here(name, config, wish, threads));
    report?
}

fn measure_here(name: String, config: RunConfig, wish: &Wish, threads: usize) -> Result<Report, TrainError> {
    let (tokens, model) = (config.tokens_per_step(), config.model);
    let flops_per_token = cost::flops_per_token(&model, config.seq_len);
    let before = memory("VmRSS:");
    reset_peak();
    let source = RandomSource {
        seed: config.seed,
        vocabulary: model.vocabulary,
        period: config.raw.batch.sequences,
        position: Default::default(),
    };
    let mut trainer = Trainer::new(&Cpu::default(), config, Box::new(source))?;
    let (mut wall, mut cpu, mut loss) = (Vec::new(), Vec::new(), f64::NAN);
    let mut step = |timed: bool| -> Result<f64, TrainError> {
        let (start, cpu_start) = (Instant::now(), clock::cpu_seconds());
        loss = trainer.step()?.metrics.loss;
        let elapsed = start.elapsed().as_secs_f64();
        if timed {
            wall.push(elapsed);
            cpu.push(clock::cpu_seconds() - cpu_start);
        }
        Ok(elapsed)
    };
    let mut last = 0.0;
    for _ in 0..WARM_UP {
        last = step(false)?;
    }
    let steps = wish.steps.unwrap_or(((SECONDS / last) as usize).clamp(5, 200)).max(1);
    clock::set(wish.breakdown);
    for _ in 0..steps {
        step(true)?;
    }
    let parts = clock::seconds();
    clock::set(false);
    let peak_rss_mb = (memory("VmHWM:") - before) / 1024.0;
    let total: f64 = wall.iter().sum();
    let breakdown = wish.breakdown.then(|| shares(&parts, total * threads as f64, steps));
    let (gemm_peak_gflops, amx_peak_gflops) = gemm_peaks(threads);
    let step_s = median(&mut wall);
    let gflops = flops_per_token * tokens as f64 / step_s / 1e9;
    Ok(Report {
        name,
        threads,
        simd: level().name(),
        processor: super::speed::processor(),
        parameters: model.parameters(),
        flops_per_token,
        tokens_per_step: tokens,
        steps,
        step_s,
        fastest_step_s: wall[0],
        slowest_step_s: wall[wall.len() - 1],
        tokens_per_s: tokens as f64 / step_s,
        tokens_per_cpu_s: tokens as f64 / median(&mut cpu),
        gflops,
        gemm_peak_gflops,
        fraction_of_peak: gflops / gemm_peak_gflops,
        amx_peak_gflops,
        peak_rss_mb,
        loss,
        breakdown,
    })
}

fn shares(parts: &[f64], total: f64, steps: usize) -> Vec<Share> {
    let per_step = |seconds: f64| seconds * 1e3 / steps as f64;
    let mut all: Vec<Share> = Part::ALL
        .into_iter()
        .zip(parts)
        .map(|(part, &seconds)| {
            let (phase, name) = part.name();
            Share { phase, part: name, ms: per_step(seconds), share: seconds / total }
        })
        .collect();
    // Waiting of threads for each other, the tape, the batch.
    let rest = (total - parts.iter().sum::<f64>()).max(0.0);
    all.push(Share { phase: "other", part: "waiting, tape, batch", ms: per_step(rest), share: rest / total });
    all
}

/// Sorts, and returns the middle.
fn median(numbers: &mut [f64]) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[numbers.len() / 2]
}

/// The best of several products of 1024 x 1024 matrices: in vector registers, by our own kernels or by crate `gemm`, and on AMX tiles.
fn gemm_peaks(threads: usize) -> (f64, Option<f64>) {
    const SIDE: usize = 1024;
    let numbers = |salt: usize| -> Vec<f32> { (0..SIDE * SIDE).map(|i| ((i * 31 + salt) % 17) as f32 - 8.0).collect() };
    let (a, b, mut out) = (numbers(1), numbers(5), vec![0.0; SIDE * SIDE]);
    let (left, right) = (View::new(&a, SIDE, SIDE), View::new(&b, SIDE, SIDE));
    let mut best = |product: &mut dyn FnMut(&mut [f32])| {
        let seconds = (0..12).map(|_| {
            let start = Instant::now();
            product(&mut out);
            start.elapsed().as_secs_f64()
        });
        2.0 * (SIDE as f64).powi(3) / seconds.fold(f64::INFINITY, f64::min) / 1e9
    };
    let all = Workers::All;
    let vectors = best(&mut |out| multiply(out, SIDE, Start::Nothing, left, &Packed::vectors(right, all), 1.0, all));
    let other = best(&mut |out| crate_product(out, &a, &b, SIDE, threads));
    let amx = (level() == Level::Amx).then(|| best(&mut |out| matmul(out, SIDE, false, left, right, 1.0)));
    (vectors.max(other), amx)
}

/// A line of /proc/self/status, in KiB; 0 where there is none.
fn memory(name: &str) -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|rest| rest.split_whitespace().next()).and_then(|number| number.parse().ok()).unwrap_or(0.0)
}

/// Lets the kernel count the peak from here; where it may not, the peak since the start stands.
fn reset_peak() {
    let _ = std::fs::write("/proc/self/clear_refs", "5");
}

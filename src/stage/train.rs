//! `train`: one training run. Checkpoints lie in the node's scratch folder, so a killed run goes on where it stopped.

use std::error::Error;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_inputs, own_outputs};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, Threads, typed};
use crate::engine::worker::ProgressFile;
use crate::on_device;
use crate::paper::checkpoint::Identity;
use crate::paper::config::{
    DataKind, DeviceChoice, PAPER_DEPTH, RawBatch, RawData, RawEval, RawInit, RawModel, RawOptimiser, RawProbes, RawRun,
    RawScaling, RawSchedule, Recompute, RuleName, RunConfig, Sharing,
};
use crate::paper::data::loader::{Loader, Order};
use crate::paper::data::shards::Split;
use crate::paper::device::{self, DeviceKind, Level, level};
use crate::paper::sources;
use crate::paper::speed::Speed;
use crate::paper::tidy::{self, ROWS};
use crate::paper::trainer::{self, Inputs, TrainError};

/// A training run. Data come from the input `tokens` (token shards); without it, from seeded random tokens, one batch for all
/// steps. The stage's `seed` decides initialisation and the order of data.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    model: RawModel,
    scaling: RawScaling,
    #[serde(default)]
    init: RawInit,
    optimiser: RawOptimiser,
    #[serde(default)]
    schedule: RawSchedule,
    batch: RawBatch,
    steps: u64,
    /// Held-out loss; needs the input `tokens`.
    #[serde(default)]
    eval: Option<Eval>,
    #[serde(default = "one")]
    log_every_steps: u64,
    /// Steps between checkpoints, for resuming after a kill; absent: only at the end.
    #[serde(default)]
    checkpoint_every_steps: Option<u64>,
    /// Whether the output `checkpoint` is wanted: no, where only the numbers along the way are.
    #[serde(default = "yes")]
    keep_checkpoint: bool,
    #[serde(default)]
    recompute: Recompute,
    /// Rows of logits in memory at a time; absent: as many as fit in a bounded part of it.
    #[serde(default)]
    loss_chunk_rows: Option<usize>,
    /// The run has diverged when the loss of a step after warm-up exceeds this; that is a result, not a failure.
    #[serde(default)]
    stop_above_loss: Option<f64>,
    /// A run whose held-out loss ends above this has diverged too.
    #[serde(default)]
    diverged_above: Option<f64>,
    #[serde(default)]
    probes: Option<RawProbes>,
    #[serde(default)]
    device: DeviceChoice,
}

/// Held-out evaluation.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Eval {
    sequences: usize,
    #[serde(default)]
    every_steps: Option<u64>,
}

fn one() -> u64 {
    1
}

fn yes() -> bool {
    true
}

impl Params {
    /// Rules that come out as the same run get the same name, and so the same key: one visit needs no scaling, and the factorised rule at
    /// its reference depth is the linear one.
    fn one_name_for_one_run(&mut self) {
        let RawModel { depth, loops, sharing, .. } = self.model;
        let RawScaling { rule, lambda, reference_depth, .. } = self.scaling;
        let same = match rule {
            RuleName::Factorised => {
                sharing == Sharing::Looped && lambda.unwrap_or(1.0) == 1.0 && depth == reference_depth.unwrap_or(PAPER_DEPTH)
            }
            RuleName::None | RuleName::Sqrt | RuleName::Linear | RuleName::Power | RuleName::PowerOf(_) => loops == 1,
        };
        if same {
            self.scaling = RawScaling { rule: RuleName::Linear, alpha: None, lambda: None, reference_depth: None };
        }
    }

    fn run(&self, tokens: Option<PathBuf>, seed: u64, threads: usize) -> Result<RunConfig, Box<dyn Error + Send + Sync>> {
        let part = |folder: &str| match &tokens {
            Some(tokens) => RawData { kind: DataKind::Parquet, path: Some(tokens.join(folder)), part: None },
            None => RawData { kind: DataKind::Random, path: None, part: None },
        };
        let eval = self.eval.as_ref().map(|eval| RawEval {
            data: part(Split::Heldout.folder()),
            sequences: eval.sequences,
            every_steps: eval.every_steps,
        });
        let raw = RawRun {
            model: self.model.clone(),
            scaling: self.scaling.clone(),
            init: self.init.clone(),
            optimiser: self.optimiser.clone(),
            schedule: self.schedule.clone(),
            batch: self.batch.clone(),
            steps: self.steps,
            seed,
            data: part(Split::Train.folder()),
            eval,
            log_every_steps: self.log_every_steps,
            checkpoint_every_steps: self.checkpoint_every_steps,
            keep_checkpoint: self.keep_checkpoint,
            recompute: self.recompute,
            loss_chunk_rows: self.loss_chunk_rows,
            stop_above_loss: self.stop_above_loss,
            probes: self.probes.clone(),
            tensorboard: false,
            device: self.device,
            threads: Some(threads),
        };
        Ok(raw.check()?)
    }
}

/// The run of a node, by its parameters after defaults, on random tokens: what costs and benchmarks need. None if they are not
/// those of a training run.
pub fn config_of(params: &serde_json::Value) -> Option<RunConfig> {
    typed::<Params>(params).ok()?.run(None, 0, 1).ok()
}

/// Devices whose kernels sum in the same order, and so give the same bits.
pub(super) fn numerics(device: DeviceKind) -> &'static str {
    match device {
        DeviceKind::Cuda => "cuda-f32",
        DeviceKind::Cpu => match level() {
            Level::Amx => "x86_64-amx-f32",
            Level::Avx512 => "x86_64-avx512-f32",
            Level::Avx2 => "x86_64-avx2-f32",
            Level::Portable => concat!(env!("REPRO_ARCH"), "-f32"),
        },
    }
}

pub struct Train;

impl Kind for Train {
    fn name(&self) -> &'static str {
        "train"
    }

    fn about(&self) -> &'static str {
        "trains a looped or deep model on input `tokens`; outputs `result`, `metrics`, `rows`, unless told otherwise `checkpoint`, and, if asked, `probes`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let mut params: Params = typed(draft.params)?;
        check_inputs(draft, if params.eval.is_some() { &["tokens"] } else { &[] }, &["tokens"])?;
        let tokens = draft.inputs.contains(&"tokens").then(PathBuf::new);
        params.run(tokens, 0, 1).map_err(|error| ParamError::at(&[], error.to_string()))?;
        params.one_name_for_one_run();
        let device = device::choose(params.device).map_err(|error| ParamError::at(&["device"], error.to_string()))?;
        let mut outputs = vec![("result", "result.json"), ("metrics", "metrics.jsonl"), ("rows", ROWS)];
        if params.keep_checkpoint {
            outputs.push(("checkpoint", "checkpoint.safetensors"));
        }
        if params.probes.is_some() {
            outputs.push(("probes", "probes.jsonl"));
        }
        let outputs = own_outputs(draft, &outputs)?;
        Ok(Checked {
            params: serde_json::to_value(&params).expect("parameters are plain data"),
            outputs,
            numerics: numerics(device),
        })
    }

    fn threads(&self, params: &serde_json::Value) -> Threads {
        static SPEED: OnceLock<Speed> = OnceLock::new();
        let all = crate::engine::resources::cores();
        match config_of(params) {
            Some(config) if SPEED.get_or_init(Speed::load).prefers_all_threads(&config.model, all) => Threads::All,
            _ => Threads::One,
        }
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let config = params.run(task.inputs.get("tokens").cloned(), task.seed.unwrap_or(0), task.threads)?;
        let kind = device::choose(config.raw.device)?;
        let inputs = open(&config, task)?;
        let identity = Identity::of(&config);
        let mut shown = ProgressFile::new(task);
        let steps = config.steps;
        // An interrupted pipeline asks its workers to end: save first. Where no handler can be set, the last checkpoint stands.
        let stop = Arc::new(AtomicBool::new(false));
        let _ = signal_hook::flag::register(signal_hook::consts::SIGTERM, Arc::clone(&stop));
        let mut watch = move |report: &trainer::StepReport| {
            shown.say(report.metrics.step, steps, &format!("loss {:.3}", report.metrics.loss));
            if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        let outcome = device::with_threads(Some(task.threads), || -> Result<_, TrainError> {
            on_device!(kind, dev => trainer::run(&dev, config, inputs, &task.scratch, &mut watch))
        })??;
        let rows = tidy::of_run(&identity, &outcome, params.diverged_above, &task.scratch)?;
        tidy::write_rows(&task.scratch.join(ROWS), &rows)?;
        for output in task.outputs.values() {
            let name = output.file_name().expect("an output is a file");
            std::fs::rename(task.scratch.join(name), output)?;
        }
        println!("{}", serde_json::to_string(&outcome)?);
        Ok(())
    }
}

/// Training tokens in the order of the seed, held-out ones in the order of the shards: the same for every run of a sweep.
fn open(config: &RunConfig, task: &Task) -> Result<Inputs, Box<dyn Error + Send + Sync>> {
    let source: Box<dyn crate::paper::batch::TokenSource> = match task.inputs.get("tokens") {
        Some(tokens) => Box::new(Loader::open(tokens, Split::Train, Order::Shuffled { seed: config.seed }, 1)?),
        None => sources::open(&config.raw.data, config.model.vocabulary, config.raw.batch.sequences, config.seed)?,
    };
    let held_out = match &config.raw.eval {
        Some(eval) => {
            let (sequences, rows) = (eval.sequences, config.micro_sequences);
            sources::held_out(&eval.data, config.model.vocabulary, sequences, config.seq_len, rows, config.seed)?
        }
        None => Vec::new(),
    };
    let probe_batch = match (&config.raw.probes, held_out.first()) {
        (None, _) => None,
        (Some(_), Some(batch)) => Some(batch.clone()),
        (Some(_), None) => {
            let mut first = sources::open(&config.raw.data, config.model.vocabulary, config.raw.batch.sequences, config.seed)?;
            Some(first.next_batch(config.micro_sequences, config.seq_len)?)
        }
    };
    Ok(Inputs { source, held_out, probe_batch })
}

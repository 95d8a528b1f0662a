//! `repro train`: one run outside a pipeline.

use super::{CliError, Exit, Global};
use crate::on_device;
use crate::paper::batch::TokenSource;
use crate::paper::checkpoint::CheckpointError;
use crate::paper::config::{DeviceChoice, RawRun, RunConfig};
use crate::paper::device::{self, DeviceError};
use crate::paper::metrics::{self, FilesError};
use crate::paper::model::ModelError;
use crate::paper::sources;
use crate::paper::trainer::{self, Inputs, Outcome, Status, StepReport, TrainError};
use clap::Args;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Train one model as CONFIG describes and leave metrics, checkpoint and result in a folder.
#[derive(Args)]
pub struct TrainArgs {
    /// The run, as YAML.
    config: PathBuf,
    /// Folder of the run; made if absent.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// Continue the run in DIR after its last checkpoint.
    #[arg(long)]
    resume: bool,
    /// Override `device`.
    #[arg(long, value_name = "auto|cpu|cuda", value_parser = parse_device)]
    device: Option<DeviceChoice>,
    /// Override `threads`. Results do not depend on it.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Show no progress.
    #[arg(long, short)]
    quiet: bool,
}

pub(super) fn parse_device(text: &str) -> Result<DeviceChoice, String> {
    match text {
        "auto" => Ok(DeviceChoice::Auto),
        "cpu" => Ok(DeviceChoice::Cpu),
        "cuda" => Ok(DeviceChoice::Cuda),
        _ => Err("choose `auto`, `cpu` or `cuda`".to_owned()),
    }
}

#[derive(Debug, thiserror::Error)]
enum ConfigFileError {
    #[error("cannot read `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
    #[error("{place}: {what}")]
    Yaml { place: String, what: String },
    #[error("{path}: {cause}")]
    Check { path: PathBuf, cause: crate::paper::config::ConfigError },
}

/// Reads and checks a run. Messages of YAML say where: `file:line:column: what`.
fn read_config(path: &Path) -> Result<RawRun, ConfigFileError> {
    let text = std::fs::read_to_string(path).map_err(|cause| ConfigFileError::Read { path: path.to_owned(), cause })?;
    serde_yaml::from_str(&text).map_err(|error| {
        let what = error.to_string();
        let (place, what) = match error.location() {
            None => (path.display().to_string(), what),
            Some(at) => {
                let suffix = format!(" at line {} column {}", at.line(), at.column());
                let what = what.strip_suffix(&suffix).unwrap_or(&what).to_owned();
                (format!("{}:{}:{}", path.display(), at.line(), at.column()), what)
            }
        };
        ConfigFileError::Yaml { place, what }
    })
}

pub fn run(global: &Global, args: &TrainArgs) -> Result<Exit, CliError> {
    let mut raw = read_config(&args.config).map_err(CliError::wrong_input)?;
    raw.device = args.device.unwrap_or(raw.device);
    raw.threads = args.threads.or(raw.threads);
    let config =
        raw.check().map_err(|cause| CliError::wrong_input(ConfigFileError::Check { path: args.config.clone(), cause }))?;
    if !args.resume && metrics::occupied(&args.out) {
        return Err(CliError::wrong_input(FilesError::Occupied { dir: args.out.clone() }));
    }
    let outcome = train(config, &args.out, args.quiet).map_err(whose_fault)?;
    if global.json {
        println!("{}", serde_json::to_string(&outcome).expect("an outcome is plain numbers and names"));
    } else {
        println!("{}", summary(&outcome));
    }
    Ok(Exit::Ok)
}

fn train(config: RunConfig, out: &Path, quiet: bool) -> Result<Outcome, TrainError> {
    let kind = device::choose(config.raw.device)?;
    let inputs = open_inputs(&config)?;
    let (steps, started) = (config.steps, Instant::now());
    let mut shown = Instant::now();
    // What a resumed run had seen before says nothing of its speed.
    let mut first = None;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // Where handlers cannot be set, a signal kills, and the last checkpoint stands.
        let _ = signal_hook::flag::register(signal, Arc::clone(&stop));
    }
    let mut watch = move |report: &StepReport| {
        let m = &report.metrics;
        let before = *first.get_or_insert(m.tokens_seen);
        if !quiet && (shown.elapsed().as_secs_f64() > 1.0 || m.step == steps) {
            shown = Instant::now();
            let rate = (m.tokens_seen - before) as f64 / started.elapsed().as_secs_f64();
            eprintln!("step {}/{steps}  loss {:.4}  lr {:.3e}  grad {:.3}  {rate:.0} tok/s", m.step, m.loss, m.lr, m.grad_norm);
        }
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    device::with_threads(config.raw.threads, || on_device!(kind, dev => trainer::run(&dev, config, inputs, out, &mut watch)))?
}

/// Opens the data of a run; probes look at held-out text where there is some, else at the first batch.
pub fn open_inputs(config: &RunConfig) -> Result<Inputs, TrainError> {
    let raw = &config.raw;
    let sequences = raw.batch.sequences;
    let open = || sources::open(&raw.data, config.model.vocabulary, sequences, config.seed);
    let source: Box<dyn TokenSource> = open()?;
    let held_out = match &raw.eval {
        None => Vec::new(),
        Some(eval) => sources::held_out(
            &eval.data,
            config.model.vocabulary,
            eval.sequences,
            config.seq_len,
            config.micro_sequences,
            config.seed,
        )?,
    };
    let probe_batch = match (&raw.probes, held_out.first()) {
        (None, _) => None,
        (Some(_), Some(batch)) => Some(batch.clone()),
        (Some(_), None) => Some(open()?.next_batch(config.micro_sequences, config.seq_len)?),
    };
    Ok(Inputs { source, held_out, probe_batch })
}

fn summary(outcome: &Outcome) -> String {
    let loss = |x: Option<f64>| x.map_or("not a number".to_owned(), |x| format!("{x:.4}"));
    let end = match outcome.status {
        Status::Completed => format!("completed {} steps", outcome.step),
        Status::Diverged => format!("diverged after {} steps", outcome.step),
    };
    let eval = outcome.eval_loss.map_or(String::new(), |l| format!(", held-out loss {l:.4}"));
    format!("{end}, {} tokens: train loss {}{eval}", outcome.tokens_seen, loss(outcome.train_loss))
}

/// Exit code 2 for what the user can set right, 1 for the rest.
pub(super) fn whose_fault(error: TrainError) -> CliError {
    let input = match &error {
        TrainError::VocabularyTooSmall { .. } | TrainError::BadResult { .. } | TrainError::Source(_) => true,
        TrainError::Checkpoint(error) => checkpoint_is_input(error),
        TrainError::Model(error) => model_is_input(error),
        TrainError::Files(error) => matches!(error, FilesError::Occupied { .. } | FilesError::Shorter { .. }),
        TrainError::Device(error) => matches!(error, DeviceError::NoCuda),
        TrainError::Stopped { .. } => false,
    };
    if input { CliError::wrong_input(error) } else { CliError::failed(error) }
}

pub(super) fn checkpoint_is_input(error: &CheckpointError) -> bool {
    match error {
        CheckpointError::Write { .. } => false,
        CheckpointError::Model(error) => model_is_input(error),
        _ => true,
    }
}

pub(super) fn model_is_input(error: &ModelError) -> bool {
    !matches!(error, ModelError::Device { .. })
}

//! Trains one model: batch, forward, backward, clip, schedule, step, log. Divergence is a result, not an error.

use super::batch::{Batch, SourceError, TokenSource};
use super::checkpoint::{self, Checkpoint, CheckpointError, FORMAT, Identity, State};
use super::config::RunConfig;
use super::device::DeviceError;
use super::evaluate;
use super::metrics::{self, CHECKPOINT, FilesError, RESULT, RunFiles, StepMetrics};
use super::model::{Model, ModelError};
use super::optimiser::{GradNorms, Optimiser, clip_factor};
use super::probes::Probes;
use crate::ops::Backend;
use dfdx::prelude::Gradients;
use serde::{Deserialize, Serialize};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

#[derive(Debug, thiserror::Error)]
pub enum TrainError {
    #[error(
        "the data holds token ids up to {largest}, but `model.vocabulary` is {vocabulary}; raise it, or use data made with another tokenizer"
    )]
    VocabularyTooSmall { largest: usize, vocabulary: usize },
    #[error("stopped after step {step}; pass `--resume` to continue")]
    Stopped { step: u64 },
    #[error("cannot read the result in `{path}`: {what}")]
    BadResult { path: PathBuf, what: String },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Source(#[from] SourceError),
    #[error(transparent)]
    Checkpoint(#[from] CheckpointError),
    #[error(transparent)]
    Files(#[from] FilesError),
    #[error(transparent)]
    Device(#[from] DeviceError),
}

/// How a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Completed,
    /// The loss or the gradient was not a number, or the loss exceeded its bound. The step was not applied.
    Diverged,
}

/// `result.json`. Numbers that are not finite are null.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    pub status: Status,
    /// Steps done.
    pub step: u64,
    /// Loss of the last batch.
    pub train_loss: Option<f64>,
    /// Held-out loss at the end.
    pub eval_loss: Option<f64>,
    pub tokens_seen: u64,
    pub parameters: usize,
    pub branch_scale: f64,
}

/// What one step did.
#[derive(Clone, Debug, PartialEq)]
pub struct StepReport {
    pub metrics: StepMetrics,
    pub norms: GradNorms,
    /// The step was not applied.
    pub diverged: bool,
}

/// A model in training.
pub struct Trainer<D: Backend> {
    pub config: RunConfig,
    pub model: Model<D>,
    optimiser: Optimiser<D>,
    /// Zeros between steps: fresh memory would cost more.
    grads: Option<Gradients<f32, D>>,
    source: Box<dyn TokenSource>,
    /// Steps done.
    pub step: u64,
    pub tokens_seen: u64,
    last_loss: f64,
}

impl<D: Backend> Trainer<D> {
    pub fn new(dev: &D, config: RunConfig, source: Box<dyn TokenSource>) -> Result<Self, TrainError> {
        let (needed, vocabulary) = (source.vocabulary(), config.model.vocabulary);
        if needed > vocabulary {
            return Err(TrainError::VocabularyTooSmall { largest: needed - 1, vocabulary });
        }
        let mut model = Model::new(dev, config.model, &config.scaling, config.seed)?;
        model.recompute = config.raw.recompute;
        model.loss_chunk_rows = config.loss_chunk_rows;
        let optimiser = Optimiser::new(&model, &config.scaling, config.betas)?;
        Ok(Self { config, model, optimiser, grads: None, source, step: 0, tokens_seen: 0, last_loss: f64::NAN })
    }

    /// One optimiser step over all micro-batches.
    pub fn step(&mut self) -> Result<StepReport, TrainError> {
        let config = &self.config;
        let factor = 1.0 / config.tokens_per_step() as f64;
        let mut grads = self.grads.take().unwrap_or_else(Gradients::leaky);
        let mut loss = 0.0;
        for _ in 0..config.micro_batches {
            let batch = self.source.next_batch(config.micro_sequences, config.seq_len)?;
            let (part, sum) = self.model.loss_and_gradients(&batch, factor, grads)?;
            loss += part;
            grads = sum;
        }
        let norms = self.optimiser.norms(&self.model, &mut grads)?;
        let lr_factor = config.schedule.factor(self.step);
        let bound = config.raw.stop_above_loss.filter(|_| self.step >= config.schedule.warmup_steps);
        let diverged = !loss.is_finite() || !norms.total.is_finite() || bound.is_some_and(|bound| loss > bound);
        if !diverged {
            let clip = clip_factor(norms.total, config.clip);
            self.optimiser.apply(&mut self.model, &mut grads, self.step + 1, lr_factor, clip)?;
            self.step += 1;
            self.tokens_seen += config.tokens_per_step();
            self.grads = Some(grads);
        }
        self.last_loss = loss;
        let metrics = StepMetrics {
            step: self.step + u64::from(diverged),
            loss,
            lr: config.scaling.base.lr * lr_factor,
            grad_norm: norms.total,
            tokens_seen: self.tokens_seen,
        };
        Ok(StepReport { metrics, norms, diverged })
    }

    fn save(&self, files: &mut RunFiles) -> Result<(), TrainError> {
        let state = State {
            format: FORMAT,
            identity: Identity::of(&self.config),
            step: self.step,
            tokens_seen: self.tokens_seen,
            position: self.source.position(),
            last_loss: Some(self.last_loss).filter(|l| l.is_finite()),
            lengths: files.sync()?,
        };
        Ok(checkpoint::save(&files.dir.join(CHECKPOINT), &self.model, &self.optimiser, &state)?)
    }

    fn restore(&mut self, checkpoint: &Checkpoint) -> Result<(), TrainError> {
        let dev = self.model.device().clone();
        checkpoint.restore(&dev, &self.config, &mut self.model, &mut self.optimiser)?;
        self.source.seek(checkpoint.state.position)?;
        self.step = checkpoint.state.step;
        self.tokens_seen = checkpoint.state.tokens_seen;
        self.last_loss = checkpoint.state.last_loss.unwrap_or(f64::NAN);
        Ok(())
    }
}

/// What a run needs besides its config.
pub struct Inputs {
    pub source: Box<dyn TokenSource>,
    /// Held-out batches; empty: no evaluation.
    pub held_out: Vec<Batch>,
    /// What probes look at, if the config has probes.
    pub probe_batch: Option<Batch>,
}

/// Runs to the end in `dir`, from its checkpoint if it has one, and returns what `result.json` says.
/// `watch` sees every step, and may ask to stop: then the run is saved and ends with [`TrainError::Stopped`].
pub fn run<D: Backend>(
    dev: &D,
    config: RunConfig,
    inputs: Inputs,
    dir: &Path,
    watch: &mut dyn FnMut(&StepReport) -> ControlFlow<()>,
) -> Result<Outcome, TrainError> {
    if let Some(outcome) = finished(dir)? {
        return Ok(outcome);
    }
    let mut trainer = Trainer::new(dev, config, inputs.source)?;
    let config = trainer.config.raw.clone();
    let checkpoint = dir.join(CHECKPOINT);
    let mut kept = metrics::Lengths::default();
    if checkpoint.exists() {
        let checkpoint = Checkpoint::read(&checkpoint)?;
        trainer.restore(&checkpoint)?;
        kept = checkpoint.state.lengths;
    }
    let mut files = RunFiles::open(dir, kept, config.probes.is_some(), config.tensorboard)?;
    let mut probes = config.probes.zip(inputs.probe_batch).map(|(wanted, batch)| Probes::new(wanted, &batch));
    let due = |every: Option<u64>, step: u64| every.is_some_and(|every| step.is_multiple_of(every));

    if let Some(probes) = probes.as_mut().filter(|_| trainer.step == 0) {
        files.probe(&probes.measure(&trainer.model, 0, None)?)?;
    }
    let mut status = Status::Completed;
    while trainer.step < config.steps {
        let started = Instant::now();
        let next = trainer.step + 1;
        if let Some(probes) = probes.as_mut().filter(|p| p.due(next)) {
            probes.before_step(&trainer.model, trainer.step)?;
        }
        let report = trainer.step()?;
        let wish = watch(&report);
        if next.is_multiple_of(config.log_every_steps) || next == config.steps || report.diverged {
            files.step(&report.metrics)?;
            files.timing(next, started.elapsed().as_secs_f64(), trainer.config.tokens_per_step())?;
        }
        if report.diverged {
            status = Status::Diverged;
            break;
        }
        if let Some(probes) = probes.as_mut().filter(|p| p.due(next)) {
            files.probe(&probes.measure(&trainer.model, next, Some(&report.norms))?)?;
        }
        if next < config.steps && due(config.eval.as_ref().and_then(|e| e.every_steps), next) {
            files.eval(next, evaluate::mean(&evaluate::token_losses(&trainer.model, &inputs.held_out)?))?;
        }
        let stop = wish.is_break();
        if next < config.steps && (stop || due(config.checkpoint_every_steps, next)) {
            trainer.save(&mut files)?;
        }
        if next < config.steps && stop {
            return Err(TrainError::Stopped { step: next });
        }
    }
    finish(&trainer, &mut files, status, &inputs.held_out)
}

/// Evaluates a last time and writes checkpoint and result; the result last, because it says that the run is over.
fn finish<D: Backend>(
    trainer: &Trainer<D>,
    files: &mut RunFiles,
    status: Status,
    held_out: &[Batch],
) -> Result<Outcome, TrainError> {
    let finite = |x: f64| Some(x).filter(|x| x.is_finite());
    let mut eval_loss = None;
    if !held_out.is_empty() {
        let loss = evaluate::mean(&evaluate::token_losses(&trainer.model, held_out)?);
        files.eval(trainer.step, loss)?;
        eval_loss = finite(loss);
    }
    if trainer.config.raw.keep_checkpoint {
        trainer.save(files)?;
    } else {
        files.sync()?;
    }
    let outcome = Outcome {
        status,
        step: trainer.step,
        train_loss: finite(trainer.last_loss),
        eval_loss,
        tokens_seen: trainer.tokens_seen,
        parameters: trainer.config.model.parameters(),
        branch_scale: trainer.config.scaling.branch_scale(),
    };
    let mut bytes = serde_json::to_vec_pretty(&outcome).expect("an outcome is plain numbers and names");
    bytes.push(b'\n');
    metrics::write_atomically(&files.dir.join(RESULT), &bytes)?;
    if !trainer.config.raw.keep_checkpoint {
        // What an interruption left, and nobody needs any more; if it cannot be removed, it only takes room.
        let _ = std::fs::remove_file(files.dir.join(CHECKPOINT));
    }
    Ok(outcome)
}

/// The outcome of a run that ended before.
pub fn finished(dir: &Path) -> Result<Option<Outcome>, TrainError> {
    let path = dir.join(RESULT);
    if !path.exists() {
        return Ok(None);
    }
    let bad = |what: String| TrainError::BadResult { path: path.clone(), what };
    let bytes = std::fs::read(&path).map_err(|e| bad(e.to_string()))?;
    serde_json::from_slice(&bytes).map(Some).map_err(|e| bad(e.to_string()))
}

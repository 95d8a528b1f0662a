//! Everything of a run that is not a size of the model.

use super::{ConfigError, ModelConfig, RawModel, Sharing, at_least_one, not_negative, positive, size};
use crate::paper::scaling::{Base, Rule, Scaling};
use crate::paper::schedule::Schedule;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// A training run as written in YAML.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawRun {
    pub model: RawModel,
    pub scaling: RawScaling,
    #[serde(default)]
    pub init: RawInit,
    pub optimiser: RawOptimiser,
    #[serde(default)]
    pub schedule: RawSchedule,
    pub batch: RawBatch,
    pub steps: u64,
    #[serde(default)]
    pub seed: u64,
    pub data: RawData,
    #[serde(default)]
    pub eval: Option<RawEval>,
    /// Steps between lines of the metrics file.
    #[serde(default = "one")]
    pub log_every_steps: u64,
    /// Steps between checkpoints; absent: only at the end.
    #[serde(default)]
    pub checkpoint_every_steps: Option<u64>,
    /// Whether a checkpoint stays when the run is over.
    #[serde(default = "yes")]
    pub keep_checkpoint: bool,
    #[serde(default)]
    pub recompute: Recompute,
    /// Rows of logits in memory at a time; absent: as many as fit 128 MiB.
    #[serde(default)]
    pub loss_chunk_rows: Option<usize>,
    /// The run has diverged when the loss of a step after warm-up exceeds this; NaN and infinity always count.
    #[serde(default)]
    pub stop_above_loss: Option<f64>,
    #[serde(default)]
    pub probes: Option<RawProbes>,
    /// Also write TensorBoard event files.
    #[serde(default)]
    pub tensorboard: bool,
    #[serde(default)]
    pub device: DeviceChoice,
    /// Threads of the CPU; absent: one per core. Never changes a result.
    #[serde(default)]
    pub threads: Option<usize>,
}

fn one() -> u64 {
    1
}

fn yes() -> bool {
    true
}

/// A rule as written: a word, or `power-0.75` for `power` with that `alpha`, so that a grid can hold it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RuleName {
    None,
    Sqrt,
    Linear,
    Factorised,
    Power,
    PowerOf(f64),
}

impl RuleName {
    const WORDS: [Self; 5] = [Self::None, Self::Sqrt, Self::Linear, Self::Factorised, Self::Power];

    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Sqrt => "sqrt",
            Self::Linear => "linear",
            Self::Factorised => "factorised",
            Self::Power | Self::PowerOf(_) => "power",
        }
    }

    fn parse(text: &str) -> Option<Self> {
        if let Some(alpha) = text.strip_prefix("power-") {
            return alpha.parse().ok().map(Self::PowerOf);
        }
        Self::WORDS.into_iter().find(|rule| rule.name() == text)
    }
}

impl std::fmt::Display for RuleName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::PowerOf(alpha) => write!(f, "power-{alpha}"),
            word => f.write_str(word.name()),
        }
    }
}

impl Serialize for RuleName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for RuleName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        /// Fails inside of the value, so that a message names its place.
        struct Word;
        impl serde::de::Visitor<'_> for Word {
            type Value = RuleName;
            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("the name of a residual rule")
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<RuleName, E> {
                RuleName::parse(text).ok_or_else(|| {
                    let words = "expected one of `none`, `sqrt`, `linear`, `factorised`, `power`, `power-0.75`";
                    E::custom(format!("unknown variant `{text}`, {words}"))
                })
            }
        }
        deserializer.deserialize_str(Word)
    }
}

impl JsonSchema for RuleName {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "RuleName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        let words = "^(none|sqrt|linear|factorised|power(-[0-9.]+)?)$";
        schemars::json_schema!({"type": "string", "pattern": words, "description": "How residual branches shrink."})
    }
}

/// The reference depth of the paper.
pub const PAPER_DEPTH: usize = 12;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawScaling {
    /// `none`, `sqrt`, `linear`, `factorised`, `power`, or `power-ALPHA`.
    pub rule: RuleName,
    /// Exponent of `rule: power`.
    #[serde(default)]
    pub alpha: Option<f64>,
    /// Constant of `rule: factorised`, 1 in the paper.
    #[serde(default)]
    pub lambda: Option<f64>,
    /// Depth at which `rule: factorised` corrects nothing, 12 in the paper.
    #[serde(default)]
    pub reference_depth: Option<usize>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawInit {
    /// Standard deviation of embedding and blocks.
    #[serde(default = "init_std")]
    pub std: f64,
    /// Standard deviation of the blocks where it differs.
    #[serde(default)]
    pub hidden_std: Option<f64>,
    /// Where values are cut, in standard deviations.
    #[serde(default = "truncate")]
    pub truncate: f64,
}

fn truncate() -> f64 {
    3.0
}

fn init_std() -> f64 {
    0.02
}

impl Default for RawInit {
    fn default() -> Self {
        Self { std: init_std(), hidden_std: None, truncate: truncate() }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawOptimiser {
    /// Base learning rate eta0.
    pub lr: f64,
    #[serde(default = "betas")]
    pub betas: [f64; 2],
    #[serde(default = "weight_decay")]
    pub weight_decay: f64,
    #[serde(default = "adam_eps")]
    pub eps: f64,
    /// Largest norm of the gradient; null: no clipping.
    #[serde(default = "clip")]
    pub clip: Option<f64>,
    /// Whether norm gains decay like the matrices.
    #[serde(default)]
    pub decay_norms: bool,
}

fn betas() -> [f64; 2] {
    [0.9, 0.95]
}

fn weight_decay() -> f64 {
    0.1
}

fn adam_eps() -> f64 {
    1e-8
}

fn clip() -> Option<f64> {
    Some(1.0)
}

/// Absent: a constant learning rate.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawSchedule {
    #[serde(default)]
    pub warmup_steps: u64,
    #[serde(default)]
    pub decay_steps: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawBatch {
    /// Sequences per optimiser step.
    pub sequences: usize,
    /// Sequences per forward pass; absent: all of them. Gradients accumulate over the rest.
    #[serde(default)]
    pub micro_sequences: Option<usize>,
    pub seq_len: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DataKind {
    /// Token ids as decimal numbers in a text file.
    Text,
    /// A Parquet file or a folder of them with a list column `input_ids`.
    Parquet,
    /// The bytes of any file, one token each.
    Bytes,
    /// Seeded random ids, the same batch every step.
    Random,
}

impl DataKind {
    fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Parquet => "parquet",
            Self::Bytes => "bytes",
            Self::Random => "random",
        }
    }
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawData {
    pub kind: DataKind,
    #[serde(default)]
    pub path: Option<PathBuf>,
    /// The part of the tokens to use, as two fractions; absent: all.
    #[serde(default)]
    pub part: Option<[f64; 2]>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawEval {
    pub data: RawData,
    /// Sequences of `seq_len`, from the start of the data.
    pub sequences: usize,
    /// Steps between evaluations; absent: only at the end.
    #[serde(default)]
    pub every_steps: Option<u64>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RawProbes {
    /// Steps between measurements; step 0 is the model as initialised.
    #[serde(default = "one")]
    pub every_steps: u64,
    /// Also the cosine matrix of the increments.
    #[serde(default)]
    pub cosines: bool,
    /// Also the norm of every branch of every visit.
    #[serde(default)]
    pub branches: bool,
    /// Also the gradient norm of every parameter.
    #[serde(default)]
    pub gradients: bool,
}

/// What backward computes again instead of keeping.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Recompute {
    /// Keeps everything: memory grows with L * N.
    #[default]
    None,
    /// Keeps the input of each block of each visit.
    Block,
    /// Keeps the input of each visit: memory grows with L + N.
    Visit,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum DeviceChoice {
    /// CUDA where this build has it, else the CPU.
    #[default]
    Auto,
    Cpu,
    Cuda,
}

/// A run whose values fit together. `raw` is kept for records and checkpoints.
#[derive(Clone, Debug, PartialEq)]
pub struct RunConfig {
    pub raw: RawRun,
    pub model: ModelConfig,
    pub scaling: Scaling,
    pub schedule: Schedule,
    pub betas: (f64, f64),
    pub clip: Option<f64>,
    /// Sequences per forward pass, and forward passes per step.
    pub micro_sequences: usize,
    pub micro_batches: usize,
    pub seq_len: usize,
    pub steps: u64,
    pub seed: u64,
    pub loss_chunk_rows: usize,
}

impl RunConfig {
    pub fn tokens_per_step(&self) -> u64 {
        (self.micro_sequences * self.micro_batches * self.seq_len) as u64
    }
}

impl RawRun {
    pub fn check(self) -> Result<RunConfig, ConfigError> {
        let model = self.model.check()?;
        let scaling = self.scaling.check(&model, &self.init, &self.optimiser)?;
        for &beta in &self.optimiser.betas {
            if !(0.0..1.0).contains(&beta) {
                return Err(ConfigError::Beta { beta });
            }
        }
        if let Some(clip) = self.optimiser.clip {
            positive("optimiser.clip", clip)?;
        }
        at_least_one("steps", self.steps as usize)?;
        let RawSchedule { warmup_steps: warmup, decay_steps: decay } = self.schedule;
        if warmup.saturating_add(decay) > self.steps {
            return Err(ConfigError::ScheduleTooLong { warmup, decay, steps: self.steps });
        }
        let sequences = size("batch.sequences", self.batch.sequences)?;
        let micro = size("batch.micro_sequences", self.batch.micro_sequences.unwrap_or(sequences))?;
        if sequences % micro != 0 {
            return Err(ConfigError::MicroDoesNotDivide { micro, sequences });
        }
        let loss_chunk_rows = size("loss_chunk_rows", self.loss_chunk_rows.unwrap_or(model.loss_chunk_rows()))?;
        at_least_one("log_every_steps", self.log_every_steps as usize)?;
        at_least_one("checkpoint_every_steps", self.checkpoint_every_steps.unwrap_or(1) as usize)?;
        size("threads", self.threads.unwrap_or(1))?;
        if let Some(bound) = self.stop_above_loss {
            positive("stop_above_loss", bound)?;
        }
        if let Some(probes) = &self.probes {
            at_least_one("probes.every_steps", probes.every_steps as usize)?;
        }
        self.data.check("data", &model)?;
        if let Some(eval) = &self.eval {
            eval.data.check("eval.data", &model)?;
            size("eval.sequences", eval.sequences)?;
            at_least_one("eval.every_steps", eval.every_steps.unwrap_or(1) as usize)?;
        }
        Ok(RunConfig {
            model,
            scaling,
            schedule: Schedule { warmup_steps: warmup, decay_steps: decay, steps: self.steps },
            betas: (self.optimiser.betas[0], self.optimiser.betas[1]),
            clip: self.optimiser.clip,
            micro_sequences: micro,
            micro_batches: sequences / micro,
            seq_len: size("batch.seq_len", self.batch.seq_len)?,
            steps: self.steps,
            seed: self.seed,
            loss_chunk_rows,
            raw: self,
        })
    }
}

impl RawScaling {
    pub fn check(&self, model: &ModelConfig, init: &RawInit, optimiser: &RawOptimiser) -> Result<Scaling, ConfigError> {
        let rule = self.rule.name();
        let rule = match (self.rule, self.alpha) {
            (RuleName::Power, None) => return Err(ConfigError::PowerWithoutAlpha),
            (RuleName::PowerOf(alpha), None) => Rule::Power { alpha: not_negative("scaling.rule", alpha)? },
            (RuleName::Power, Some(alpha)) => Rule::Power { alpha: not_negative("scaling.alpha", alpha)? },
            (_, Some(_)) => return Err(ConfigError::AlphaWithoutPower { rule }),
            (RuleName::None, None) => Rule::None,
            (RuleName::Sqrt, None) => Rule::Sqrt,
            (RuleName::Linear, None) => Rule::Linear,
            (RuleName::Factorised, None) => Rule::Factorised { lambda: positive("scaling.lambda", self.lambda.unwrap_or(1.0))? },
        };
        if self.rule != RuleName::Factorised {
            let name = self.rule.name();
            for (field, given) in [("lambda", self.lambda.is_some()), ("reference_depth", self.reference_depth.is_some())] {
                if given {
                    return Err(ConfigError::OnlyFactorised { field, rule: name });
                }
            }
        }
        let reference = at_least_one("scaling.reference_depth", self.reference_depth.unwrap_or(PAPER_DEPTH))?;
        let std = positive("init.std", init.std)?;
        Ok(Scaling {
            rule,
            // "deep" has no loops: under the factorised rule its copies are depth. The one-argument rules take the number of
            // copies where a looped model has its number of visits.
            loops: match (rule, model.sharing) {
                (Rule::Factorised { .. }, Sharing::Deep) => 1,
                _ => model.loops,
            },
            depth_multiplier: model.unique_blocks() as f64 / reference as f64,
            base: Base {
                lr: not_negative("optimiser.lr", optimiser.lr)?,
                std,
                hidden_std: positive("init.hidden_std", init.hidden_std.unwrap_or(std))?,
                weight_decay: not_negative("optimiser.weight_decay", optimiser.weight_decay)?,
                eps: positive("optimiser.eps", optimiser.eps)?,
                truncate: positive("init.truncate", init.truncate)?,
                decay_norms: optimiser.decay_norms,
            },
        })
    }
}

impl RawData {
    pub fn check(&self, field: &'static str, model: &ModelConfig) -> Result<(), ConfigError> {
        match (self.kind, &self.path) {
            (DataKind::Random, Some(_)) => return Err(ConfigError::RandomWithPath { field }),
            (DataKind::Random, None) => {}
            (kind, None) => {
                return Err(ConfigError::DataWithoutPath { field, kind: kind.name() });
            }
            (_, Some(_)) => {}
        }
        if self.kind == DataKind::Bytes && model.vocabulary < 256 {
            return Err(ConfigError::BytesVocabulary { field, vocabulary: model.vocabulary });
        }
        let [from, to] = self.part.unwrap_or([0.0, 1.0]);
        if !(0.0 <= from && from < to && to <= 1.0) {
            return Err(ConfigError::Part { field, from, to });
        }
        Ok(())
    }
}

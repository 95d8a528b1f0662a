//! What a training run is asked to do. Raw structs mirror the YAML and refuse unknown keys; `check` turns them into values
//! that the rest of the paper trusts. Reading the file is left to the caller.

mod model;
mod run;

pub use model::{ModelConfig, RawModel, Sharing};
pub use run::{
    DataKind, DeviceChoice, PAPER_DEPTH, RawBatch, RawData, RawEval, RawInit, RawOptimiser, RawProbes, RawRun, RawScaling,
    RawSchedule, Recompute, RuleName, RunConfig,
};

/// A wrong value, or two values that do not go together.
#[derive(Debug, thiserror::Error, PartialEq)]
pub enum ConfigError {
    #[error("`{field}` is 0; it must be at least 1")]
    Zero { field: &'static str },
    #[error("`{field}` is {value}; it must be a number above 0")]
    NotPositive { field: &'static str, value: f64 },
    #[error("`{field}` is {value}; it must be a number and not negative")]
    Negative { field: &'static str, value: f64 },
    #[error("`{field}` is {value}; sizes above 2^24 are refused")]
    TooLarge { field: &'static str, value: usize },
    #[error("the model would have {parameters} parameters; above 10^11 it is refused")]
    TooManyParameters { parameters: u128 },
    #[error("`heads` is {heads}, which does not divide `width` {width}; choose a divisor")]
    HeadsDoNotDivide { heads: usize, width: usize },
    #[error("`width` {width} over `heads` {heads} gives heads of width {head_width}; rotary positions need an even width")]
    OddHeads { heads: usize, width: usize, head_width: usize },
    #[error("`optimiser.betas` holds {beta}; both must be at least 0 and below 1")]
    Beta { beta: f64 },
    #[error("`scaling.alpha` belongs to `rule: power` only; this run has `rule: {rule}`")]
    AlphaWithoutPower { rule: &'static str },
    #[error("`rule: power` needs `scaling.alpha`, the exponent of 1/N")]
    PowerWithoutAlpha,
    #[error("`scaling.{field}` belongs to `rule: factorised` only; this run has `rule: {rule}`")]
    OnlyFactorised { field: &'static str, rule: &'static str },
    #[error(
        "`schedule.warmup_steps` is {warmup} and `schedule.decay_steps` is {decay}, but the run has only {steps} steps; lower one of them or raise `steps`"
    )]
    ScheduleTooLong { warmup: u64, decay: u64, steps: u64 },
    #[error("`batch.micro_sequences` is {micro}, which does not divide `batch.sequences` {sequences}")]
    MicroDoesNotDivide { micro: usize, sequences: usize },
    #[error("`{field}.kind: {kind}` needs `{field}.path`")]
    DataWithoutPath { field: &'static str, kind: &'static str },
    #[error("`{field}.kind: random` takes no `path`; remove it or choose another kind")]
    RandomWithPath { field: &'static str },
    #[error("`{field}.part` is [{from}, {to}]; it must be two fractions, 0 <= from < to <= 1")]
    Part { field: &'static str, from: f64, to: f64 },
    #[error("`{field}.kind: bytes` makes token ids up to 255, but `model.vocabulary` is {vocabulary}; set it to 256 or more")]
    BytesVocabulary { field: &'static str, vocabulary: usize },
}

pub(crate) fn at_least_one(field: &'static str, value: usize) -> Result<usize, ConfigError> {
    if value == 0 { Err(ConfigError::Zero { field }) } else { Ok(value) }
}

/// A size: at least 1, and small enough that products of two cannot overflow.
pub(crate) fn size(field: &'static str, value: usize) -> Result<usize, ConfigError> {
    if value > 1 << 24 {
        return Err(ConfigError::TooLarge { field, value });
    }
    at_least_one(field, value)
}

pub(crate) fn positive(field: &'static str, value: f64) -> Result<f64, ConfigError> {
    if value > 0.0 && value.is_finite() { Ok(value) } else { Err(ConfigError::NotPositive { field, value }) }
}

pub(crate) fn not_negative(field: &'static str, value: f64) -> Result<f64, ConfigError> {
    if value >= 0.0 && value.is_finite() { Ok(value) } else { Err(ConfigError::Negative { field, value }) }
}

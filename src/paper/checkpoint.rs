//! A run at rest: weights, optimiser moments, step, data position, in one safetensors file that is either whole or absent.
//! Random numbers need no state: they depend on the seed and the counter only.

use super::batch::Position;
use super::config::{ConfigError, ModelConfig, RawBatch, RawInit, RawModel, RawOptimiser, RawScaling, RawSchedule, RunConfig};
use super::metrics::Lengths;
use super::model::{Model, ModelError, parameters};
use super::optimiser::Optimiser;
use super::tensor_file::{self, Entry};
use crate::ops::Backend;
use dfdx::prelude::HasShape;
use safetensors::SafeTensorError;
use safetensors::tensor::{Dtype, SafeTensors};
use serde::{Deserialize, Serialize};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

#[derive(Debug, thiserror::Error)]
pub enum CheckpointError {
    #[error("cannot read checkpoint `{path}`")]
    Read {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error("`{path}` is no whole checkpoint: {what}")]
    Broken { path: PathBuf, what: String },
    #[error("`{path}` is a safetensors file, but not a checkpoint of this program")]
    Foreign { path: PathBuf },
    #[error("weight `{name}` of `{path}` is {found:?}, and this model needs {expected:?}")]
    Shape { path: PathBuf, name: String, found: Vec<usize>, expected: Vec<usize> },
    #[error("`{path}` holds no `{name}`, which this model needs")]
    Missing { path: PathBuf, name: String },
    #[error(
        "`{path}` was made with `{field}` {found}, and this run has {expected}; use the settings it was made with, or another folder"
    )]
    AnotherRun { path: PathBuf, field: String, found: String, expected: String },
    #[error("cannot write checkpoint `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        cause: io::Error,
    },
    #[error(transparent)]
    Model(#[from] ModelError),
    #[error(transparent)]
    Config(#[from] ConfigError),
}

/// The settings that decide the numbers of a run; a checkpoint continues only the run it came from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Identity {
    pub model: RawModel,
    pub scaling: RawScaling,
    pub init: RawInit,
    pub optimiser: RawOptimiser,
    pub schedule: RawSchedule,
    pub batch: RawBatch,
    pub steps: u64,
    pub seed: u64,
    pub loss_chunk_rows: usize,
}

impl Identity {
    pub fn of(config: &RunConfig) -> Self {
        let run = &config.raw;
        Self {
            model: run.model.clone(),
            scaling: run.scaling.clone(),
            init: run.init.clone(),
            optimiser: run.optimiser.clone(),
            schedule: run.schedule.clone(),
            batch: run.batch.clone(),
            steps: run.steps,
            seed: run.seed,
            loss_chunk_rows: config.loss_chunk_rows,
        }
    }
}

/// Where a run stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct State {
    pub format: u32,
    pub identity: Identity,
    /// Steps done.
    pub step: u64,
    pub tokens_seen: u64,
    pub position: Position,
    /// Absent if it was not a number.
    pub last_loss: Option<f64>,
    pub lengths: Lengths,
}

pub const FORMAT: u32 = 1;

/// The metadata entry that holds the [`State`] as JSON. One entry, because safetensors does not order them.
const STATE: &str = "repro";

pub fn save<D: Backend>(path: &Path, model: &Model<D>, optimiser: &Optimiser<D>, state: &State) -> Result<(), CheckpointError> {
    let mut entries = Vec::new();
    let names = parameters(&model.config).into_iter().map(|(name, ..)| name);
    for ((name, weight), moments) in names.zip(model.weights()).zip(&optimiser.moments) {
        for (part, tensor) in [("weight", weight), ("mean", &moments.mean), ("square", &moments.square)] {
            let &(rows, cols) = tensor.shape();
            let values = Box::new(|| tensor.as_vec());
            entries.push(Entry { name: format!("{part}.{name}"), shape: vec![rows, cols], values });
        }
    }
    let state = serde_json::to_string(state).expect("a state is plain numbers and names");
    tensor_file::write(path, Some((STATE, state)), entries)
        .map_err(|cause| CheckpointError::Write { path: path.to_owned(), cause })
}

/// A checkpoint in memory, its header checked.
pub struct Checkpoint {
    path: PathBuf,
    bytes: Vec<u8>,
    pub state: State,
}

impl Checkpoint {
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let bytes = fs::read(path).map_err(|cause| CheckpointError::Read { path: path.to_owned(), cause })?;
        let broken = |what: String| CheckpointError::Broken { path: path.to_owned(), what };
        let (_, metadata) = SafeTensors::read_metadata(&bytes).map_err(|e| broken(what_is_broken(&e)))?;
        let foreign = || CheckpointError::Foreign { path: path.to_owned() };
        let state = metadata.metadata().as_ref().and_then(|m| m.get(STATE)).ok_or_else(foreign)?;
        let state: State = serde_json::from_str(state).map_err(|e| broken(e.to_string()))?;
        if state.format != FORMAT {
            return Err(broken(format!("its format is {}, and this program reads {FORMAT}", state.format)));
        }
        Ok(Self { path: path.to_owned(), bytes, state })
    }

    fn values(&self, name: &str, shape: (usize, usize)) -> Result<Vec<f32>, CheckpointError> {
        let path = || self.path.clone();
        let broken = |what: String| CheckpointError::Broken { path: path(), what };
        let tensors = SafeTensors::deserialize(&self.bytes).map_err(|e| broken(what_is_broken(&e)))?;
        let missing = |_| CheckpointError::Missing { path: path(), name: name.to_owned() };
        let tensor = tensors.tensor(name).map_err(missing)?;
        let expected = vec![shape.0, shape.1];
        if tensor.shape() != expected || tensor.dtype() != Dtype::F32 {
            return Err(CheckpointError::Shape { path: path(), name: name.to_owned(), found: tensor.shape().to_vec(), expected });
        }
        let word = |b: &[u8]| f32::from_le_bytes([b[0], b[1], b[2], b[3]]);
        Ok(tensor.data().chunks_exact(4).map(word).collect())
    }

    /// The model alone, built from the settings the checkpoint carries.
    pub fn model<D: Backend>(&self, dev: &D) -> Result<Model<D>, CheckpointError> {
        let identity = &self.state.identity;
        let config = identity.model.check()?;
        let scaling = identity.scaling.check(&config, &identity.init, &identity.optimiser)?;
        self.model_of(dev, config, scaling.branch_scale() as f32)
    }

    fn model_of<D: Backend>(&self, dev: &D, config: ModelConfig, branch_scale: f32) -> Result<Model<D>, CheckpointError> {
        Model::from_values(dev, config, branch_scale, |name, _, shape| self.values(&format!("weight.{name}"), shape))
    }

    /// Fills model and optimiser of a run that continues. Refuses a checkpoint of another run before touching anything.
    pub fn restore<D: Backend>(
        &self,
        dev: &D,
        config: &RunConfig,
        model: &mut Model<D>,
        optimiser: &mut Optimiser<D>,
    ) -> Result<(), CheckpointError> {
        self.same_run(config)?;
        let restored = self.model_of(dev, config.model, model.branch_scale)?;
        for ((name, _, shape), moments) in parameters(&config.model).into_iter().zip(&mut optimiser.moments) {
            for (part, tensor) in [("mean", &mut moments.mean), ("square", &mut moments.square)] {
                let values = self.values(&format!("{part}.{name}"), shape)?;
                *tensor = dev.try_tensor_from_vec(values, shape).map_err(super::model::device_error)?;
            }
        }
        let (recompute, loss_chunk_rows) = (model.recompute, model.loss_chunk_rows);
        *model = restored;
        model.recompute = recompute;
        model.loss_chunk_rows = loss_chunk_rows;
        Ok(())
    }

    fn same_run(&self, run: &RunConfig) -> Result<(), CheckpointError> {
        let json = |identity: &Identity| serde_json::to_value(identity).expect("settings are plain numbers and names");
        match first_difference(&json(&self.state.identity), &json(&Identity::of(run)), "") {
            None => Ok(()),
            Some((field, found, expected)) => {
                Err(CheckpointError::AnotherRun { path: self.path.clone(), field, found, expected })
            }
        }
    }
}

/// What a reader of safetensors found wrong, for those who never heard of its header.
fn what_is_broken(error: &SafeTensorError) -> String {
    match error {
        SafeTensorError::HeaderTooSmall => "it is shorter than any safetensors file".to_owned(),
        SafeTensorError::InvalidHeaderLength => "its header is cut off".to_owned(),
        SafeTensorError::MetadataIncompleteBuffer => "its data ends before its header says".to_owned(),
        other => other.to_string(),
    }
}

fn first_difference(a: &serde_json::Value, b: &serde_json::Value, at: &str) -> Option<(String, String, String)> {
    if let (Some(a), Some(b)) = (a.as_object(), b.as_object()) {
        return a.iter().find_map(|(key, value)| {
            let at = if at.is_empty() { key.clone() } else { format!("{at}.{key}") };
            first_difference(value, b.get(key).unwrap_or(&serde_json::Value::Null), &at)
        });
    }
    (a != b).then(|| (at.to_owned(), a.to_string(), b.to_string()))
}

//! What a stage kind is to the pipeline: it checks its parameters, and it turns inputs into outputs in a worker process.
//! The kinds themselves live in `stage/`.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::config::locate::Seg;
use super::config::nearest;

/// The code behind a kind, as build.rs found it.
#[derive(Debug)]
pub struct Code {
    /// Over everything below.
    pub digest: &'static str,
    pub files: &'static [(&'static str, &'static str)],
    pub crates: &'static [(&'static str, &'static str)],
}

include!(concat!(env!("OUT_DIR"), "/code.rs"));

impl Code {
    /// The code of the kind in `src/stage/<name>.rs`.
    pub fn of(name: &str) -> &'static Code {
        let found = CODE.iter().find(|(kind, _)| *kind == name);
        &found.expect("every kind is a file in src/stage, which build.rs reads").1
    }
}

/// A stage kind.
pub trait Kind: Sync {
    /// As written after `kind:`; also the name of its file in src/stage.
    fn name(&self) -> &'static str;
    /// One line for `repro schema` and the documentation.
    fn about(&self) -> &'static str;
    /// The JSON Schema of `with`.
    fn schema(&self) -> schemars::Schema;
    /// Types, defaults and relations of the parameters; what comes back enters the key.
    fn check(&self, draft: &Draft) -> Result<Checked, ParamError>;
    /// How many threads serve a node best, where the pipeline does not say.
    fn threads(&self, _params: &Value) -> Threads {
        Threads::One
    }
    /// For a kind that only starts a program: that program. The runner then starts it itself, which saves a process.
    fn program(&self, _task: &Task) -> Option<std::process::Command> {
        None
    }
    /// Does the work, in a worker process of its own. The outputs must exist when it returns.
    fn run(&self, task: &Task) -> Result<(), Box<dyn std::error::Error + Send + Sync>>;
    fn code(&self) -> &'static Code {
        Code::of(self.name())
    }
}

/// What a kind wishes for a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Threads {
    /// One, so that many nodes run side by side.
    One,
    /// All of the machine, one node after another.
    All,
}

/// All kinds there are.
#[derive(Clone, Copy)]
pub struct Registry(pub &'static [&'static dyn Kind]);

impl Registry {
    pub fn get(&self, name: &str) -> Option<&'static dyn Kind> {
        self.0.iter().copied().find(|kind| kind.name() == name)
    }
    pub fn names(&self) -> Vec<String> {
        self.0.iter().map(|kind| kind.name().to_string()).collect()
    }
}

/// A node as written, templates filled in.
pub struct Draft<'a> {
    pub params: &'a Value,
    pub inputs: Vec<&'a str>,
    pub outputs: &'a [Output],
}

/// A node's parameters after defaults and checks.
pub struct Checked {
    pub params: Value,
    pub outputs: Vec<Output>,
    /// Devices that give the same bits share a class. `any` where the kind computes nothing itself.
    pub numerics: &'static str,
}

/// A declared output: a file or a directory of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Output {
    pub name: String,
    /// Relative to the working directory, without a trailing `/`.
    pub path: String,
    pub directory: bool,
}

/// A mistake in the parameters, and where below `with` it stands.
#[derive(Debug, thiserror::Error)]
#[error("{message}")]
pub struct ParamError {
    pub path: Vec<Seg>,
    pub at_key: bool,
    pub message: String,
}

impl ParamError {
    pub fn at(path: &[&str], message: impl Into<String>) -> ParamError {
        ParamError { path: path.iter().map(|key| Seg::from(*key)).collect(), at_key: false, message: message.into() }
    }
}

/// Reads parameters into the kind's own type. `null` counts as no parameters at all.
pub fn typed<T: serde::de::DeserializeOwned>(params: &Value) -> Result<T, ParamError> {
    static NOTHING: Value = Value::Null;
    let empty = Value::Object(serde_json::Map::new());
    let params = if *params == NOTHING { &empty } else { params };
    serde_path_to_error::deserialize(params).map_err(|error| {
        use serde_path_to_error::Segment;
        let mut path: Vec<Seg> = error
            .path()
            .iter()
            .filter_map(|segment| match segment {
                Segment::Seq { index } => Some(Seg::Index(*index)),
                Segment::Map { key } => Some(Seg::Key(key.clone())),
                Segment::Enum { .. } | Segment::Unknown => None,
            })
            .collect();
        let mut message = error.inner().to_string();
        let unknown =
            message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')).map(|(name, _)| name.to_string());
        if let Some(name) = &unknown {
            let names: Vec<String> = message.split('`').skip(3).step_by(2).map(str::to_string).collect();
            if let Some(near) = nearest(&names, name) {
                message = format!("{message}; did you mean `{near}`?");
            }
            if path.last() != Some(&Seg::Key(name.clone())) {
                path.push(Seg::Key(name.clone()));
            }
        }
        ParamError { path, at_key: unknown.is_some(), message }
    })
}

/// What a worker is asked to do. All paths are absolute.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Task {
    pub node: String,
    pub kind: String,
    pub params: Value,
    /// The working directory: inputs lie in it as links, outputs are expected in it.
    pub work: PathBuf,
    pub inputs: BTreeMap<String, PathBuf>,
    pub outputs: BTreeMap<String, PathBuf>,
    pub seed: Option<u64>,
    pub threads: usize,
    /// Survives a kill and is handed to the next attempt at the same key; removed once the node is done. Whoever wants it makes it.
    pub scratch: PathBuf,
    /// Where the worker may leave its progress for the live display.
    pub progress: PathBuf,
    /// The runner that waits for this worker; the worker does not outlive it.
    pub parent: u32,
}

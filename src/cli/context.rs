//! What most commands begin with: the project around us, its graph for a profile, and its store.

use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{CliError, Global, Which};
use crate::engine::config::Project;
use crate::engine::graph::Graph;
use crate::engine::store::{Access, Store};
use crate::stage::REGISTRY;

pub struct Context {
    pub root: PathBuf,
    pub graph: Graph,
    pub store: Store,
}

impl Context {
    pub fn open(global: &Global, which: &Which, access: Access) -> Result<Context, CliError> {
        let root = root(global)?;
        let project = Project::load(&root)?;
        let profile = which.profile.clone().unwrap_or_else(|| project.default_profile().to_string());
        let graph = Graph::build(&project, &profile, &sets(which)?, REGISTRY)?;
        let store = open_store(global, &root, access)?;
        Ok(Context { root, graph, store })
    }
}

pub fn open_store(global: &Global, root: &Path, access: Access) -> Result<Store, CliError> {
    let folder = global.store.clone().unwrap_or_else(|| root.join(".repro"));
    let folder = std::path::absolute(&folder).unwrap_or(folder);
    Ok(Store::open(&folder, access)?)
}

/// The folder given with `-C`, or the nearest one around us that holds a pipeline.yaml.
pub fn root(global: &Global) -> Result<PathBuf, CliError> {
    let here = match &global.directory {
        Some(directory) => std::path::absolute(directory),
        None => std::env::current_dir(),
    };
    let here = here.map_err(|source| CliError::Io { what: "the current directory is gone".into(), source })?;
    if global.directory.is_some() {
        if !here.is_dir() {
            return Err(CliError::Wrong(format!("`-C {}`: there is no such directory", here.display())));
        }
        return Ok(here);
    }
    Ok(here.ancestors().find(|folder| folder.join("pipeline.yaml").is_file()).map_or_else(|| here.clone(), Path::to_path_buf))
}

fn sets(which: &Which) -> Result<Vec<(String, Value)>, CliError> {
    let mut sets = Vec::new();
    for text in &which.sets {
        let (name, value) = text
            .split_once('=')
            .ok_or_else(|| CliError::Wrong(format!("`--set {text}` has no value; write it as `--set name=value`")))?;
        let value: Value = serde_yaml::from_str(value)
            .map_err(|error| CliError::Wrong(format!("`--set {text}`: the value cannot be read: {error}")))?;
        sets.push((name.to_string(), value));
    }
    Ok(sets)
}

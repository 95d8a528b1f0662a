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
    pub project: Project,
    pub graph: Graph,
    pub store: Store,
}

impl Context {
    pub fn open(global: &Global, which: &Which, access: Access) -> Result<Context, CliError> {
        let root = root(global)?;
        let sets = sets(which)?;
        // The journal of a large project takes as long to read as its YAML.
        let (graph, store) = std::thread::scope(|scope| {
            let store = scope.spawn(|| open_store(global, &root, access));
            let graph = Project::load(&root).and_then(|project| {
                let profile = which.profile.clone().unwrap_or_else(|| project.default_profile().to_string());
                Graph::build(&project, &profile, &sets, REGISTRY).map(|graph| (project, graph))
            });
            (graph, store.join().expect("opening a store does not panic"))
        });
        let (project, graph) = graph?;
        Ok(Context { root, project, graph, store: store? })
    }
}

pub fn open_store(global: &Global, root: &Path, access: Access) -> Result<Store, CliError> {
    Ok(Store::open(&store_folder(global, root), access)?)
}

pub fn store_folder(global: &Global, root: &Path) -> PathBuf {
    let folder = global.store.clone().unwrap_or_else(|| root.join(".repro"));
    std::path::absolute(&folder).unwrap_or(folder)
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

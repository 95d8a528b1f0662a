//! Decides how each node stands: cached, to be restored, to be run and why, or waiting for another. The runner and `plan` ask the same questions here.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use rayon::prelude::*;

use super::config::ConfigError;
use super::digest::{self, Digest, WalkError};
use super::graph::{Graph, Node, Origin};
use super::key::{InputContent, Key, key};
use super::store::index::Stamp;
use super::store::journal::Stored;
use super::store::publish::{Published, folder};
use super::store::{Store, StoreError};
use super::why::{Why, changed};

#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("input `{input}` of `{node}`: `{path}` does not exist; make it, or mend the path in the stage's `inputs`")]
    MissingInput { node: String, input: String, path: String },
    #[error("input `{input}` of `{node}`: `{path}` cannot be read")]
    UnreadableInput { node: String, input: String, path: String, source: std::io::Error },
    #[error("input `{input}` of `{node}`")]
    BadInput { node: String, input: String, source: WalkError },
}

/// How a node stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Its record is there, and, where asked for, its outputs are in place.
    Cached,
    /// Its record is there; these published files are missing or edited.
    Restore(String),
    Run(Why),
    /// It may have to run: that depends on what this node makes.
    Waits(usize),
}

/// A verdict on one node.
#[derive(Clone, Debug)]
pub struct Judged {
    pub standing: Standing,
    /// Unknown while the node waits.
    pub key: Option<Key>,
    /// What it made, if it is done.
    pub outputs: Option<Arc<Vec<Stored>>>,
    /// The record is of another node or profile, and this one should be noted beside it.
    pub bind: bool,
}

/// The content of a project path, and the stats it was read under.
#[derive(Clone)]
pub struct Content {
    pub digest: Digest,
    pub stamps: Arc<Vec<(PathBuf, Stamp)>>,
}

pub struct Planner<'a> {
    pub root: &'a Path,
    pub graph: &'a Graph,
    pub store: &'a Store,
    /// Nodes that run whatever the cache says.
    pub forced: HashSet<usize>,
    /// Nodes whose outputs have to lie under `out/`.
    pub wanted: HashSet<usize>,
    contents: Mutex<HashMap<String, Content>>,
}

impl<'a> Planner<'a> {
    pub fn new(root: &'a Path, graph: &'a Graph, store: &'a Store) -> Planner<'a> {
        Planner { root, graph, store, forced: HashSet::new(), wanted: HashSet::new(), contents: Mutex::new(HashMap::new()) }
    }

    /// Reads the project paths that these nodes use, the unchanged ones by stat alone and the others on all cores.
    pub fn read_inputs(&self, nodes: &[usize]) -> Result<(), PlanError> {
        let mut seen: HashSet<&str> = HashSet::new();
        let mut paths: Vec<(&Node, &str, &str)> = Vec::new();
        for node in nodes {
            let node = &self.graph.nodes[*node];
            for input in &node.inputs {
                if let Origin::Path(path) = &input.origin
                    && seen.insert(path)
                {
                    paths.push((node, &input.name, path));
                }
            }
        }
        let mut cold = Vec::new();
        for (node, input, path) in paths {
            match self.remembered(path) {
                Some(content) => {
                    self.lock().insert(path.to_string(), content);
                }
                None => cold.push((node, input, path)),
            }
        }
        let read: Vec<(String, Content)> = cold
            .into_par_iter()
            .map(|(node, input, path)| Ok((path.to_string(), self.read(node, input, path)?)))
            .collect::<Result<_, PlanError>>()?;
        self.lock().extend(read);
        Ok(())
    }

    /// Forgets what was read of the project, to be read anew.
    pub fn forget_inputs(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<String, Content>> {
        self.contents.lock().expect("no thread panics while it holds the contents")
    }

    fn remembered(&self, path: &str) -> Option<Content> {
        let full = self.root.join(path);
        let meta = std::fs::metadata(&full).ok()?;
        let state = meta.is_file().then(|| self.store.index.remembered(path, &meta)).flatten()?;
        Some(Content { digest: file_digest(state.digest, state.executable), stamps: Arc::new(vec![(full, state.stamp)]) })
    }

    /// The content of a project path: a file's digest, or a directory's over all its files.
    fn read(&self, node: &Node, input: &str, path: &str) -> Result<Content, PlanError> {
        let full = self.root.join(path);
        let name = || (node.id.clone(), input.to_string(), path.to_string());
        let missing = |source: std::io::Error| {
            let (node, input, path) = name();
            match source.kind() {
                std::io::ErrorKind::NotFound => PlanError::MissingInput { node, input, path },
                _ => PlanError::UnreadableInput { node, input, path, source },
            }
        };
        let meta = std::fs::metadata(&full).map_err(missing)?;
        if !meta.is_dir() {
            let state = self.store.index.state(path, &full).map_err(missing)?;
            return Ok(Content {
                digest: file_digest(state.digest, state.executable),
                stamps: Arc::new(vec![(full, state.stamp)]),
            });
        }
        let files = digest::walk(&full, true).map_err(|source| PlanError::BadInput {
            node: node.id.clone(),
            input: input.into(),
            source,
        })?;
        let states: Vec<_> = files
            .par_iter()
            .map(|file| self.store.index.state(&format!("{path}/{}", file.relative), &file.path).map_err(missing))
            .collect::<Result<_, _>>()?;
        let digest = digest::of_tree(
            files.iter().zip(&states).map(|(file, state)| (file.relative.as_str(), state.digest, state.executable)),
        );
        let mut stamps: Vec<(PathBuf, Stamp)> =
            files.iter().zip(&states).map(|(file, state)| (file.path.clone(), state.stamp)).collect();
        // A file added or removed later shows in the folder it lies in.
        let folders: std::collections::BTreeSet<&Path> = files
            .iter()
            .flat_map(|file| file.path.ancestors().skip(1).take_while(|up| up.starts_with(&full)))
            .chain([full.as_path()])
            .collect();
        for folder in folders {
            stamps.push((folder.to_path_buf(), Stamp::of(&std::fs::metadata(folder).map_err(missing)?)));
        }
        Ok(Content { digest, stamps: Arc::new(stamps) })
    }

    pub fn content(&self, node: &Node, input: &str, path: &str) -> Result<Content, PlanError> {
        if let Some(content) = self.lock().get(path) {
            return Ok(content.clone());
        }
        let content = self.read(node, input, path)?;
        self.lock().insert(path.to_string(), content.clone());
        Ok(content)
    }

    /// The key of a node, once everything it reads is known; otherwise the first node it waits for.
    pub fn key(&self, at: usize, made: &dyn Fn(usize) -> Option<Arc<Vec<Stored>>>) -> Result<Result<Key, usize>, PlanError> {
        let node = &self.graph.nodes[at];
        let mut contents = Vec::with_capacity(node.inputs.len());
        for input in &node.inputs {
            contents.push(match &input.origin {
                Origin::Path(path) => InputContent::Path(self.content(node, &input.name, path)?.digest),
                Origin::Nodes(list) => {
                    let mut digests = Vec::with_capacity(list.len());
                    for from in list {
                        match made(from.node) {
                            Some(outputs) => digests.push(outputs[from.output].digest),
                            None => return Ok(Err(from.node)),
                        }
                    }
                    InputContent::Nodes(digests)
                }
            });
        }
        let kind = self.graph.stages[node.stage].kind;
        Ok(Ok(key(node, kind.name(), kind.code().digest, &contents)))
    }

    /// How a node stands, given what the nodes before it made.
    pub fn judge(&self, at: usize, made: &dyn Fn(usize) -> Option<Arc<Vec<Stored>>>) -> Result<Judged, PlanError> {
        let node = &self.graph.nodes[at];
        let key = match self.key(at, made)? {
            Ok(key) => key,
            Err(upstream) => {
                return Ok(Judged { standing: Standing::Waits(upstream), key: None, outputs: None, bind: false });
            }
        };
        let run = |why: Why, key: Key| Ok(Judged { standing: Standing::Run(why), key: Some(key), outputs: None, bind: false });
        if self.forced.contains(&at) {
            return run(Why::Forced, key);
        }
        let last = self.store.journal.last(&self.graph.profile, &node.id);
        let Some(done) = self.store.journal.done(&key.digest) else {
            let why = match last {
                None => Why::NeverRan,
                Some(last) if last.key == key.digest => match last.failed {
                    Some(what) => Why::FailedBefore { what },
                    None => Why::NoRecord,
                },
                Some(last) => {
                    let old = last.body.map(|body| self.store.journal.body(&body)).unwrap_or_default();
                    let old = old.split('\n').next().unwrap_or_default();
                    changed(old, &key.parts).unwrap_or(Why::NoRecord)
                }
            };
            return run(why, key);
        };
        let bind = last.is_none_or(|last| last.key != key.digest || last.failed.is_some());
        let mut standing = Standing::Cached;
        if self.wanted.contains(&at) {
            if let Err(what) = self.store.holds(&done.outputs)?
                && let Err(what) = self.mend(node, &done.outputs, what)?
            {
                return run(Why::Lost { what }, key);
            }
            let place = folder(&self.graph.profile, &node.id);
            standing = match self.store.publisher(self.root).check(&place, &done.outputs) {
                Published::Intact => Standing::Cached,
                Published::Missing(name) => Standing::Restore(format!("{name} is missing")),
                Published::Edited(name) => Standing::Restore(format!("{name} was edited")),
            };
        }
        let outputs = Arc::new(done.outputs.clone());
        Ok(Judged { standing, key: Some(key), outputs: Some(outputs), bind })
    }

    /// Brings lost objects back from their published copies. Says what is still lost.
    fn mend(&self, node: &Node, outputs: &[Stored], what: String) -> Result<Result<(), String>, PlanError> {
        let publisher = self.store.publisher(self.root);
        let place = folder(&self.graph.profile, &node.id);
        for stored in outputs {
            for item in &stored.files {
                let there = self.store.objects.check(item, &self.store.index);
                let there = there.map_err(|cause| StoreError::Read { path: self.store.folder.clone(), cause })?;
                if there != super::store::objects::Check::Good && !publisher.heal(&place, stored, item) {
                    return Ok(Err(what));
                }
            }
        }
        Ok(Ok(()))
    }

    /// Judges a set of nodes in order, as if nothing were run.
    pub fn plan(&self, nodes: &[usize]) -> Result<Vec<(usize, Judged)>, PlanError> {
        self.read_inputs(nodes)?;
        let mut made: HashMap<usize, Arc<Vec<Stored>>> = HashMap::new();
        let mut all = Vec::with_capacity(nodes.len());
        for at in nodes {
            let judged = self.judge(*at, &|upstream| made.get(&upstream).cloned())?;
            if let Some(outputs) = &judged.outputs {
                made.insert(*at, outputs.clone());
            }
            all.push((*at, judged));
        }
        Ok(all)
    }
}

/// A file as an input: its bytes and whether it may be executed.
fn file_digest(digest: Digest, executable: bool) -> Digest {
    if executable { digest::of_tree(std::iter::once(("", digest, true))) } else { digest }
}

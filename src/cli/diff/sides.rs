//! What `repro diff` may be given: a profile, an earlier run of it, a checkout, a folder of results. Each becomes a list of files.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

use crate::cli::context::{open_store, root};
use crate::cli::{CliError, Global};
use crate::engine::config::{Project, known};
use crate::engine::digest;
use crate::engine::store::Access;
use crate::engine::store::journal::{Done, Head};
use crate::engine::store::publish::place;
use crate::engine::trail::Trail;

/// The folders of results that are compared.
const COMPARED: [&str; 3] = ["verify", "tidy", "figures"];

/// Results to compare: where each file lies, by its name below `out/<profile>/`.
pub struct Side {
    pub label: String,
    pub files: BTreeMap<String, PathBuf>,
}

impl Side {
    pub fn find(global: &Global, text: &str) -> Result<Side, CliError> {
        let path = Path::new(text);
        if let Some((folder, profile)) =
            text.rsplit_once(':').filter(|(folder, _)| Path::new(folder).join("pipeline.yaml").is_file())
        {
            return Side::of_checkout(text, Path::new(folder), Some(profile));
        }
        if path.join("pipeline.yaml").is_file() {
            return Side::of_checkout(text, path, None);
        }
        if path.is_dir() {
            return Side::of_folder(text, path);
        }
        let root = root(global)?;
        let project = Project::load(&root)?;
        let (name, back) = match text.rsplit_once('~') {
            Some((name, back)) => (name, Some(back)),
            None => (text, None),
        };
        let profiles: Vec<String> = project.profiles().into_iter().map(str::to_string).collect();
        if !profiles.iter().any(|profile| profile == name) {
            let message = format!("`{text}` is neither a folder nor a profile of this project{}", known(&profiles, name));
            return Err(CliError::Wrong(message));
        }
        match back {
            None => Side::of_profile(text, &root, name),
            Some(back) => match back.parse() {
                Ok(back) if back > 0 => Side::of_run(global, &root, text, name, back),
                _ => Err(CliError::Wrong(format!("`{text}`: after `~` comes how many runs to go back, such as `{name}~1`"))),
            },
        }
    }

    pub fn below(&self, folder: &str) -> BTreeMap<String, &PathBuf> {
        let prefix = format!("{folder}/");
        self.files.iter().filter_map(|(name, path)| Some((name.strip_prefix(&prefix)?.to_string(), path))).collect()
    }

    fn of_checkout(label: &str, folder: &Path, profile: Option<&str>) -> Result<Side, CliError> {
        let project = Project::load(folder)?;
        Side::of_profile(label, folder, profile.unwrap_or(project.default_profile()))
    }

    fn of_profile(label: &str, root: &Path, profile: &str) -> Result<Side, CliError> {
        let side = Side::walk(label, &root.join("out").join(profile));
        side.or_nothing(&format!("below `out/{profile}`; `repro run --profile {profile}` makes them"))
    }

    fn of_folder(label: &str, folder: &Path) -> Result<Side, CliError> {
        Side::walk(label, folder).or_nothing("in this folder; give a checkout, or a folder such as `out/quick`")
    }

    fn walk(label: &str, folder: &Path) -> Side {
        let mut files = BTreeMap::new();
        for part in COMPARED {
            for entry in digest::walk(&folder.join(part), true).unwrap_or_default() {
                files.insert(format!("{part}/{}", entry.relative), entry.path);
            }
        }
        Side { label: label.to_string(), files }
    }

    /// The profile as it stood before its last `back` runs that did anything.
    fn of_run(global: &Global, root: &Path, label: &str, profile: &str, back: usize) -> Result<Side, CliError> {
        let store = open_store(global, root, Access::Read)?;
        let trails = Trail::all(&store.folder, profile);
        let Some(trail) = trails.len().checked_sub(back).map(|at| &trails[at]) else {
            let message =
                format!("`{label}` goes too far back: only {} of profile `{profile}` are on record", runs(trails.len()));
            return Err(CliError::Wrong(message));
        };
        let mut stood: HashMap<String, digest::Digest> = HashMap::new();
        let mut made: HashMap<digest::Digest, Done> = HashMap::new();
        for head in store.journal.heads() {
            match head {
                Head::Done(done) => {
                    if done.profile == profile && done.at_ms < trail.began_ms {
                        stood.insert(done.node.clone(), done.key);
                    }
                    made.insert(done.key, done);
                }
                Head::Bind { key, profile: of, node, at_ms } if of == profile && at_ms < trail.began_ms => {
                    stood.insert(node, key);
                }
                _ => {}
            }
        }
        let mut files = BTreeMap::new();
        for (node, key) in stood {
            let stage = node.split('/').next().unwrap_or_default();
            let Some(done) = made.get(&key).filter(|_| COMPARED.contains(&stage)) else { continue };
            for stored in &done.outputs {
                for item in &stored.files {
                    let object = store.objects.path(item);
                    if !object.is_file() {
                        let message =
                            format!("`{label}`: what `{node}` made then is no longer in the store; `repro gc` freed it");
                        return Err(CliError::Wrong(message));
                    }
                    files.insert(place(&node, stored, item), object);
                }
            }
        }
        Side { label: label.to_string(), files }.or_nothing("in the store from that time")
    }

    fn or_nothing(self, whence: &str) -> Result<Side, CliError> {
        if self.files.is_empty() {
            let message = format!("`{}` has nothing to compare: no verdicts, tidy tables or figures {whence}", self.label);
            return Err(CliError::Wrong(message));
        }
        Ok(self)
    }
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{count} runs") }
}

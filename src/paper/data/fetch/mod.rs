//! Fetches files over HTTP(S) and from the dataset hub: in parallel, resumably, checked by size and digest.
//! Whether anything needs fetching at all belongs to the pipeline.

mod address;
mod download;
mod http;
mod hub;

pub use http::Network;

use super::{Error, OnProgress, Progress, Unit};
use address::Address;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

/// The fetch step; also the form of `data/manifest.yaml`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// What to fetch.
    pub files: Vec<Entry>,
    /// Stop after so many files; 0 fetches all. Files come in the order of their names.
    pub max_files: usize,
    /// Stop before the file that would exceed so many bytes, as far as sizes are known; 0 fetches all.
    pub max_bytes: u64,
}

/// A file, or several behind one reference to the hub.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Entry {
    /// `https://...`, or `hf://datasets/OWNER/NAME[@REVISION]/PATH`, where the path may have `*` in it.
    pub url: String,
    /// Bytes, if known. Not for a reference with `*`: the hub's listing gives them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<u64>,
    /// SHA-256 in hexadecimal, if known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<String>,
}

/// A file to fetch: where it lies, what it is called here, what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Wanted {
    /// As the user or the listing wrote it, for messages and the manifest.
    told: String,
    url: String,
    name: String,
    size: Option<u64>,
    sha256: Option<String>,
    /// Whether the hub's token may go with the request.
    from_hub: bool,
}

/// What the fetch step wrote.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    pub bytes: u64,
    pub files: Vec<Fetched>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fetched {
    pub url: String,
    pub name: String,
    pub size: u64,
    pub sha256: String,
}

/// The name of the list of what was fetched, in the form of a config: copy it into the project to pin sizes and digests.
pub const MANIFEST: &str = "manifest.yaml";

impl Config {
    pub fn check(&self) -> Result<(), Error> {
        if self.files.is_empty() {
            return Err(Error::OutOfRange { field: "files", value: "empty".into(), must: "a list of at least one `url`" });
        }
        for entry in &self.files {
            let address = Address::parse(&entry.url)?;
            if address.is_pattern() && (entry.size.is_some() || entry.sha256.is_some()) {
                return Err(Error::BadAddress {
                    address: entry.url.clone(),
                    what:
                        "one `size` or `sha256` cannot hold for every file that matches; leave it out, the hub's listing has them"
                            .into(),
                });
            }
            if let Some(digest) = &entry.sha256
                && (digest.len() != 64 || !digest.bytes().all(|byte| byte.is_ascii_hexdigit()))
            {
                return Err(Error::OutOfRange { field: "sha256", value: format!("`{digest}`"), must: "64 hexadecimal digits" });
            }
        }
        Ok(())
    }
}

/// Fetches everything into `out`, and writes `manifest.yaml` there with the size and digest of each file.
pub fn run(config: &Config, network: &Network, out: &Path, progress: OnProgress<'_>) -> Result<Summary, Error> {
    config.check()?;
    std::fs::create_dir_all(out).map_err(Error::io("create", out))?;
    let wanted = resolve(config, network)?;
    let total = wanted.iter().map(|file| file.size).sum::<Option<u64>>();
    let (done, next, stopped) = (AtomicU64::new(0), AtomicU64::new(0), AtomicBool::new(false));
    let results: Mutex<Vec<(usize, Result<Fetched, Error>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..network.parallel.clamp(1, wanted.len()))
            .map(|_| {
                scope.spawn(|| {
                    loop {
                        let at = next.fetch_add(1, Ordering::Relaxed) as usize;
                        if at >= wanted.len() || stopped.load(Ordering::Relaxed) {
                            return;
                        }
                        let result = download::download(&wanted[at], network, out, &done);
                        // One file for good out of reach ends the step; what is there already is kept for the next try.
                        stopped.fetch_or(result.is_err(), Ordering::Relaxed);
                        results.lock().unwrap_or_else(std::sync::PoisonError::into_inner).push((at, result));
                    }
                })
            })
            .collect();
        while !workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
            progress(Progress { what: "fetching", done: done.load(Ordering::Relaxed), total, unit: Unit::Bytes });
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    let mut results = results.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
    results.sort_by_key(|(at, _)| *at);
    let files = results.into_iter().map(|(_, result)| result).collect::<Result<Vec<_>, _>>()?;
    if files.len() != wanted.len() {
        return Err(Error::WorkerDied { step: "fetch" });
    }
    let summary = Summary { bytes: files.iter().map(|file| file.size).sum(), files };
    write_manifest(&summary, out)?;
    Ok(summary)
}

/// Turns addresses into files, asking the hub where needed.
fn resolve(config: &Config, network: &Network) -> Result<Vec<Wanted>, Error> {
    let mut wanted = Vec::new();
    for entry in &config.files {
        match Address::parse(&entry.url)? {
            Address::Http { name } => wanted.push(Wanted {
                told: entry.url.clone(),
                url: entry.url.clone(),
                name,
                size: entry.size,
                sha256: entry.sha256.clone(),
                from_hub: false,
            }),
            Address::Hub(dataset) => wanted.extend(hub::list(&dataset, entry, network)?),
        }
    }
    if config.max_files > 0 {
        wanted.truncate(config.max_files);
    }
    if config.max_bytes > 0 {
        let mut sum = 0;
        let keep = wanted.iter().take_while(|file| {
            sum += file.size.unwrap_or(0);
            sum <= config.max_bytes
        });
        let keep = keep.count();
        if keep == 0 {
            return Err(Error::OutOfRange {
                field: "max_bytes",
                value: config.max_bytes.to_string(),
                must: "at least the size of the first file",
            });
        }
        wanted.truncate(keep);
    }
    let mut names = BTreeSet::new();
    for file in &wanted {
        if file.name == MANIFEST || !names.insert(&file.name) {
            let what = format!("a second file would be called `{}`; fetch it in a step of its own", file.name);
            return Err(Error::BadAddress { address: file.told.clone(), what });
        }
    }
    Ok(wanted)
}

fn write_manifest(summary: &Summary, out: &Path) -> Result<(), Error> {
    let files = summary
        .files
        .iter()
        .map(|file| Entry { url: file.url.clone(), size: Some(file.size), sha256: Some(file.sha256.clone()) })
        .collect();
    let text = serde_yaml::to_string(&Config { files, ..Config::default() }).expect("a manifest is plain data");
    let path = out.join(MANIFEST);
    std::fs::write(&path, text).map_err(Error::io("write", &path))
}

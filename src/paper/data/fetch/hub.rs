//! Asks the dataset hub which files a reference stands for, and what is known of them.

use super::address::{Dataset, is_plain};
use super::http::{Client, Network};
use super::{Entry, Wanted};
use crate::paper::data::Error;
use serde::Deserialize;

/// A line of the hub's listing.
#[derive(Deserialize)]
struct Listed {
    #[serde(rename = "type")]
    kind: String,
    path: String,
    #[serde(default)]
    size: u64,
    /// Large files carry their digest here.
    lfs: Option<Large>,
}

#[derive(Deserialize)]
struct Large {
    /// SHA-256.
    oid: String,
    size: u64,
}

/// The files of a reference, by name.
pub fn list(dataset: &Dataset, entry: &Entry, network: &Network) -> Result<Vec<Wanted>, Error> {
    let bad = |what: String| Error::BadAddress { address: entry.url.clone(), what };
    let pattern = globset::GlobBuilder::new(&dataset.path)
        .literal_separator(true)
        .build()
        .map_err(|error| bad(format!("its pattern cannot be read: {}", error.kind())))?
        .compile_matcher();
    // The part of the path before any pattern is a folder to list.
    let plain = dataset.path.find(['*', '?', '[', '{']).unwrap_or(dataset.path.len());
    let folder = dataset.path[..plain].rsplit_once('/').map_or("", |(folder, _)| folder);
    let (hub, repository, revision) = (&network.hub, &dataset.repository, &dataset.revision);
    let slash = if folder.is_empty() { "" } else { "/" };
    let mut page = Some(format!("{hub}/api/datasets/{repository}/tree/{revision}{slash}{folder}?recursive=true"));
    let client = Client::new(network);
    let (mut wanted, mut seen) = (Vec::new(), 0);
    while let Some(url) = page {
        let (text, next) = client.text(&url, true)?;
        let listed: Vec<Listed> =
            serde_json::from_str(&text).map_err(|error| bad(format!("the hub's listing cannot be read: {error}")))?;
        for file in listed.into_iter().filter(|file| file.kind == "file") {
            seen += 1;
            if !pattern.is_match(&file.path) {
                continue;
            }
            let name = file.path.rsplit('/').next().unwrap_or_default().to_owned();
            if !is_plain(&name) {
                return Err(bad(format!("the hub lists a file called `{name}`")));
            }
            let large = file.lfs.as_ref();
            wanted.push(Wanted {
                told: format!("hf://datasets/{repository}@{revision}/{}", file.path),
                url: format!("{hub}/datasets/{repository}/resolve/{revision}/{}", file.path),
                name,
                size: entry.size.or(Some(large.map_or(file.size, |large| large.size))),
                sha256: entry.sha256.clone().or(large.map(|large| large.oid.clone())),
                from_hub: true,
            });
        }
        page = next;
    }
    if wanted.is_empty() {
        return Err(bad(format!("none of the {seen} files the hub lists there matches")));
    }
    wanted.sort_by(|a, b| a.told.cmp(&b.told));
    Ok(wanted)
}

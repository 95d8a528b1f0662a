//! Writes the corpus: educational documents about an invented world, or a user's own texts, in FineWeb-Edu's columns.
//! Learning anything from them belongs to the steps downstream.

mod documents;
mod folder;
mod names;
mod pen;
mod relations;
mod schema;
mod words;
mod world;

use super::rows::Rejects;
use super::{Error, OnProgress, Progress, Unit};
use rayon::prelude::*;
use schema::{Record, Writer};
use serde::{Deserialize, Serialize};
use std::path::Path;
use world::World;

/// Where the texts come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// The built-in generator: an invented world, needs no network.
    #[default]
    World,
    /// A folder of .txt, .jsonl or .parquet files, given as the step's input.
    Folder,
}

/// The corpus step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `world` writes documents about an invented world; `folder` takes the user's own.
    pub from: From,
    /// Seed of the world and of every document in it. Not used for a folder.
    pub seed: u64,
    /// Bytes of text to write; generation stops at the first document that reaches it. For a folder, where to stop; 0 takes all.
    pub bytes: u64,
    /// Size of the world: how many people it has. Towns, books, animals and the rest stand in proportion.
    pub people: usize,
    /// Bytes of text per Parquet file.
    pub file_bytes: u64,
    /// For a folder: the column or field that holds the text.
    pub text_column: String,
}

impl Default for Config {
    fn default() -> Self {
        Self { from: From::World, seed: 0, bytes: 32_000_000, people: 2000, file_bytes: 16_000_000, text_column: "text".into() }
    }
}

/// What the corpus step reads.
#[derive(Clone, Copy, Debug, Default)]
pub struct Inputs<'a> {
    /// The user's texts, when `from` is `folder`.
    pub folder: Option<&'a Path>,
}

/// What the corpus step wrote.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    pub files: usize,
    pub documents: u64,
    pub bytes: u64,
    pub rejects: Rejects,
}

impl Config {
    pub fn check(&self) -> Result<(), Error> {
        let out = |field, value: u64, must| Err(Error::OutOfRange { field, value: value.to_string(), must });
        if self.from == From::World && self.bytes == 0 {
            return out("bytes", self.bytes, "at least 1 when `from` is `world`");
        }
        if !(20..=1_000_000).contains(&self.people) {
            return out("people", self.people as u64, "between 20 and 1000000");
        }
        if self.file_bytes == 0 {
            return out("file_bytes", self.file_bytes, "at least 1");
        }
        Ok(())
    }
}

/// Documents made at a time: enough to keep every core busy, few enough to hold.
const CHUNK: u64 = 2048;

/// Writes `00000.parquet` and so on into `out`.
pub fn run(config: &Config, inputs: Inputs<'_>, out: &Path, progress: OnProgress<'_>) -> Result<Summary, Error> {
    config.check()?;
    let mut writer = Writer::new(out, config.file_bytes)?;
    let mut summary = match (config.from, inputs.folder) {
        (From::World, _) => write_world(config, &mut writer, progress)?,
        (From::Folder, Some(folder)) => folder::write(config, folder, &mut writer, progress)?,
        (From::Folder, None) => {
            return Err(Error::Missing {
                field: "folder",
                because: "from: folder",
                instead: "name the folder of texts as the step's input",
            });
        }
    };
    summary.files = writer.finish()?.len();
    if summary.documents == 0 {
        return Err(Error::NothingLeft { documents: summary.rejects.total(), why: summary.rejects.told() });
    }
    Ok(summary)
}

fn write_world(config: &Config, writer: &mut Writer, progress: OnProgress<'_>) -> Result<Summary, Error> {
    let world = World::new(config.seed, config.people);
    let mut summary = Summary::default();
    let mut first = 0;
    loop {
        let chunk: Vec<Record> =
            (first..first + CHUNK).into_par_iter().map(|number| record(&world, config.seed, number)).collect();
        for record in chunk {
            summary.documents += 1;
            summary.bytes += record.text.len() as u64;
            writer.write(record)?;
            if summary.bytes >= config.bytes {
                return Ok(summary);
            }
        }
        first += CHUNK;
        progress(Progress { what: "writing documents", done: summary.bytes, total: Some(config.bytes), unit: Unit::Bytes });
    }
}

fn record(world: &World, seed: u64, number: u64) -> Record {
    let document = documents::write(world, seed, number);
    let hash = blake3::hash(format!("repro world {seed} document {number}").as_bytes());
    // Spread as FineWeb-Edu's are, where 3 is the lowest score that is kept.
    let spread = f64::from(hash.as_bytes()[20]) / 256.0;
    Record {
        token_count: schema::count_words(&document.text),
        id: schema::urn(&hash),
        dump: format!("WORLD-{seed}"),
        url: format!("https://world.invalid/{}/{number}", document.genre),
        file_path: format!("world/{seed}/{}", document.genre),
        language_score: 0.95 + 0.05 * spread,
        score: 3.0 + 1.4 * spread,
        text: document.text,
    }
}

/// Samples for people to read and for measurements: the text of document `number`, without writing a file.
pub fn sample(config: &Config, numbers: std::ops::Range<u64>) -> Vec<String> {
    let world = World::new(config.seed, config.people);
    numbers.into_par_iter().map(|number| documents::write(&world, config.seed, number).text).collect()
}

#[cfg(test)]
mod tests {
    #[test]
    #[ignore = "prints samples"]
    fn print_samples() {
        for text in super::sample(&super::Config::default(), 0..40) {
            println!("{text}\n--------");
        }
    }
}

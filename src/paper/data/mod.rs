//! From text to batches: fetch or write a corpus, learn or load a tokenizer, cut token shards, feed them to training.
//!
//! | step | reads | writes |
//! |---|---|---|
//! | `fetch` | HTTP, the dataset hub | the files as they are |
//! | `corpus` | nothing, or a folder of texts | Parquet in FineWeb-Edu's columns |
//! | `tokenizer` | the corpus, or a user's file | `tokenizer.json`, `tokenizer-facts.json` |
//! | `tokenize` | corpus and tokenizer | `train/` and `heldout/` token shards |
//! | `loader` | token shards | batches, in memory |
//!
//! Every step is a config, its `check`, and a `run` that depends on nothing but config and inputs: not on the number of
//! threads, not on the clock, not on paths. Deciding whether a step must run at all belongs to the pipeline.

mod at_file;
pub mod corpus;
pub mod error;
pub mod fetch;
pub mod loader;
pub mod look;
pub mod measure;
pub mod random;
pub mod rows;
pub mod shards;
pub mod tokenize;
pub mod tokenizer;

pub use error::Error;

/// How far a step has come. `total` is missing where it cannot be known beforehand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    pub what: &'static str,
    pub done: u64,
    pub total: Option<u64>,
    pub unit: Unit,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Bytes,
    Documents,
    Tokens,
}

/// Receives progress; called from the thread that called `run`.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress);

//! Learns a byte-level BPE from a corpus, or takes over a user's tokenizer. Turning documents into ids belongs to `encoder` and `tokenize`.

pub mod encoder;
mod tiktoken;
mod train;

use super::{Error, OnProgress};
use serde::{Deserialize, Serialize};
use std::path::Path;
use tokenizers::Tokenizer;

/// Where the tokenizer comes from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum From {
    /// Learn one from the corpus.
    #[default]
    Train,
    /// A user's `tokenizer.json` or tiktoken `.model`, given as the step's input.
    File,
}

/// The tokenizer step.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// `train` learns one from the corpus; `file` takes over the user's.
    pub from: From,
    /// Size of the vocabulary to learn, the begin-of-text token included. Not used for a file.
    pub vocabulary: usize,
    /// Bytes of the corpus to learn from, taken evenly over its documents and held in memory; 0 takes all.
    pub train_bytes: u64,
    /// The token put before every document. Empty: look for the usual names in a file's special tokens.
    pub bos: String,
    /// For a tiktoken file, which lists no special tokens: how many ids after the ranks are special, begin and end of text first.
    pub tiktoken_specials: usize,
}

/// The token that begins every document, unless the user's file has another.
pub const BOS: &str = "<|begin_of_text|>";
const USUAL_BOS: &[&str] = &[BOS, "<s>", "<bos>", "<|endoftext|>", "<|end_of_text|>"];
/// 256 bytes and the begin-of-text token.
const SMALLEST: usize = 257;

impl Default for Config {
    fn default() -> Self {
        Self { from: From::Train, vocabulary: 4096, train_bytes: 32_000_000, bos: String::new(), tiktoken_specials: 256 }
    }
}

/// What the tokenizer step reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// The corpus to learn from, when `from` is `train`: Parquet with a `text` column.
    pub corpus: Option<&'a Path>,
    /// The user's file, when `from` is `file`.
    pub file: Option<&'a Path>,
}

/// The file names of the step's output.
pub const JSON: &str = "tokenizer.json";
pub const FACTS: &str = "tokenizer-facts.json";

/// What the rest of the pipeline needs to know of a tokenizer; kept beside it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Facts {
    /// One more than the largest id.
    pub vocabulary: usize,
    pub bos: String,
    pub bos_id: u32,
    /// blake3 of `tokenizer.json`.
    pub digest: String,
}

pub type Summary = Facts;

impl Config {
    pub fn check(&self) -> Result<(), Error> {
        if self.from == From::Train && self.vocabulary < SMALLEST {
            return Err(Error::OutOfRange {
                field: "vocabulary",
                value: self.vocabulary.to_string(),
                must: "at least 257: every byte and the begin-of-text token",
            });
        }
        if self.tiktoken_specials < 2 {
            return Err(Error::OutOfRange {
                field: "tiktoken_specials",
                value: self.tiktoken_specials.to_string(),
                must: "at least 2: begin and end of text",
            });
        }
        Ok(())
    }
}

/// Writes `tokenizer.json` and `tokenizer-facts.json` into `out`.
pub fn run(config: &Config, inputs: Inputs<'_>, out: &Path, progress: OnProgress<'_>) -> Result<Summary, Error> {
    config.check()?;
    std::fs::create_dir_all(out).map_err(Error::io("create", out))?;
    let (json, origin) = match config.from {
        From::Train => {
            let corpus = inputs.corpus.ok_or(Error::Missing {
                field: "corpus",
                because: "from: train",
                instead: "name the corpus as the step's input",
            })?;
            (train::train(config, corpus, progress)?.into_bytes(), corpus)
        }
        From::File => {
            let file = inputs.file.ok_or(Error::Missing {
                field: "file",
                because: "from: file",
                instead: "name a tokenizer.json or a tiktoken .model as the step's input",
            })?;
            let bytes = std::fs::read(file).map_err(Error::io("read", file))?;
            let json = if bytes.first() == Some(&b'{') {
                bytes
            } else {
                tiktoken::to_json(&bytes, config.tiktoken_specials)
                    .map_err(|what| Error::BadTokenizer { path: file.to_owned(), what })?
            };
            (json, file)
        }
    };
    let bad = |what: String| Error::BadTokenizer { path: origin.to_owned(), what };
    let tokenizer = Tokenizer::from_bytes(&json).map_err(|error| bad(format!("not a tokenizer.json: {error}")))?;
    let facts = facts(&tokenizer, &json, &config.bos).map_err(bad)?;
    let path = out.join(JSON);
    std::fs::write(&path, &json).map_err(Error::io("write", &path))?;
    let path = out.join(FACTS);
    let text = serde_json::to_string_pretty(&facts).expect("facts are plain data") + "\n";
    std::fs::write(&path, text).map_err(Error::io("write", &path))?;
    Ok(facts)
}

fn facts(tokenizer: &Tokenizer, json: &[u8], bos: &str) -> Result<Facts, String> {
    let mut special: Vec<(u32, String)> = tokenizer
        .get_added_tokens_decoder()
        .into_iter()
        .filter(|(_, token)| token.special)
        .map(|(id, token)| (id, token.content))
        .collect();
    special.sort();
    let wanted: Vec<&str> = if bos.is_empty() { USUAL_BOS.to_vec() } else { vec![bos] };
    let found = wanted.iter().find_map(|name| special.iter().find(|(_, token)| token == name));
    let Some((bos_id, bos)) = found else {
        let some: Vec<String> = special.iter().take(8).map(|(_, token)| format!("`{token}`")).collect();
        let some = if some.is_empty() { "none".to_owned() } else { some.join(", ") };
        return Err(format!("no begin-of-text token; set `bos` to one of its special tokens, which begin with {some}"));
    };
    let largest = tokenizer.get_vocab(true).into_values().max().unwrap_or(0);
    Ok(Facts {
        vocabulary: largest as usize + 1,
        bos: bos.clone(),
        bos_id: *bos_id,
        digest: blake3::hash(json).to_hex().to_string(),
    })
}

//! Learns a byte-level BPE with the `tokenizers` crate, so that the same corpus always gives the same file.

use super::{BOS, Config};
use crate::paper::data::rows::{Columns, Rows, parquet_files};
use crate::paper::data::{Error, OnProgress, Progress, Unit};
use std::path::Path;
use tokenizers::decoders::byte_level::ByteLevel as ByteLevelDecoder;
use tokenizers::models::TrainerWrapper;
use tokenizers::models::bpe::{BPE, BpeTrainer};
use tokenizers::pre_tokenizers::PreTokenizerWrapper;
use tokenizers::pre_tokenizers::byte_level::ByteLevel;
use tokenizers::pre_tokenizers::sequence::Sequence;
use tokenizers::pre_tokenizers::split::{Split, SplitPattern};
use tokenizers::{AddedToken, SplitDelimiterBehavior, Tokenizer};

/// Llama-3's rule for cutting text into words: contractions, words with the space before them, up to three digits, marks, white space.
pub const WORDS: &str =
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+";

/// The text of a `tokenizer.json` learned from the Parquet files of `corpus`.
pub fn train(config: &Config, corpus: &Path, progress: OnProgress<'_>) -> Result<String, Error> {
    let texts = sample(config, corpus, progress)?;
    let bad = |error: tokenizers::Error| Error::BadTokenizer {
        path: corpus.to_owned(),
        what: format!("cannot learn a tokenizer: {error}"),
    };
    let mut tokenizer = Tokenizer::new(BPE::default());
    let words = Split::new(SplitPattern::Regex(WORDS.into()), SplitDelimiterBehavior::Isolated, false).map_err(bad)?;
    let bytes = ByteLevel::new(false, true, false);
    let steps = vec![PreTokenizerWrapper::Split(words), PreTokenizerWrapper::ByteLevel(bytes)];
    tokenizer.with_pre_tokenizer(Some(Sequence::new(steps)));
    tokenizer.with_decoder(Some(ByteLevelDecoder::new(false, true, true)));
    let mut trainer: TrainerWrapper = BpeTrainer::builder()
        .vocab_size(config.vocabulary)
        .min_frequency(2)
        .show_progress(false)
        .special_tokens(vec![AddedToken::from(BOS, true)])
        .initial_alphabet(ByteLevel::alphabet().into_iter().collect())
        .build()
        .into();
    tokenizer.train(&mut trainer, texts.iter().map(String::as_str)).map_err(bad)?;
    tokenizer.to_string(false).map_err(bad)
}

/// Documents spread evenly over the corpus, about `train_bytes` of them.
fn sample(config: &Config, corpus: &Path, progress: OnProgress<'_>) -> Result<Vec<String>, Error> {
    let files = parquet_files(corpus)?;
    let columns = Columns { text: "text".into(), id: None };
    let mut total = 0;
    if config.train_bytes > 0 {
        for file in &files {
            let mut rows = Rows::open(file, &columns)?;
            while let Some(batch) = rows.next(1 << 20)? {
                total += batch.bytes as u64;
            }
        }
    }
    let (mut seen, mut taken) = (0, 0);
    let mut texts = Vec::new();
    for file in &files {
        let mut rows = Rows::open(file, &columns)?;
        while let Some(batch) = rows.next(1 << 20)? {
            for row in batch.rows {
                seen += row.text().len() as u64;
                // Keep to the line from nothing taken at the start to `train_bytes` taken at the end.
                let due = if total > config.train_bytes {
                    (u128::from(seen) * u128::from(config.train_bytes) / u128::from(total)) as u64
                } else {
                    u64::MAX
                };
                if taken < due {
                    taken += row.text().len() as u64;
                    texts.push(row.text().to_owned());
                }
            }
            progress(Progress { what: "reading the corpus", done: seen, total: (total > 0).then_some(total), unit: Unit::Bytes });
        }
    }
    Ok(texts)
}

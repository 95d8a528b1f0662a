//! Looks at documents and shards: the first few of them, and what they are made of. Printing belongs to the command line.

use super::measure::{Entropy, Histogram, Repeats, Vocabulary, Words, entropies};
use super::rows::{Columns, Rejects, Rows, parquet_files};
use super::shards::Shard;
use super::tokenizer::encoder::Encoder;
use super::{Error, OnProgress, Progress, Unit};
use serde::Serialize;
use std::io::Write;
use std::path::{Path, PathBuf};

/// A document as it is shown.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Shown {
    pub file: PathBuf,
    pub id: String,
    /// The text, or the tokens decoded back; empty for shards when no tokenizer is given.
    pub text: String,
    /// The ids of a shard's document.
    pub ids: Vec<u32>,
}

/// What a corpus or a set of shards is made of.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Stats {
    Text(TextStats),
    Tokens(TokenStats),
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TextStats {
    pub files: usize,
    pub documents: u64,
    pub bytes: u64,
    pub rejects: Rejects,
    /// Documents by bytes, in powers of two: the least length of each bin and its count.
    pub lengths: Vec<(u64, u64)>,
    pub words: Words,
    /// Bytes of text per byte of zstd level 3.
    pub zstd_ratio: f64,
    pub repeated_documents: f64,
    pub repeated_sentences: f64,
    /// Bits per byte after 0, 1, 2 ... bytes of context, on documents not counted.
    pub byte_entropies: Vec<Entropy>,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TokenStats {
    pub files: usize,
    pub documents: u64,
    pub tokens: u64,
    pub vocabulary: usize,
    /// Ids that occur at all, and at least 100 times.
    pub used: usize,
    pub used_100: usize,
    /// Documents by tokens, in powers of two.
    pub lengths: Vec<(u64, u64)>,
    /// The commonest ids with their counts, decoded if a tokenizer is given.
    pub commonest: Vec<(u32, String, u64)>,
    /// Bits per token after 0, 1, 2 tokens of context, on documents not counted.
    pub token_entropies: Vec<Entropy>,
}

/// Symbols the n-gram models count, and as many as a tenth of it to score on.
const COUNTED: usize = 8_000_000;

/// The files to look at, and whether they are token shards.
fn kind(path: &Path) -> Result<(Vec<PathBuf>, bool), Error> {
    let files = parquet_files(path)?;
    let names = Rows::column_names(&files[0])?;
    let shards = names.iter().any(|name| name == "input_ids");
    Ok((files, shards))
}

/// The first `count` documents after `skip`.
pub fn head(path: &Path, count: usize, skip: usize, text_column: &str, encoder: Option<&Encoder>) -> Result<Vec<Shown>, Error> {
    let (files, shards) = kind(path)?;
    let mut shown = Vec::new();
    let mut left = skip;
    let mut show = |file: &Path, id: String, ids: &[u32], text: &str| -> Result<bool, Error> {
        if left > 0 {
            left -= 1;
            return Ok(false);
        }
        let text = match encoder {
            Some(encoder) if shards => encoder.decode(ids)?,
            _ => text.to_owned(),
        };
        shown.push(Shown { file: file.to_owned(), id, text, ids: ids.to_vec() });
        Ok(shown.len() >= count)
    };
    'files: for file in &files {
        if shards {
            let shard = Shard::open(file)?;
            check_tokenizer(&shard, encoder)?;
            for group in 0..shard.facts.row_groups.len() {
                let (ids, counts) = shard.read(group)?;
                let mut start = 0;
                for (id, tokens) in shard.read_doc_ids(group)?.into_iter().zip(counts) {
                    let end = start + tokens as usize;
                    if count == 0 || show(file, id, &ids[start..end], "")? {
                        break 'files;
                    }
                    start = end;
                }
            }
        } else {
            let columns = columns_of(file, text_column)?;
            let mut rows = Rows::open(file, &columns)?;
            while let Some(batch) = rows.next(1 << 16)? {
                for row in &batch.rows {
                    if count == 0 || show(file, row.id.clone().unwrap_or_default(), &[], row.text())? {
                        break 'files;
                    }
                }
            }
        }
    }
    Ok(shown)
}

fn columns_of(file: &Path, text: &str) -> Result<Columns, Error> {
    let has_id = Rows::column_names(file)?.iter().any(|name| name == "id");
    Ok(Columns { text: text.to_owned(), id: has_id.then(|| "id".to_owned()) })
}

fn check_tokenizer(shard: &Shard, encoder: Option<&Encoder>) -> Result<(), Error> {
    match encoder {
        Some(encoder) if encoder.facts().digest != shard.facts.tokenizer => {
            Err(Error::BadShard { path: shard.path.clone(), what: "its ids are of another tokenizer than the one given".into() })
        }
        _ => Ok(()),
    }
}

/// Measures up to `most` bytes of text or tokens; 0 measures all.
pub fn stats(
    path: &Path,
    text_column: &str,
    most: u64,
    encoder: Option<&Encoder>,
    progress: OnProgress<'_>,
) -> Result<Stats, Error> {
    let most = if most == 0 { u64::MAX } else { most };
    let (files, shards) = kind(path)?;
    if shards {
        token_stats(&files, most, encoder, progress).map(Stats::Tokens)
    } else {
        text_stats(&files, text_column, most, progress).map(Stats::Text)
    }
}

/// Counts bytes and keeps none.
#[derive(Default)]
struct Scale {
    bytes: u64,
}

impl Write for Scale {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.bytes += bytes.len() as u64;
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Gathers symbols for the n-gram models: every tenth document is scored, the others are counted.
#[derive(Default)]
struct Halves {
    train: Vec<u32>,
    test: Vec<u32>,
    documents: u64,
}

impl Halves {
    fn add(&mut self, symbols: impl Iterator<Item = u32>) {
        let (into, most) =
            if self.documents.is_multiple_of(10) { (&mut self.test, COUNTED / 10) } else { (&mut self.train, COUNTED) };
        self.documents += 1;
        if into.len() < most {
            into.extend(symbols);
        }
    }
}

fn text_stats(files: &[PathBuf], text_column: &str, most: u64, progress: OnProgress<'_>) -> Result<TextStats, Error> {
    let (mut documents, mut bytes, mut rejects) = (0, 0, Rejects::default());
    let (mut lengths, mut words, mut repeats, mut halves) =
        (Histogram::default(), Vocabulary::default(), Repeats::default(), Halves::default());
    let packing = |error| Error::Io { doing: "compress", path: files[0].clone(), source: error };
    let mut packer = zstd::Encoder::new(Scale::default(), 3).map_err(packing)?;
    'files: for file in files {
        let mut rows = Rows::open(file, &columns_of(file, text_column)?)?;
        while let Some(batch) = rows.next(1 << 20)? {
            rejects.merge(batch.rejects);
            for row in &batch.rows {
                let text = row.text();
                documents += 1;
                bytes += text.len() as u64;
                lengths.add(text.len() as u64);
                words.add(text);
                repeats.add(text);
                halves.add(text.bytes().map(u32::from));
                packer.write_all(text.as_bytes()).map_err(packing)?;
            }
            if bytes >= most {
                break 'files;
            }
            progress(Progress { what: "reading", done: bytes, total: None, unit: Unit::Bytes });
        }
    }
    let packed = packer.finish().map_err(packing)?.bytes;
    let (repeated_documents, repeated_sentences) = repeats.finish();
    Ok(TextStats {
        files: files.len(),
        documents,
        bytes,
        rejects,
        lengths: lengths.finish(),
        words: words.finish(),
        zstd_ratio: bytes as f64 / packed.max(1) as f64,
        repeated_documents,
        repeated_sentences,
        byte_entropies: entropies(&halves.train, &halves.test, 256, 6),
    })
}

fn token_stats(files: &[PathBuf], most: u64, encoder: Option<&Encoder>, progress: OnProgress<'_>) -> Result<TokenStats, Error> {
    let (mut documents, mut tokens, mut vocabulary) = (0, 0, 0);
    let (mut lengths, mut halves) = (Histogram::default(), Halves::default());
    let mut counts: Vec<u64> = Vec::new();
    'files: for file in files {
        let shard = Shard::open(file)?;
        check_tokenizer(&shard, encoder)?;
        vocabulary = vocabulary.max(shard.facts.vocabulary);
        counts.resize(vocabulary, 0);
        for group in 0..shard.facts.row_groups.len() {
            let (ids, group_counts) = shard.read(group)?;
            for &id in &ids {
                match counts.get_mut(id as usize) {
                    Some(count) => *count += 1,
                    None => {
                        return Err(Error::BadShard {
                            path: file.clone(),
                            what: format!("id {id} is beyond its vocabulary of {vocabulary}"),
                        });
                    }
                }
            }
            let mut rest = ids.as_slice();
            for count in group_counts {
                let (document, left) = rest.split_at(count as usize);
                rest = left;
                lengths.add(u64::from(count));
                halves.add(document.iter().copied());
                documents += 1;
            }
            tokens += ids.len() as u64;
            if tokens >= most {
                break 'files;
            }
            progress(Progress { what: "reading", done: tokens, total: None, unit: Unit::Tokens });
        }
    }
    let mut ranked: Vec<(u32, u64)> = counts.iter().enumerate().map(|(id, &count)| (id as u32, count)).collect();
    ranked.sort_by_key(|&(id, count)| (std::cmp::Reverse(count), id));
    let token = |id| encoder.map_or_else(String::new, |encoder| encoder.token(id));
    Ok(TokenStats {
        files: files.len(),
        documents,
        tokens,
        vocabulary,
        used: counts.iter().filter(|&&count| count > 0).count(),
        used_100: counts.iter().filter(|&&count| count >= 100).count(),
        lengths: lengths.finish(),
        commonest: ranked.into_iter().take(10).map(|(id, count)| (id, token(id), count)).collect(),
        token_entropies: entropies(&halves.train, &halves.test, vocabulary.max(1), 3),
    })
}

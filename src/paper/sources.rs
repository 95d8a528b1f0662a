//! Small token sources for one run outside a pipeline: ids in text, Parquet or raw bytes, held in memory; and random ids for
//! diagnostics. Streaming a large corpus is the corpus's job.
// T sequence length

use super::batch::{Batch, Position, SourceError, TokenSource};
use super::config::{DataKind, RawData};
use super::random::Philox;
use arrow::array::{Array, AsArray};
use arrow::datatypes::{DataType, UInt32Type};
use parquet::arrow::ProjectionMask;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use std::fs;
use std::path::{Path, PathBuf};

fn failed(what: String, cause: impl std::error::Error + Send + Sync + 'static) -> SourceError {
    SourceError { what, cause: Some(Box::new(cause)) }
}

fn wrong(what: String) -> SourceError {
    SourceError { what, cause: None }
}

/// Opens what `data:` names. `vocabulary` and `period` (sequences per step) shape random data only.
pub fn open(data: &RawData, vocabulary: usize, period: usize, seed: u64) -> Result<Box<dyn TokenSource>, SourceError> {
    let path = data.path.as_deref().unwrap_or(Path::new(""));
    let tokens = match data.kind {
        DataKind::Random => {
            return Ok(Box::new(RandomSource { seed, vocabulary, period, position: Position::default() }));
        }
        DataKind::Text => read_text_ids(path)?,
        DataKind::Parquet => read_parquet_ids(path)?,
        DataKind::Bytes => read(path)?.into_iter().map(u32::from).collect(),
    };
    let [from, to] = data.part.unwrap_or([0.0, 1.0]).map(|part| (part * tokens.len() as f64).round() as usize);
    Ok(Box::new(MemorySource::new(tokens[from..to].to_vec(), Some(seed), path.display().to_string())))
}

/// The first `sequences` of `data:` in file order, a few at a time: what held-out loss is measured on.
pub fn held_out(
    data: &RawData,
    vocabulary: usize,
    sequences: usize,
    seq_len: usize,
    rows: usize,
    seed: u64,
) -> Result<Vec<Batch>, SourceError> {
    let mut source: Box<dyn TokenSource> = match data.kind {
        DataKind::Random => open(data, vocabulary, sequences, seed)?,
        _ => {
            let opened = open_in_order(data)?;
            let found = opened.sequences(seq_len);
            if found < sequences {
                return Err(wrong(format!(
                    "`{}` holds {found} sequences of {seq_len} tokens, and `eval.sequences` asks for {sequences}",
                    opened.name
                )));
            }
            Box::new(opened)
        }
    };
    let mut batches = Vec::new();
    let mut left = sequences;
    while left > 0 {
        let take = left.min(rows);
        batches.push(source.next_batch(take, seq_len)?);
        left -= take;
    }
    Ok(batches)
}

fn open_in_order(data: &RawData) -> Result<MemorySource, SourceError> {
    let path = data.path.as_deref().unwrap_or(Path::new(""));
    let tokens = match data.kind {
        DataKind::Text => read_text_ids(path)?,
        DataKind::Parquet => read_parquet_ids(path)?,
        DataKind::Bytes | DataKind::Random => read(path)?.into_iter().map(u32::from).collect(),
    };
    let [from, to] = data.part.unwrap_or([0.0, 1.0]).map(|part| (part * tokens.len() as f64).round() as usize);
    Ok(MemorySource::new(tokens[from..to].to_vec(), None, path.display().to_string()))
}

fn read(path: &Path) -> Result<Vec<u8>, SourceError> {
    fs::read(path).map_err(|e| failed(format!("cannot read `{}`", path.display()), e))
}

/// Token ids of a file: Parquet if it is a folder or ends in `.parquet`, else decimal numbers in text.
pub fn read_ids(path: &Path) -> Result<Vec<u32>, SourceError> {
    if path.is_dir() || path.extension().is_some_and(|e| e == "parquet") { read_parquet_ids(path) } else { read_text_ids(path) }
}

/// Decimal numbers separated by white space or commas.
pub fn read_text_ids(path: &Path) -> Result<Vec<u32>, SourceError> {
    let bytes = read(path)?;
    let text = String::from_utf8(bytes).map_err(|e| failed(format!("`{}` is not text", path.display()), e))?;
    let mut ids = Vec::new();
    for (line, content) in text.lines().enumerate() {
        for word in content.split(|c: char| c.is_whitespace() || c == ',').filter(|w| !w.is_empty()) {
            let id = word.parse().map_err(|_| {
                wrong(format!("{}:{}: `{word}` is not a token id; ids are whole numbers", path.display(), line + 1))
            })?;
            ids.push(id);
        }
    }
    Ok(ids)
}

/// All documents of a Parquet file, or of every `*.parquet` of a folder in order of their names.
pub fn read_parquet_ids(path: &Path) -> Result<Vec<u32>, SourceError> {
    let files = if path.is_dir() {
        let entries = fs::read_dir(path).map_err(|e| failed(format!("cannot list `{}`", path.display()), e))?;
        let mut files: Vec<PathBuf> =
            entries.filter_map(|e| Some(e.ok()?.path())).filter(|p| p.extension().is_some_and(|e| e == "parquet")).collect();
        files.sort();
        if files.is_empty() {
            return Err(wrong(format!("`{}` holds no `*.parquet` file", path.display())));
        }
        files
    } else {
        vec![path.to_owned()]
    };
    let mut ids = Vec::new();
    for file in files {
        read_parquet_file(&file, &mut ids)?;
    }
    Ok(ids)
}

fn read_parquet_file(path: &Path, ids: &mut Vec<u32>) -> Result<(), SourceError> {
    let name = path.display();
    let not_parquet = |e| failed(format!("cannot read `{name}` as Parquet"), e);
    let file = fs::File::open(path).map_err(|e| failed(format!("cannot open `{name}`"), e))?;
    let builder = ParquetRecordBatchReaderBuilder::try_new(file).map_err(not_parquet)?;
    let column = builder.schema().index_of("input_ids").map_err(|_| {
        let found: Vec<_> = builder.schema().fields().iter().map(|f| format!("`{}`", f.name())).collect();
        wrong(format!("`{name}` has no column `input_ids`; its columns are {}", found.join(", ")))
    })?;
    let mask = ProjectionMask::roots(builder.parquet_schema(), [column]);
    let reader = builder.with_projection(mask).build().map_err(not_parquet)?;
    for batch in reader {
        let batch = batch.map_err(|e| failed(format!("cannot decode `{name}`"), e))?;
        let lists = batch.column(0);
        let values = match lists.data_type() {
            DataType::List(_) => {
                let lists = lists.as_list::<i32>();
                lists.values().slice(lists.value_offsets()[0] as usize, sum_of_lengths(lists.value_offsets()))
            }
            DataType::LargeList(_) => {
                let lists = lists.as_list::<i64>();
                lists.values().slice(lists.value_offsets()[0] as usize, sum_of_lengths(lists.value_offsets()))
            }
            other => {
                return Err(wrong(format!("column `input_ids` of `{name}` is {other}, not a list of whole numbers")));
            }
        };
        let values = arrow::compute::cast(&values, &DataType::UInt32)
            .map_err(|e| failed(format!("column `input_ids` of `{name}` holds no whole numbers"), e))?;
        if values.null_count() > 0 {
            return Err(wrong(format!("column `input_ids` of `{name}` holds a value that is no token id")));
        }
        ids.extend_from_slice(values.as_primitive::<UInt32Type>().values());
    }
    Ok(())
}

fn sum_of_lengths<T: Copy + Into<i64>>(offsets: &[T]) -> usize {
    let (first, last) = (offsets[0].into(), offsets[offsets.len() - 1].into());
    (last - first) as usize
}

/// Tokens in memory, cut into sequences of T + 1 that overlap by one token; a new order every epoch, or file order.
pub struct MemorySource {
    tokens: Vec<u32>,
    /// Seed of the order; absent: file order.
    shuffle: Option<u64>,
    name: String,
    vocabulary: usize,
    position: Position,
    /// The order of an epoch: (epoch, sequences, order).
    order: Option<(u64, usize, Vec<u32>)>,
}

impl MemorySource {
    pub fn new(tokens: Vec<u32>, shuffle: Option<u64>, name: String) -> Self {
        let vocabulary = tokens.iter().max().map_or(0, |&max| max as usize + 1);
        Self { tokens, shuffle, name, vocabulary, position: Position::default(), order: None }
    }

    fn sequences(&self, seq_len: usize) -> usize {
        self.tokens.len().saturating_sub(1) / seq_len
    }
}

impl TokenSource for MemorySource {
    fn next_batch(&mut self, rows: usize, seq_len: usize) -> Result<Batch, SourceError> {
        let sequences = self.sequences(seq_len);
        if sequences == 0 {
            return Err(wrong(format!(
                "`{}` holds {} tokens, fewer than one sequence of {seq_len} and its next token",
                self.name,
                self.tokens.len()
            )));
        }
        let mut tokens = Vec::with_capacity(rows * (seq_len + 1));
        for _ in 0..rows {
            if self.position.sequence >= sequences as u64 {
                self.position = Position { epoch: self.position.epoch + 1, sequence: 0 };
            }
            let Position { epoch, sequence } = self.position;
            let index = match self.shuffle {
                None => sequence as usize,
                Some(seed) => {
                    if self.order.as_ref().is_none_or(|(e, n, _)| (*e, *n) != (epoch, sequences)) {
                        let order = Philox::new(seed, &format!("data.order.{epoch}")).permutation(sequences);
                        self.order = Some((epoch, sequences, order));
                    }
                    self.order.as_ref().map_or(0, |(_, _, order)| order[sequence as usize] as usize)
                }
            };
            tokens.extend_from_slice(&self.tokens[index * seq_len..][..seq_len + 1]);
            self.position.sequence += 1;
        }
        Ok(Batch { rows, seq_len, tokens })
    }

    fn position(&self) -> Position {
        self.position
    }

    fn seek(&mut self, position: Position) -> Result<(), SourceError> {
        self.position = position;
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}

/// Uniformly random ids; the same `period` sequences again every step.
pub struct RandomSource {
    pub seed: u64,
    pub vocabulary: usize,
    pub period: usize,
    pub position: Position,
}

impl TokenSource for RandomSource {
    fn next_batch(&mut self, rows: usize, seq_len: usize) -> Result<Batch, SourceError> {
        let random = Philox::new(self.seed, "data.random");
        let mut tokens = Vec::with_capacity(rows * (seq_len + 1));
        for _ in 0..rows {
            if self.position.sequence >= self.period as u64 {
                self.position = Position { epoch: self.position.epoch + 1, sequence: 0 };
            }
            let first = self.position.sequence << 32;
            tokens.extend((0..=seq_len as u64).map(|i| random.below(first | i, self.vocabulary as u64) as u32));
            self.position.sequence += 1;
        }
        Ok(Batch { rows, seq_len, tokens })
    }

    fn position(&self) -> Position {
        self.position
    }

    fn seek(&mut self, position: Position) -> Result<(), SourceError> {
        self.position = position;
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.vocabulary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> MemorySource {
        MemorySource::new((0..101).collect(), Some(5), "test".into())
    }

    #[test]
    fn an_epoch_shows_every_sequence_once_and_the_next_in_another_order() {
        let mut source = source();
        let mut epoch = || {
            let batch = source.next_batch(10, 10).expect("ten sequences");
            batch.tokens.chunks(11).map(|row| row[0]).collect::<Vec<_>>()
        };
        let (mut first, second) = (epoch(), epoch());
        assert_ne!(first, second);
        first.sort_unstable();
        assert_eq!(first, (0..10).map(|i| i * 10).collect::<Vec<_>>());
    }

    #[test]
    fn seeking_continues_with_the_very_next_sequence() {
        let mut straight = source();
        straight.next_batch(13, 10).expect("a batch");
        let mut resumed = source();
        resumed.seek(straight.position()).expect("a position");
        assert_eq!(straight.next_batch(4, 10).expect("a batch"), resumed.next_batch(4, 10).expect("a batch"));
    }

    #[test]
    fn random_data_repeats_every_period() {
        let mut source = RandomSource { seed: 1, vocabulary: 50, period: 3, position: Position::default() };
        let first = source.next_batch(3, 7).expect("a batch");
        assert_eq!(first, source.next_batch(3, 7).expect("a batch"));
        assert!(first.tokens.iter().all(|&t| t < 50));
        assert_ne!(first.tokens[..8], first.tokens[8..16]);
    }
}

//! The token shard: a Parquet file with a document per row. Says how it is laid out, and encodes and decodes its row groups.
//! Which document goes where belongs to `tokenize`; packing into sequences belongs to the loader. See docs/adr/0003.

use super::Error;
use super::at_file::{AtFile, open_parquet, sheltered};
use arrow::array::{ArrayRef, ListArray, StringArray, UInt32Array};
use arrow::buffer::{OffsetBuffer, ScalarBuffer};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowSchemaConverter;
use parquet::arrow::arrow_writer::{ArrowColumnChunk, ArrowRowGroupWriterFactory, compute_leaves};
use parquet::basic::{Compression, Encoding, ZstdLevel};
use parquet::column::page::Page;
use parquet::column::reader::ColumnReader;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::ColumnPath;
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The layout this code writes and reads.
const FORMAT: u32 = 1;
/// The key of the facts in the file's own metadata.
const KEY: &str = "repro.shard";
/// The leaves of the schema, in order.
const DOC_ID: usize = 0;
const N_TOKENS: usize = 1;
const INPUT_IDS: usize = 2;

/// Which part of the corpus a shard holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Split {
    Train,
    Heldout,
}

impl Split {
    /// The folder of this split inside the output of the tokenize step.
    pub fn folder(self) -> &'static str {
        match self {
            Self::Train => "train",
            Self::Heldout => "heldout",
        }
    }
}

/// What a shard says of itself.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardFacts {
    pub format: u32,
    pub split: Split,
    /// blake3 of the `tokenizer.json` the ids belong to.
    pub tokenizer: String,
    pub vocabulary: usize,
    /// Stands first in every document.
    pub bos_id: u32,
    pub documents: u64,
    pub tokens: u64,
    /// Documents and tokens of each row group.
    pub row_groups: Vec<(u64, u64)>,
    /// blake3 over the digests of the row groups' ids.
    pub digest: String,
}

/// Documents that will share a row group.
#[derive(Debug, Default)]
pub struct Group {
    pub doc_ids: Vec<String>,
    /// Where each document starts in `ids`, and the end of the last.
    pub offsets: Vec<i32>,
    pub ids: Vec<u32>,
}

impl Group {
    /// Room for a row group of so many tokens and the rest of its last document.
    pub fn with_room(tokens: usize) -> Self {
        Self { doc_ids: Vec::new(), offsets: Vec::new(), ids: Vec::with_capacity(tokens + tokens / 16) }
    }

    pub fn push(&mut self, doc_id: String, bos: u32, ids: &[u32]) {
        if self.offsets.is_empty() {
            self.offsets.push(0);
        }
        self.doc_ids.push(doc_id);
        self.ids.push(bos);
        self.ids.extend_from_slice(ids);
        self.offsets.push(i32::try_from(self.ids.len()).expect("row groups are closed long before 2^31 tokens"));
    }

    pub fn is_empty(&self) -> bool {
        self.doc_ids.is_empty()
    }
}

/// A row group ready to be appended to its file.
pub struct EncodedGroup {
    chunks: Vec<ArrowColumnChunk>,
    documents: u64,
    tokens: u64,
    digest: blake3::Hash,
}

/// Encodes row groups, on any thread.
#[derive(Clone)]
pub struct GroupEncoder {
    schema: Arc<Schema>,
    factory: Arc<ArrowRowGroupWriterFactory>,
    properties: Arc<WriterProperties>,
}

fn schema() -> Schema {
    let element = Field::new("element", DataType::UInt32, false);
    Schema::new(vec![
        Field::new("doc_id", DataType::Utf8, false),
        Field::new("n_tokens", DataType::UInt32, false),
        Field::new("input_ids", DataType::List(Arc::new(element)), false),
    ])
}

/// Byte-stream split puts the nearly constant high bytes of all ids together, which zstd then folds away; dictionaries and
/// statistics of ids cost time and help nobody.
fn properties() -> WriterProperties {
    let ids = ColumnPath::from(vec!["input_ids".to_owned(), "list".to_owned(), "element".to_owned()]);
    WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).expect("1 is a zstd level")))
        .set_dictionary_enabled(false)
        .set_statistics_enabled(EnabledStatistics::None)
        .set_offset_index_disabled(true)
        .set_data_page_size_limit(1 << 20)
        .set_data_page_row_count_limit(1 << 20)
        .set_write_batch_size(1 << 14)
        .set_column_encoding(ids, Encoding::BYTE_STREAM_SPLIT)
        .set_created_by("repro token shards".into())
        .build()
}

impl GroupEncoder {
    pub fn new() -> Result<Self, ParquetError> {
        let (schema, properties) = (Arc::new(schema()), Arc::new(properties()));
        let parquet_schema = ArrowSchemaConverter::new().convert(&schema)?;
        // The factory takes its settings from a file writer; this one writes nothing anywhere.
        let probe = SerializedFileWriter::new(std::io::sink(), parquet_schema.root_schema_ptr(), properties.clone())?;
        let factory = Arc::new(ArrowRowGroupWriterFactory::new(&probe, schema.clone()));
        Ok(Self { schema, factory, properties })
    }

    pub fn encode(&self, group: Group) -> Result<EncodedGroup, ParquetError> {
        let (documents, tokens) = (group.doc_ids.len() as u64, group.ids.len() as u64);
        let counts: Vec<u32> = group.offsets.windows(2).map(|pair| (pair[1] - pair[0]) as u32).collect();
        let ids = ScalarBuffer::from(group.ids);
        let digest = blake3::hash(ids.inner().as_slice());
        let DataType::List(element) = self.schema.field(INPUT_IDS).data_type() else { unreachable!("the schema says list") };
        let lists =
            ListArray::new(element.clone(), OffsetBuffer::new(group.offsets.into()), Arc::new(UInt32Array::new(ids, None)), None);
        let columns: [ArrayRef; 3] =
            [Arc::new(StringArray::from(group.doc_ids)), Arc::new(UInt32Array::from(counts)), Arc::new(lists)];
        let mut chunks = Vec::with_capacity(columns.len());
        for ((field, column), mut writer) in self.schema.fields().iter().zip(&columns).zip(self.factory.create_column_writers(0)?)
        {
            for leaf in compute_leaves(field, column)? {
                writer.write(&leaf)?;
            }
            chunks.push(writer.close()?);
        }
        Ok(EncodedGroup { chunks, documents, tokens, digest })
    }
}

/// A shard being written: row groups in order, then the facts.
pub struct ShardWriter {
    path: PathBuf,
    file: SerializedFileWriter<BufWriter<File>>,
    facts: ShardFacts,
    hasher: blake3::Hasher,
}

impl ShardWriter {
    /// `facts` names split, tokenizer, vocabulary and begin-of-text; the counts are filled in here.
    pub fn create(path: &Path, encoder: &GroupEncoder, facts: &ShardFacts) -> Result<Self, Error> {
        let file = File::create(path).map_err(Error::io("create", path))?;
        let fail = |source| Error::WriteParquet { path: path.to_owned(), source };
        let schema = ArrowSchemaConverter::new().convert(&encoder.schema).map_err(fail)?;
        let file = SerializedFileWriter::new(BufWriter::new(file), schema.root_schema_ptr(), encoder.properties.clone())
            .map_err(fail)?;
        Ok(Self { path: path.to_owned(), file, facts: facts.clone(), hasher: blake3::Hasher::new() })
    }

    pub fn append(&mut self, group: EncodedGroup) -> Result<(), Error> {
        let path = &self.path;
        let fail = |source| Error::WriteParquet { path: path.clone(), source };
        let mut row_group = self.file.next_row_group().map_err(fail)?;
        for chunk in group.chunks {
            chunk.append_to_row_group(&mut row_group).map_err(fail)?;
        }
        row_group.close().map_err(fail)?;
        self.facts.documents += group.documents;
        self.facts.tokens += group.tokens;
        self.facts.row_groups.push((group.documents, group.tokens));
        self.hasher.update(group.digest.as_bytes());
        Ok(())
    }

    pub fn finish(mut self) -> Result<ShardFacts, Error> {
        self.facts.digest = self.hasher.finalize().to_hex().to_string();
        let text = serde_json::to_string(&self.facts).expect("facts are plain data");
        self.file.append_key_value_metadata(KeyValue::new(KEY.into(), text));
        self.file.close().map_err(|source| Error::WriteParquet { path: self.path, source })?;
        Ok(self.facts)
    }
}

impl ShardFacts {
    /// The facts of a shard that holds nothing yet.
    pub fn empty(split: Split, tokenizer: &super::tokenizer::Facts) -> Self {
        Self {
            format: FORMAT,
            split,
            tokenizer: tokenizer.digest.clone(),
            vocabulary: tokenizer.vocabulary,
            bos_id: tokenizer.bos_id,
            documents: 0,
            tokens: 0,
            row_groups: Vec::new(),
            digest: String::new(),
        }
    }
}

/// A shard opened for reading. Holds the file's metadata, never its tokens.
pub struct Shard {
    pub path: PathBuf,
    pub facts: ShardFacts,
    file: SerializedFileReader<AtFile>,
}

impl Shard {
    pub fn open(path: &Path) -> Result<Self, Error> {
        let file = open_parquet(path)?;
        let bad = |what: String| Error::BadShard { path: path.to_owned(), what };
        let metadata = file.metadata();
        let pairs = metadata.file_metadata().key_value_metadata();
        let text = pairs.and_then(|pairs| pairs.iter().find(|pair| pair.key == KEY)).and_then(|pair| pair.value.as_deref());
        let text = text.ok_or_else(|| bad(format!("no `{KEY}` in its metadata")))?;
        let facts: ShardFacts =
            serde_json::from_str(text).map_err(|error| bad(format!("its `{KEY}` cannot be read: {error}")))?;
        if facts.format != FORMAT {
            return Err(bad(format!("it has format {}, this tool reads {FORMAT}", facts.format)));
        }
        let rows: Vec<u64> = metadata.row_groups().iter().map(|group| group.num_rows() as u64).collect();
        if rows != facts.row_groups.iter().map(|(documents, _)| *documents).collect::<Vec<_>>() {
            return Err(bad("its row groups are not those its metadata lists".into()));
        }
        Ok(Self { path: path.to_owned(), facts, file })
    }

    /// The documents of a row group: their ids end to end, and how many each has.
    pub fn read(&self, group: usize) -> Result<(Vec<u32>, Vec<u32>), Error> {
        let (documents, tokens) = self.facts.row_groups[group];
        let ids = match sheltered(|| self.pages(group, tokens)).map_err(|source| self.bad(group, "input_ids", source))? {
            Some(ids) => ids,
            None => self.integers(group, INPUT_IDS, "input_ids", documents, tokens)?,
        };
        let counts = self.integers(group, N_TOKENS, "n_tokens", documents, documents)?;
        if counts.iter().map(|&count| u64::from(count)).sum::<u64>() != tokens {
            let what = format!("row group {group}: `n_tokens` does not add up to its {tokens} tokens");
            return Err(Error::BadShard { path: self.path.clone(), what });
        }
        Ok((ids, counts))
    }

    /// The document ids of a row group.
    pub fn read_doc_ids(&self, group: usize) -> Result<Vec<String>, Error> {
        let documents = self.facts.row_groups[group].0 as usize;
        let fail = |source| self.bad(group, "doc_id", source);
        let ColumnReader::ByteArrayColumnReader(mut reader) = self.column(group, DOC_ID).map_err(fail)? else {
            return Err(fail(ParquetError::General("not a text".into())));
        };
        let mut values = Vec::with_capacity(room(documents as u64));
        while values.len() < documents {
            if sheltered(|| reader.read_records(documents - values.len(), None, None, &mut values)).map_err(fail)?.0 == 0 {
                return Err(fail(ParquetError::EOF(format!("{} of {documents} rows", values.len()))));
            }
        }
        Ok(values.iter().map(|value| String::from_utf8_lossy(value.data()).into_owned()).collect())
    }

    fn column(&self, group: usize, at: usize) -> Result<ColumnReader, ParquetError> {
        sheltered(|| self.file.get_row_group(group)?.get_column_reader(at))
    }

    fn bad(&self, row_group: usize, column: &str, source: ParquetError) -> Error {
        Error::RowGroup { path: self.path.clone(), row_group, column: column.to_owned(), source }
    }

    /// The ids of a row group straight from its pages, where they are laid out as we write them; `None` where they are not.
    /// Saves building two levels for every token, which say no more than `n_tokens` does.
    fn pages(&self, group: usize, tokens: u64) -> Result<Option<Vec<u32>>, ParquetError> {
        let mut pages = self.file.get_row_group(group)?.get_column_page_reader(INPUT_IDS)?;
        let mut ids = Vec::with_capacity(room(tokens));
        while let Some(page) = pages.get_next_page()? {
            let Page::DataPage {
                buf,
                num_values,
                encoding: Encoding::BYTE_STREAM_SPLIT,
                rep_level_encoding,
                def_level_encoding,
                ..
            } = page
            else {
                return Ok(None);
            };
            if rep_level_encoding != Encoding::RLE || def_level_encoding != Encoding::RLE {
                return Ok(None);
            }
            // Repetition levels, definition levels, values; each run of levels begins with its length.
            let Some(values) = after_levels(&buf).and_then(after_levels) else { return Ok(None) };
            let count = num_values as usize;
            if values.len() != 4 * count {
                return Ok(None);
            }
            let (low, high) = values.split_at(2 * count);
            let ((a, b), (c, d)) = (low.split_at(count), high.split_at(count));
            let bytes = a.iter().zip(b).zip(c.iter().zip(d));
            ids.extend(bytes.map(|((&a, &b), (&c, &d))| u32::from_le_bytes([a, b, c, d])));
        }
        Ok((ids.len() as u64 == tokens).then_some(ids))
    }

    fn integers(&self, group: usize, at: usize, name: &str, rows: u64, values: u64) -> Result<Vec<u32>, Error> {
        let fail = |source| self.bad(group, name, source);
        let ColumnReader::Int32ColumnReader(mut reader) = self.column(group, at).map_err(fail)? else {
            return Err(fail(ParquetError::General("not 32-bit integers".into())));
        };
        let mut out: Vec<i32> = Vec::with_capacity(room(values));
        let (mut present, mut repeated) = (Vec::new(), Vec::new());
        let nested = at == INPUT_IDS;
        let mut met = 0;
        while met < rows as usize {
            present.clear();
            repeated.clear();
            let levels = nested.then_some(&mut present);
            let repeats = nested.then_some(&mut repeated);
            let (records, _, _) =
                sheltered(|| reader.read_records(rows as usize - met, levels, repeats, &mut out)).map_err(fail)?;
            if records == 0 {
                break;
            }
            met += records;
        }
        if met as u64 != rows || out.len() as u64 != values {
            return Err(fail(ParquetError::EOF(format!(
                "{met} rows and {} values, {rows} and {values} were announced",
                out.len()
            ))));
        }
        // Same size, same place: the collect reuses the allocation.
        Ok(out.into_iter().map(|id| id as u32).collect())
    }
}

/// How much room to set aside for so many values. A damaged file may announce any number; a larger row group than ours grows into its size.
fn room(values: u64) -> usize {
    values.min(1 << 22) as usize
}

/// What follows a run of levels.
fn after_levels(bytes: &[u8]) -> Option<&[u8]> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.get(u32::from_le_bytes(*length) as usize..)
}

/// The shards of a split in the output of the tokenize step, in order.
pub fn shard_files(folder: &Path, split: Split) -> Result<Vec<PathBuf>, Error> {
    let folder = folder.join(split.folder());
    if !folder.is_dir() {
        return Err(Error::NothingThere { path: folder, wanted: "token shards", hint: "make them with the tokenize step" });
    }
    super::rows::parquet_files(&folder)
}

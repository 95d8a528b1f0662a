//! A folder of its own for each test, and the steps of the data side as one-liners.

use arrow::array::{ArrayRef, BinaryArray, RecordBatch, StringArray};
use arrow::datatypes::{Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::file::properties::WriterProperties;
use repro::paper::data::tokenizer::encoder::Encoder;
use repro::paper::data::{Error, corpus, tokenize, tokenizer};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tempfile::TempDir;

pub struct Sandbox {
    folder: TempDir,
}

impl Sandbox {
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().unwrap() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A small world in `corpus`.
    pub fn world(self, bytes: u64) -> Self {
        let config = corpus::Config { bytes, people: 200, file_bytes: bytes / 3 + 1, ..Default::default() };
        corpus::run(&config, corpus::Inputs::default(), &self.path("corpus"), &mut |_| ()).unwrap();
        self
    }

    /// A tokenizer in `tokenizer`, learned from `corpus`.
    pub fn tokenizer(self, vocabulary: usize) -> Self {
        let config = tokenizer::Config { vocabulary, ..Default::default() };
        let inputs = tokenizer::Inputs { corpus: Some(&self.path("corpus")), file: None };
        tokenizer::run(&config, inputs, &self.path("tokenizer"), &mut |_| ()).unwrap();
        self
    }

    /// Shards in `shards`, small enough that there are several of everything.
    pub fn shards(self) -> Self {
        self.tokenize(&small_shards(), "shards").unwrap();
        self
    }

    pub fn tokenize(&self, config: &tokenize::Config, out: &str) -> Result<tokenize::Summary, Error> {
        let inputs = tokenize::Inputs { corpus: &self.path("corpus"), tokenizer: &self.path("tokenizer") };
        tokenize::run(config, inputs, &self.path(out), &mut |_| ())
    }

    pub fn encoder(&self) -> Encoder {
        Encoder::open(&self.path("tokenizer")).unwrap()
    }

    /// Every document of a Parquet corpus: id and text.
    pub fn documents(&self, name: &str) -> Vec<(Option<String>, String)> {
        documents(&self.path(name))
    }
}

pub fn small_shards() -> tokenize::Config {
    tokenize::Config { held_out: 20, row_group_tokens: 5_000, shard_tokens: 40_000, ..Default::default() }
}

pub fn documents(path: &Path) -> Vec<(Option<String>, String)> {
    use repro::paper::data::rows::{Columns, Rows, parquet_files};
    let columns = Columns { text: "text".into(), id: Some("id".into()) };
    let mut found = Vec::new();
    for file in parquet_files(path).unwrap() {
        let mut rows = Rows::open(&file, &columns).unwrap();
        while let Some(batch) = rows.next(1000).unwrap() {
            found.extend(batch.rows.iter().map(|row| (row.id.clone(), row.text().to_owned())));
        }
    }
    found
}

/// Every file under a folder with its bytes, by relative name.
pub fn contents(folder: &Path) -> Vec<(String, Vec<u8>)> {
    repro::paper::data::rows::files_under(folder)
        .unwrap()
        .into_iter()
        .map(|file| (file.strip_prefix(folder).unwrap().display().to_string(), std::fs::read(&file).unwrap()))
        .collect()
}

/// Writes a Parquet file of ids and texts, with nulls where they are `None`.
pub fn write_texts(path: &Path, texts: &[(Option<&str>, Option<&str>)], rows_per_group: usize) {
    let ids: ArrayRef = Arc::new(texts.iter().map(|(id, _)| *id).collect::<StringArray>());
    let column: ArrayRef = Arc::new(texts.iter().map(|(_, text)| *text).collect::<StringArray>());
    write_columns(path, &[("id", ids), ("text", column)], rows_per_group);
}

pub fn write_bytes(path: &Path, texts: &[&[u8]], rows_per_group: usize) {
    let ids: ArrayRef = Arc::new((0..texts.len()).map(|at| Some(format!("doc-{at}"))).collect::<StringArray>());
    let column: ArrayRef = Arc::new(BinaryArray::from_vec(texts.to_vec()));
    write_columns(path, &[("id", ids), ("text", column)], rows_per_group);
}

pub fn write_columns(path: &Path, columns: &[(&str, ArrayRef)], rows_per_group: usize) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    let fields: Vec<Field> = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true)).collect();
    let schema = Arc::new(Schema::new(fields));
    let batch = RecordBatch::try_new(schema.clone(), columns.iter().map(|(_, column)| column.clone()).collect()).unwrap();
    let properties = WriterProperties::builder().set_max_row_group_row_count(Some(rows_per_group)).build();
    let mut writer = ArrowWriter::try_new(std::fs::File::create(path).unwrap(), schema, Some(properties)).unwrap();
    writer.write(&batch).unwrap();
    writer.close().unwrap();
}

pub fn ints(count: usize) -> ArrayRef {
    Arc::new((0..count as i64).map(Some).collect::<arrow::array::Int64Array>())
}

/// Runs something in a pool of so many threads.
pub fn with_threads<T: Send>(threads: usize, work: impl FnOnce() -> T + Send) -> T {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap().install(work)
}

/// The whole chain of an error, as the command line prints it.
pub fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}

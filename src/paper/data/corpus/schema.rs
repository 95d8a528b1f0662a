//! FineWeb-Edu's columns, and a writer for them. What goes into the columns belongs to the callers.

use crate::paper::data::Error;
use crate::paper::data::rows::clear;
use arrow::array::{ArrayRef, Float64Builder, Int64Builder, RecordBatch, StringBuilder};
use arrow::datatypes::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::{EnabledStatistics, WriterProperties};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// One row: the columns that differ from document to document. Language is English throughout.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    pub text: String,
    pub id: String,
    pub dump: String,
    pub url: String,
    pub file_path: String,
    pub language_score: f64,
    /// Words and marks: an estimate, as the tokenizer is not known yet.
    pub token_count: i64,
    pub score: f64,
}

pub fn schema() -> Schema {
    let text = |name| Field::new(name, DataType::Utf8, true);
    let float = |name| Field::new(name, DataType::Float64, true);
    let int = |name| Field::new(name, DataType::Int64, true);
    Schema::new(vec![
        text("text"),
        text("id"),
        text("dump"),
        text("url"),
        text("file_path"),
        text("language"),
        float("language_score"),
        int("token_count"),
        float("score"),
        int("int_score"),
    ])
}

/// Documents per row group, as in FineWeb-Edu's own files.
const ROW_GROUP_DOCUMENTS: usize = 1000;

/// Writes records into files of about `file_bytes` of text each, named in order.
pub struct Writer {
    folder: PathBuf,
    file_bytes: u64,
    files: Vec<PathBuf>,
    open: Option<(ArrowWriter<File>, PathBuf)>,
    bytes_in_file: u64,
    pending: Vec<Record>,
    schema: Arc<Schema>,
}

impl Writer {
    pub fn new(folder: &Path, file_bytes: u64) -> Result<Self, Error> {
        std::fs::create_dir_all(folder).map_err(Error::io("create", folder))?;
        clear(folder, "")?;
        Ok(Self {
            folder: folder.to_owned(),
            file_bytes,
            files: Vec::new(),
            open: None,
            bytes_in_file: 0,
            pending: Vec::with_capacity(ROW_GROUP_DOCUMENTS),
            schema: Arc::new(schema()),
        })
    }

    pub fn write(&mut self, record: Record) -> Result<(), Error> {
        self.bytes_in_file += record.text.len() as u64;
        self.pending.push(record);
        let full = self.bytes_in_file >= self.file_bytes;
        if full || self.pending.len() == ROW_GROUP_DOCUMENTS {
            self.flush()?;
        }
        if full {
            self.close_file()?;
        }
        Ok(())
    }

    pub fn finish(mut self) -> Result<Vec<PathBuf>, Error> {
        self.flush()?;
        self.close_file()?;
        Ok(self.files)
    }

    fn flush(&mut self) -> Result<(), Error> {
        if self.pending.is_empty() {
            return Ok(());
        }
        if self.open.is_none() {
            let path = self.folder.join(format!("{:05}.parquet", self.files.len()));
            let file = File::create(&path).map_err(Error::io("create", &path))?;
            let properties = WriterProperties::builder()
                .set_compression(Compression::ZSTD(ZstdLevel::try_new(1).expect("1 is a zstd level")))
                .set_dictionary_enabled(false)
                .set_statistics_enabled(EnabledStatistics::None)
                .build();
            let writer = ArrowWriter::try_new(file, self.schema.clone(), Some(properties))
                .map_err(|source| Error::WriteParquet { path: path.clone(), source })?;
            self.files.push(path.clone());
            self.open = Some((writer, path));
        }
        let batch = batch(&self.schema, &self.pending);
        self.pending.clear();
        let (writer, path) = self.open.as_mut().expect("a file was opened above");
        writer.write(&batch).and_then(|()| writer.flush()).map_err(|source| Error::WriteParquet { path: path.clone(), source })
    }

    fn close_file(&mut self) -> Result<(), Error> {
        self.bytes_in_file = 0;
        if let Some((writer, path)) = self.open.take() {
            writer.close().map_err(|source| Error::WriteParquet { path, source })?;
        }
        Ok(())
    }
}

fn batch(schema: &Arc<Schema>, records: &[Record]) -> RecordBatch {
    let texts = |value: &dyn Fn(&Record) -> &str| -> ArrayRef {
        let mut column = StringBuilder::new();
        records.iter().for_each(|record| column.append_value(value(record)));
        Arc::new(column.finish())
    };
    let floats = |value: &dyn Fn(&Record) -> f64| -> ArrayRef {
        let mut column = Float64Builder::new();
        records.iter().for_each(|record| column.append_value(value(record)));
        Arc::new(column.finish())
    };
    let ints = |value: &dyn Fn(&Record) -> i64| -> ArrayRef {
        let mut column = Int64Builder::new();
        records.iter().for_each(|record| column.append_value(value(record)));
        Arc::new(column.finish())
    };
    let columns = vec![
        texts(&|record| &record.text),
        texts(&|record| &record.id),
        texts(&|record| &record.dump),
        texts(&|record| &record.url),
        texts(&|record| &record.file_path),
        texts(&|_| "en"),
        floats(&|record| record.language_score),
        ints(&|record| record.token_count),
        floats(&|record| record.score),
        ints(&|record| record.score.round() as i64),
    ];
    RecordBatch::try_new(schema.clone(), columns).expect("the columns are built to the schema")
}

/// Words and marks of a text.
pub fn count_words(text: &str) -> i64 {
    let mut count = 0;
    let mut in_word = false;
    for byte in text.bytes() {
        let letter = byte.is_ascii_alphanumeric() || byte >= 0x80;
        if (letter && !in_word) || (!letter && !byte.is_ascii_whitespace()) {
            count += 1;
        }
        in_word = letter;
    }
    count
}

/// An id in the form FineWeb-Edu uses, made from a hash.
pub fn urn(hash: &blake3::Hash) -> String {
    let hex = hash.to_hex();
    format!("<urn:uuid:{}-{}-{}-{}-{}>", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..32])
}

//! A file read by position. Parquet's own reader of `File` moves the one cursor all its clones share,
//! so two threads decoding two row groups of a shard would read each other's bytes.

use super::Error;
use parquet::errors::{ParquetError, Result};
use parquet::file::reader::{ChunkReader, FileReader, Length, SerializedFileReader};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

#[derive(Clone)]
pub struct AtFile {
    file: Arc<File>,
    length: u64,
}

impl AtFile {
    pub fn open(path: &Path) -> std::io::Result<Self> {
        let file = File::open(path)?;
        let length = file.metadata()?.len();
        Ok(Self { file: Arc::new(file), length })
    }
}

/// Reads on from a position of its own.
pub struct Cursor {
    file: Arc<File>,
    at: u64,
}

impl Read for Cursor {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.file.read_at(into, self.at)?;
        self.at += read as u64;
        Ok(read)
    }
}

impl Length for AtFile {
    fn len(&self) -> u64 {
        self.length
    }
}

impl ChunkReader for AtFile {
    type T = BufReader<Cursor>;

    fn get_read(&self, start: u64) -> Result<Self::T> {
        // Page headers are what is read this way, and they are short.
        Ok(BufReader::with_capacity(512, Cursor { file: self.file.clone(), at: start }))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<bytes::Bytes> {
        // Asked first: a damaged file may want any amount of memory.
        if start.checked_add(length as u64).is_none_or(|end| end > self.length) {
            return Err(ParquetError::EOF(format!("{length} bytes at {start} are beyond the end of the file")));
        }
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

/// Opens a Parquet file and checks that its column chunks lie within it.
pub fn open_parquet(path: &Path) -> std::result::Result<SerializedFileReader<AtFile>, Error> {
    let file = AtFile::open(path).map_err(Error::io("open", path))?;
    let length = file.length;
    let bad = |source| Error::NotParquet { path: path.to_owned(), source };
    let reader = sheltered(|| SerializedFileReader::new(file)).map_err(bad)?;
    for group in reader.metadata().row_groups() {
        for column in group.columns() {
            let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
            let end = start.checked_add(column.compressed_size()).and_then(|end| u64::try_from(end).ok());
            let inside =
                start >= 0 && column.compressed_size() >= 0 && column.num_values() >= 0 && end.is_some_and(|end| end <= length);
            if !inside || group.num_rows() < 0 {
                return Err(bad(ParquetError::EOF("a column lies beyond the end of the file".into())));
            }
        }
    }
    Ok(reader)
}

/// Runs a decoder that may panic on damaged bytes, and makes an error of it.
pub fn sheltered<T>(decode: impl FnOnce() -> Result<T>) -> Result<T> {
    catch_unwind(AssertUnwindSafe(decode))
        .unwrap_or_else(|_| Err(ParquetError::General("the decoder stumbled over damaged bytes".into())))
}

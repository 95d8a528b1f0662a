//! A file read by position. Parquet's own reader of `File` moves the one cursor all its clones share,
//! so two threads decoding two row groups of a shard would read each other's bytes.

use parquet::errors::Result;
use parquet::file::reader::{ChunkReader, Length};
use std::fs::File;
use std::io::{BufReader, Read};
use std::os::unix::fs::FileExt;
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
        let mut buffer = vec![0; length];
        self.file.read_exact_at(&mut buffer, start)?;
        Ok(buffer.into())
    }
}

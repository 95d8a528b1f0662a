//! What the trainer asks of any source of tokens: batches in a fixed order, and a position to resume from.
//! Reading shards and packing documents belongs to the sources themselves.
// B rows of a batch, T sequence length

use serde::{Deserialize, Serialize};

/// B sequences of T + 1 tokens, row-major: inputs are the first T of a row, targets the last T.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    pub rows: usize,
    pub seq_len: usize,
    pub tokens: Vec<u32>,
}

/// Where a source stands: enough to continue with the very next token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Position {
    pub epoch: u64,
    /// Sequences handed out in this epoch.
    pub sequence: u64,
}

/// A failure of a source: a file gone, bytes that no longer decode. The text says which and where.
#[derive(Debug, thiserror::Error)]
#[error("{what}")]
pub struct SourceError {
    pub what: String,
    #[source]
    pub cause: Option<Box<dyn std::error::Error + Send + Sync>>,
}

/// An endless, seeded, resumable stream of batches. Two sources made alike give the same batches.
pub trait TokenSource: Send {
    fn next_batch(&mut self, rows: usize, seq_len: usize) -> Result<Batch, SourceError>;
    /// The position after the last batch handed out, whatever has been read ahead.
    fn position(&self) -> Position;
    fn seek(&mut self, position: Position) -> Result<(), SourceError>;
    /// One more than the largest token id the source may produce.
    fn vocabulary(&self) -> usize;
}

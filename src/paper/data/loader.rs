//! Feeds token shards to training: packs documents into sequences, shuffles, reads ahead, and can stand at any position.
//!
//! An epoch is every token of the split once. Its order is seeded: shards are shuffled, row groups within their shard, documents
//! within their row group. The epochs make one endless stream of tokens, and sequence `g` of it holds tokens `gT ..= gT + T`: the
//! last token of a sequence is the first of the next, so each token is a target once. What is left at the end of an epoch
//! is carried into the next one; nothing is dropped and nothing is padded.
// B rows of a batch, T sequence length, E tokens of an epoch, g number of a sequence in the endless stream

use super::Error;
use super::random::Random;
use super::shards::{Shard, Split, shard_files};
use crate::paper::batch::{Batch, Position, SourceError, TokenSource};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// In which order the documents come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// A new order every epoch, decided by the seed alone: the same for every run of a sweep.
    Shuffled { seed: u64 },
    /// The order of the shards, every epoch: for evaluation.
    Fixed,
}

/// One row group of one shard.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Unit {
    shard: usize,
    group: usize,
    tokens: u64,
}

/// The files, opened once; shared with the threads that read ahead.
struct Library {
    shards: Vec<Shard>,
    order: Order,
    /// E
    tokens: u64,
    vocabulary: usize,
}

/// A resumable stream of batches from the shards of one split.
pub struct Loader {
    library: Arc<Library>,
    readers: usize,
    /// Where the next batch starts. Held as asked for until the first batch tells T.
    at: Position,
    stream: Option<Stream>,
}

/// The stream as it runs, for one T.
struct Stream {
    seq_len: usize,
    /// Number of the next sequence.
    g: u64,
    ahead: ReadAhead,
    /// The documents at hand, in order, and how many of their tokens are used up.
    block: Vec<u32>,
    used: usize,
}

/// Threads that each decode every k-th row group; a queue per thread keeps the order without a lock.
struct ReadAhead {
    queues: Vec<Receiver<Result<Vec<u32>, Error>>>,
    threads: Vec<JoinHandle<()>>,
    next: usize,
}

/// Row groups each thread may have ready.
const READY: usize = 2;

impl Library {
    fn open(folder: &Path, split: Split, order: Order) -> Result<Self, Error> {
        let files = shard_files(folder, split)?;
        let shards = files.iter().map(|file| Shard::open(file)).collect::<Result<Vec<_>, _>>()?;
        for shard in &shards {
            let bad = |what: String| Error::BadShard { path: shard.path.clone(), what };
            if shard.facts.split != split {
                return Err(bad(format!("it holds the {} split but lies in `{}`", shard.facts.split.folder(), split.folder())));
            }
            if shard.facts.tokenizer != shards[0].facts.tokenizer {
                return Err(bad(format!("its ids are of another tokenizer than those of `{}`", shards[0].path.display())));
            }
        }
        let tokens = shards.iter().map(|shard| shard.facts.tokens).sum();
        if tokens == 0 {
            return Err(Error::NothingThere { path: folder.join(split.folder()), wanted: "tokens", hint: "the split is empty" });
        }
        let vocabulary = shards[0].facts.vocabulary;
        Ok(Self { shards, order, tokens, vocabulary })
    }

    /// The row groups of an epoch in the order they are read.
    fn units(&self, epoch: u64) -> Vec<Unit> {
        let mut shards: Vec<usize> = (0..self.shards.len()).collect();
        if let Order::Shuffled { seed } = self.order {
            Random::new(&[seed, 1, epoch]).shuffle(&mut shards);
        }
        let mut units = Vec::new();
        for shard in shards {
            let groups = &self.shards[shard].facts.row_groups;
            let mut here: Vec<Unit> =
                groups.iter().enumerate().map(|(group, &(_, tokens))| Unit { shard, group, tokens }).collect();
            if let Order::Shuffled { seed } = self.order {
                Random::new(&[seed, 2, epoch, shard as u64]).shuffle(&mut here);
            }
            units.extend(here);
        }
        units
    }

    /// The tokens of a row group, its documents in the order of this epoch.
    fn block(&self, epoch: u64, unit: Unit) -> Result<Vec<u32>, Error> {
        let (ids, counts) = self.shards[unit.shard].read(unit.group)?;
        let Order::Shuffled { seed } = self.order else { return Ok(ids) };
        let mut start = 0;
        let mut documents: Vec<&[u32]> = Vec::with_capacity(counts.len());
        for count in counts {
            documents.push(&ids[start..start + count as usize]);
            start += count as usize;
        }
        Random::new(&[seed, 3, epoch, unit.shard as u64, unit.group as u64]).shuffle(&mut documents);
        Ok(documents.concat())
    }

    /// Number of the first sequence that starts in an epoch.
    fn first_sequence(&self, epoch: u64, seq_len: usize) -> u64 {
        (u128::from(epoch) * u128::from(self.tokens)).div_ceil(seq_len as u128) as u64
    }

    fn sequence(&self, at: Position, seq_len: usize) -> u64 {
        self.first_sequence(at.epoch, seq_len) + at.sequence
    }

    fn position(&self, g: u64, seq_len: usize) -> Position {
        let epoch = (u128::from(g) * seq_len as u128 / u128::from(self.tokens)) as u64;
        Position { epoch, sequence: g - self.first_sequence(epoch, seq_len) }
    }
}

impl ReadAhead {
    /// Starts reading at a row group: number `first` of `epoch`, and on from there without end.
    fn start(library: &Arc<Library>, epoch: u64, first: usize, readers: usize) -> Self {
        let (mut queues, mut threads) = (Vec::new(), Vec::new());
        for reader in 0..readers {
            let (sender, queue) = sync_channel(READY);
            let library = library.clone();
            threads.push(std::thread::spawn(move || {
                let (mut epoch, mut at) = (epoch, first + reader);
                let mut units = library.units(epoch);
                loop {
                    while at >= units.len() {
                        at -= units.len();
                        epoch += 1;
                        units = library.units(epoch);
                    }
                    let block = library.block(epoch, units[at]);
                    let failed = block.is_err();
                    // No one listens any more once the loader has moved elsewhere.
                    if sender.send(block).is_err() || failed {
                        return;
                    }
                    at += readers;
                }
            }));
            queues.push(queue);
        }
        Self { queues, threads, next: 0 }
    }

    fn next(&mut self) -> Result<Vec<u32>, Error> {
        let block = self.queues[self.next].recv().map_err(|_| Error::WorkerDied { step: "the loader" })?;
        self.next = (self.next + 1) % self.queues.len();
        block
    }
}

impl Drop for ReadAhead {
    fn drop(&mut self) {
        self.queues.clear();
        for thread in self.threads.drain(..) {
            // A panic in a reader has already surfaced as `WorkerDied`.
            let _ = thread.join();
        }
    }
}

impl Stream {
    fn start(library: &Arc<Library>, readers: usize, g: u64, seq_len: usize) -> Self {
        let offset = u128::from(g) * seq_len as u128;
        let epoch = (offset / u128::from(library.tokens)) as u64;
        let mut left = (offset % u128::from(library.tokens)) as u64;
        let mut first = 0;
        for unit in library.units(epoch) {
            if left < unit.tokens {
                break;
            }
            left -= unit.tokens;
            first += 1;
        }
        let ahead = ReadAhead::start(library, epoch, first, readers);
        Self { seq_len, g, ahead, block: Vec::new(), used: left as usize }
    }

    /// Makes sure at least one unused token is at hand.
    fn refill(&mut self) -> Result<(), Error> {
        while self.used >= self.block.len() {
            self.used -= self.block.len();
            self.block = self.ahead.next()?;
        }
        Ok(())
    }

    fn batch(&mut self, rows: usize) -> Result<Batch, Error> {
        let mut tokens = Vec::with_capacity(rows * (self.seq_len + 1));
        // The last token of a row comes again as the first of the next, so it is read before it is used up.
        for _ in 0..rows {
            let mut wanted = self.seq_len;
            while wanted > 0 {
                self.refill()?;
                let take = wanted.min(self.block.len() - self.used);
                tokens.extend_from_slice(&self.block[self.used..self.used + take]);
                self.used += take;
                wanted -= take;
            }
            self.refill()?;
            tokens.push(self.block[self.used]);
        }
        self.g += rows as u64;
        Ok(Batch { rows, seq_len: self.seq_len, tokens })
    }
}

impl Loader {
    /// Opens the shards of a split. `readers` threads decode ahead; the batches do not depend on how many.
    pub fn open(folder: &Path, split: Split, order: Order, readers: usize) -> Result<Self, Error> {
        let library = Arc::new(Library::open(folder, split, order)?);
        Ok(Self { library, readers: readers.max(1), at: Position::default(), stream: None })
    }

    /// Tokens of an epoch.
    pub fn tokens(&self) -> u64 {
        self.library.tokens
    }

    /// The digest of the tokenizer the ids belong to.
    pub fn tokenizer(&self) -> &str {
        &self.library.shards[0].facts.tokenizer
    }

    fn batch(&mut self, rows: usize, seq_len: usize) -> Result<Batch, Error> {
        if seq_len == 0 || rows == 0 {
            let field = if rows == 0 { "rows" } else { "seq_len" };
            return Err(Error::OutOfRange { field, value: "0".into(), must: "at least 1" });
        }
        let stream = match &mut self.stream {
            Some(stream) if stream.seq_len == seq_len => stream,
            other => {
                // A position counts sequences, so it means nothing under another length, except at the start of an epoch.
                if let Some(stream) = other
                    && self.at.sequence > 0
                {
                    let value = format!("{seq_len} after batches of {}", stream.seq_len);
                    return Err(Error::OutOfRange { field: "seq_len", value, must: "the same until the next seek" });
                }
                let g = self.library.sequence(self.at, seq_len);
                other.insert(Stream::start(&self.library, self.readers, g, seq_len))
            }
        };
        let batch = stream.batch(rows)?;
        self.at = self.library.position(stream.g, seq_len);
        Ok(batch)
    }
}

impl TokenSource for Loader {
    fn next_batch(&mut self, rows: usize, seq_len: usize) -> Result<Batch, SourceError> {
        self.batch(rows, seq_len)
            .map_err(|error| SourceError { what: "cannot read the next batch".into(), cause: Some(Box::new(error)) })
    }

    fn position(&self) -> Position {
        self.at
    }

    fn seek(&mut self, position: Position) -> Result<(), SourceError> {
        self.stream = None;
        self.at = position;
        Ok(())
    }

    fn vocabulary(&self) -> usize {
        self.library.vocabulary
    }
}

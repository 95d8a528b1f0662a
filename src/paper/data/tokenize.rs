//! From text columns to token shards: parallel, in constant memory, the same bytes whatever the number of threads.
//!
//! Work flows through three queues, each bounded and each left in the order of the corpus:
//! batches of documents are encoded; the documents are dealt out to row groups by split; row groups are encoded and appended.
//! Any thread takes the most downstream work there is, so that nothing piles up.

use super::rows::{Batch, Columns, Rejects, Rows, clear, parquet_files};
use super::shards::{EncodedGroup, Group, GroupEncoder, ShardFacts, ShardWriter, Split};
use super::tokenizer::encoder::Encoder;
use super::{Error, OnProgress, Progress, Unit};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};
use std::path::{Path, PathBuf};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The tokenize step.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    /// The column that holds the text.
    pub text_column: String,
    /// The column that holds the document's id, which decides its split. Empty: there is none, and a hash of the text stands in.
    pub id_column: String,
    /// One document in so many is held out, by the hash of its id; 0 holds out none.
    pub held_out: u64,
    /// Tokens per row group: what the loader decodes at a time.
    pub row_group_tokens: usize,
    /// Tokens per shard file.
    pub shard_tokens: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            text_column: "text".into(),
            id_column: "id".into(),
            held_out: 1000,
            row_group_tokens: 1 << 20,
            shard_tokens: 1 << 28,
        }
    }
}

/// What the tokenize step reads.
#[derive(Clone, Copy, Debug)]
pub struct Inputs<'a> {
    /// A folder of Parquet files (or one), with a text column.
    pub corpus: &'a Path,
    /// The output of the tokenizer step.
    pub tokenizer: &'a Path,
}

/// What the tokenize step wrote; also kept as `summary.json` beside the shards.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Summary {
    /// Bytes of text encoded.
    pub bytes: u64,
    pub vocabulary: usize,
    pub train: SplitSummary,
    pub heldout: SplitSummary,
    /// Documents met and not used.
    pub rejects: Rejects,
    /// Documents without an id, named by a hash of their text.
    pub ids_made: u64,
    /// Why the reference encoded, about forty times slower; absent when the fast encoder did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slow_because: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SplitSummary {
    pub documents: u64,
    pub tokens: u64,
    pub shards: Vec<ShardSummary>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardSummary {
    pub file: String,
    pub documents: u64,
    pub tokens: u64,
    pub digest: String,
}

impl Config {
    pub fn check(&self) -> Result<(), Error> {
        let out = |field, value: u64, must| Err(Error::OutOfRange { field, value: value.to_string(), must });
        if self.held_out == 1 {
            return out("held_out", 1, "0 or at least 2: 1 would hold out every document");
        }
        if !(1..=1 << 28).contains(&self.row_group_tokens) {
            return out("row_group_tokens", self.row_group_tokens as u64, "between 1 and 268435456");
        }
        if self.shard_tokens < self.row_group_tokens as u64 {
            return out("shard_tokens", self.shard_tokens, "at least `row_group_tokens`");
        }
        Ok(())
    }

    fn columns(&self) -> Columns {
        Columns { text: self.text_column.clone(), id: (!self.id_column.is_empty()).then(|| self.id_column.clone()) }
    }
}

/// Whether a document is held out: a hash of its id, so that it stays held out in every corpus it turns up in.
pub fn held_out(id: &str, one_in: u64) -> bool {
    let hash = blake3::hash(id.as_bytes());
    let head = hash.as_bytes().first_chunk::<8>().expect("a hash has 32 bytes");
    one_in > 0 && u64::from_le_bytes(*head).is_multiple_of(one_in)
}

/// Text encoded at a time by one thread.
const BATCH_BYTES: usize = 1 << 20;
/// Text of each sampled file on which the fast encoder is compared with the reference.
const COMPARED_BYTES: usize = 1 << 15;
const COMPARED_FILES: usize = 4;
/// Tokens a row group gets room for beforehand; a larger one grows into its size.
const ROOM: usize = 1 << 20;

/// Writes `train/`, `heldout/` and `summary.json` into `out`. Uses as many threads as the rayon pool it is called in.
pub fn run(config: &Config, inputs: Inputs<'_>, out: &Path, progress: OnProgress<'_>) -> Result<Summary, Error> {
    let mut encoder = Encoder::open(inputs.tokenizer)?;
    run_with(config, &mut encoder, inputs.corpus, out, progress)
}

/// The same with an encoder that is open already.
pub fn run_with(
    config: &Config,
    encoder: &mut Encoder,
    corpus: &Path,
    out: &Path,
    progress: OnProgress<'_>,
) -> Result<Summary, Error> {
    config.check()?;
    let files = parquet_files(corpus)?;
    compare(encoder, &files, &config.columns())?;
    for split in [Split::Train, Split::Heldout] {
        let folder = out.join(split.folder());
        std::fs::create_dir_all(&folder).map_err(Error::io("create", &folder))?;
        clear(&folder, "shard-")?;
    }
    let threads = rayon::current_num_threads();
    let groups = GroupEncoder::new().map_err(|source| Error::WriteParquet { path: out.to_owned(), source })?;
    let floor = Floor {
        config,
        encoder,
        groups: &groups,
        source: Mutex::new(Source {
            corpus: corpus.to_owned(),
            files: files.into_iter().collect(),
            columns: config.columns(),
            open: None,
            next: 0,
        }),
        board: Mutex::new(Board::default()),
        shelf: Mutex::new(Shelf { out: out.to_owned(), open: BTreeMap::new(), written: BTreeMap::new() }),
        moved: Condvar::new(),
        most_batches: 2 * threads + 2,
        most_groups: threads + 1,
    };
    std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(|| floor.work())).collect();
        let mut board = floor.board();
        while !board.finished() {
            progress(Progress { what: "tokenizing", done: board.bytes, total: None, unit: Unit::Bytes });
            board = floor.moved.wait_timeout(board, Duration::from_millis(200)).unwrap_or_else(PoisonError::into_inner).0;
            if workers.iter().all(std::thread::ScopedJoinHandle::is_finished) {
                break;
            }
        }
        drop(board);
        for worker in workers {
            // A worker that panicked has printed why; the others then find the poisoned board and stop.
            worker.join().map_err(|_| Error::WorkerDied { step: "tokenize" })?;
        }
        Ok::<(), Error>(())
    })?;
    floor.finish(out)
}

/// Compares the fast encoder with the reference on the beginnings of a few files, spread over the corpus.
fn compare(encoder: &mut Encoder, files: &[PathBuf], columns: &Columns) -> Result<(), Error> {
    let step = files.len().div_ceil(COMPARED_FILES).max(1);
    for file in files.iter().step_by(step) {
        if let Some(batch) = Rows::open(file, columns)?.next(COMPARED_BYTES)? {
            let mut left = COMPARED_BYTES;
            for row in &batch.rows {
                let text = row.text();
                // A prefix is a text like any other, and one long document must not take all the time.
                let cut = text.floor_char_boundary(left.min(text.len()));
                encoder.compare([&text[..cut]])?;
                left -= cut;
            }
        }
    }
    Ok(())
}

/// The files still to be read.
struct Source {
    corpus: PathBuf,
    files: VecDeque<PathBuf>,
    columns: Columns,
    open: Option<Rows>,
    next: u64,
}

impl Source {
    fn next(&mut self) -> Result<Option<(u64, Batch)>, Error> {
        loop {
            if self.open.is_none() {
                let Some(file) = self.files.pop_front() else { return Ok(None) };
                self.open = Some(Rows::open(&file, &self.columns)?.inside(&self.corpus));
            }
            if let Some(rows) = &mut self.open
                && let Some(batch) = rows.next(BATCH_BYTES)?
            {
                self.next += 1;
                return Ok(Some((self.next - 1, batch)));
            }
            self.open = None;
        }
    }
}

/// A batch of documents as ids.
struct Encoded {
    documents: Vec<(String, Split, Vec<u32>)>,
    bytes: u64,
    rejects: Rejects,
    ids_made: u64,
}

/// A full row group and where it goes.
struct Job {
    number: u64,
    split: Split,
    shard: usize,
    closes_shard: bool,
    group: Group,
}

/// What is where. Everything that must happen in the order of the corpus happens under this lock.
#[derive(Default)]
struct Board {
    exhausted: bool,
    failed: Option<Error>,
    /// Batches being read or encoded, or encoded and not yet dealt out.
    batches: usize,
    encoded: BTreeMap<u64, Encoded>,
    next_batch: u64,
    desks: BTreeMap<Split, Desk>,
    /// Row groups full, being encoded, or encoded and not yet appended.
    groups: usize,
    full: VecDeque<Job>,
    done: BTreeMap<u64, (Split, usize, bool, EncodedGroup)>,
    next_job: u64,
    next_append: u64,
    appending: bool,
    flushed: bool,
    bytes: u64,
    rejects: Rejects,
    ids_made: u64,
}

/// Where a split's documents are gathered into row groups.
#[derive(Default)]
struct Desk {
    group: Group,
    shard: usize,
    shard_tokens: u64,
}

impl Board {
    fn finished(&self) -> bool {
        self.failed.is_some() || (self.flushed && self.groups == 0)
    }

    /// Deals out the batches that are next in order, and the last row groups once all batches are dealt out.
    fn deal(&mut self, config: &Config, bos: u32) {
        while let Some(batch) = self.encoded.remove(&self.next_batch) {
            self.next_batch += 1;
            self.batches -= 1;
            self.bytes += batch.bytes;
            self.rejects.merge(batch.rejects);
            self.ids_made += batch.ids_made;
            for (id, split, ids) in batch.documents {
                let desk = self.desks.entry(split).or_default();
                desk.group.push(id, bos, &ids);
                if desk.group.ids.len() >= config.row_group_tokens {
                    self.close_group(split, config);
                }
            }
        }
        if self.exhausted && self.batches == 0 && !self.flushed {
            for split in [Split::Train, Split::Heldout] {
                if self.desks.get(&split).is_some_and(|desk| !desk.group.is_empty()) {
                    self.close_group(split, config);
                }
            }
            self.flushed = true;
        }
    }

    fn close_group(&mut self, split: Split, config: &Config) {
        let desk = self.desks.entry(split).or_default();
        let group = std::mem::replace(&mut desk.group, Group::with_room(config.row_group_tokens.min(ROOM)));
        desk.shard_tokens += group.ids.len() as u64;
        let shard = desk.shard;
        let closes_shard = desk.shard_tokens >= config.shard_tokens;
        if closes_shard {
            desk.shard += 1;
            desk.shard_tokens = 0;
        }
        self.full.push_back(Job { number: self.next_job, split, shard, closes_shard, group });
        self.next_job += 1;
        self.groups += 1;
    }
}

/// The shards being written.
struct Shelf {
    out: PathBuf,
    open: BTreeMap<Split, (usize, ShardWriter)>,
    written: BTreeMap<Split, Vec<ShardSummary>>,
}

fn shard_name(split: Split, shard: usize) -> String {
    format!("{}/shard-{shard:05}.parquet", split.folder())
}

impl Shelf {
    fn append(
        &mut self,
        split: Split,
        shard: usize,
        group: EncodedGroup,
        encoder: &GroupEncoder,
        empty: &ShardFacts,
    ) -> Result<(), Error> {
        if !self.open.contains_key(&split) {
            let path = self.out.join(shard_name(split, shard));
            self.open.insert(split, (shard, ShardWriter::create(&path, encoder, empty)?));
        }
        let (_, writer) = self.open.get_mut(&split).expect("opened above");
        writer.append(group)
    }

    fn close(&mut self, split: Split) -> Result<(), Error> {
        if let Some((shard, writer)) = self.open.remove(&split) {
            let facts = writer.finish()?;
            self.written.entry(split).or_default().push(ShardSummary {
                file: shard_name(split, shard),
                documents: facts.documents,
                tokens: facts.tokens,
                digest: facts.digest,
            });
        }
        Ok(())
    }
}

/// The workshop floor: what the threads share.
struct Floor<'a> {
    config: &'a Config,
    encoder: &'a Encoder,
    groups: &'a GroupEncoder,
    source: Mutex<Source>,
    board: Mutex<Board>,
    shelf: Mutex<Shelf>,
    moved: Condvar,
    most_batches: usize,
    most_groups: usize,
}

/// What a thread decided to do next.
enum Task {
    Append(Split, usize, bool, EncodedGroup),
    EncodeGroup(Job),
    EncodeBatch,
    Leave,
}

/// Tells the others when a thread panics: its work would otherwise be waited for without end.
struct Alarm<'a>(&'a Floor<'a>);

impl Drop for Alarm<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.board().failed.get_or_insert(Error::WorkerDied { step: "tokenize" });
            self.0.moved.notify_all();
        }
    }
}

impl Floor<'_> {
    fn board(&self) -> MutexGuard<'_, Board> {
        // Poisoned by a panic elsewhere: the count of its work will never be right again, so everyone leaves.
        self.board.lock().unwrap_or_else(|poisoned| {
            let mut board = poisoned.into_inner();
            board.failed.get_or_insert(Error::WorkerDied { step: "tokenize" });
            board
        })
    }

    fn work(&self) {
        let _alarm = Alarm(self);
        loop {
            let result = match self.choose() {
                Task::Append(split, shard, closes, group) => self.append(split, shard, closes, group),
                Task::EncodeGroup(job) => self.encode_group(job),
                Task::EncodeBatch => self.encode_batch(),
                Task::Leave => return,
            };
            if let Err(error) = result {
                self.board().failed.get_or_insert(error);
            }
            self.moved.notify_all();
        }
    }

    fn choose(&self) -> Task {
        let mut board = self.board();
        loop {
            if board.finished() {
                return Task::Leave;
            }
            if !board.appending {
                let next = board.next_append;
                if let Some((split, shard, closes, group)) = board.done.remove(&next) {
                    board.appending = true;
                    return Task::Append(split, shard, closes, group);
                }
            }
            if let Some(job) = board.full.pop_front() {
                return Task::EncodeGroup(job);
            }
            if !board.exhausted && board.batches < self.most_batches && board.groups < self.most_groups {
                board.batches += 1;
                return Task::EncodeBatch;
            }
            board = self.moved.wait_timeout(board, Duration::from_millis(200)).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn append(&self, split: Split, shard: usize, closes: bool, group: EncodedGroup) -> Result<(), Error> {
        let empty = ShardFacts::empty(split, self.encoder.facts());
        let mut shelf = self.shelf.lock().map_err(|_| Error::WorkerDied { step: "tokenize" })?;
        shelf.append(split, shard, group, self.groups, &empty)?;
        if closes {
            shelf.close(split)?;
        }
        drop(shelf);
        let mut board = self.board();
        board.appending = false;
        board.next_append += 1;
        board.groups -= 1;
        Ok(())
    }

    fn encode_group(&self, job: Job) -> Result<(), Error> {
        let Job { number, split, shard, closes_shard, group } = job;
        let encoded = self
            .groups
            .encode(group)
            .map_err(|source| Error::WriteParquet { path: PathBuf::from(shard_name(split, shard)), source })?;
        self.board().done.insert(number, (split, shard, closes_shard, encoded));
        Ok(())
    }

    fn encode_batch(&self) -> Result<(), Error> {
        let next = self.source.lock().map_err(|_| Error::WorkerDied { step: "tokenize" })?.next()?;
        let Some((number, batch)) = next else {
            let mut board = self.board();
            board.exhausted = true;
            board.batches -= 1;
            board.deal(self.config, self.encoder.facts().bos_id);
            return Ok(());
        };
        let mut encoded = Encoded {
            documents: Vec::with_capacity(batch.rows.len()),
            bytes: batch.bytes as u64,
            rejects: batch.rejects,
            ids_made: 0,
        };
        for row in batch.rows {
            let text = row.text();
            let ids = self.encoder.encode(text)?;
            let id = row.id.clone().unwrap_or_else(|| {
                encoded.ids_made += 1;
                format!("blake3:{}", &blake3::hash(text.as_bytes()).to_hex()[..32])
            });
            let split = if held_out(&id, self.config.held_out) { Split::Heldout } else { Split::Train };
            encoded.documents.push((id, split, ids));
        }
        let mut board = self.board();
        board.encoded.insert(number, encoded);
        board.deal(self.config, self.encoder.facts().bos_id);
        Ok(())
    }

    fn finish(self, out: &Path) -> Result<Summary, Error> {
        let board = self.board.into_inner().unwrap_or_else(PoisonError::into_inner);
        if let Some(error) = board.failed {
            return Err(error);
        }
        let mut shelf = self.shelf.into_inner().map_err(|_| Error::WorkerDied { step: "tokenize" })?;
        let mut summary = Summary {
            bytes: board.bytes,
            vocabulary: self.encoder.facts().vocabulary,
            rejects: board.rejects,
            ids_made: board.ids_made,
            slow_because: self.encoder.slow_because().map(str::to_owned),
            ..Summary::default()
        };
        for (split, into) in [(Split::Train, &mut summary.train), (Split::Heldout, &mut summary.heldout)] {
            shelf.close(split)?;
            into.shards = shelf.written.remove(&split).unwrap_or_default();
            into.documents = into.shards.iter().map(|shard| shard.documents).sum();
            into.tokens = into.shards.iter().map(|shard| shard.tokens).sum();
        }
        if summary.train.documents + summary.heldout.documents == 0 {
            return Err(Error::NothingLeft { documents: summary.rejects.total(), why: summary.rejects.told() });
        }
        let path = out.join("summary.json");
        let text = serde_json::to_string_pretty(&summary).expect("a summary is plain data") + "\n";
        std::fs::write(&path, text).map_err(Error::io("write", &path))?;
        Ok(summary)
    }
}

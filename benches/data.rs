//! Times the data side step by step: `cargo bench --bench data -- <step> ...`; see docs/data.md for the steps.
//! Wall time, CPU time and peak memory come from the system, so that a busy machine shows.
#![allow(clippy::unwrap_used)]

use repro::paper::batch::TokenSource;
use repro::paper::data::loader::{Loader, Order};
use repro::paper::data::rows::{Columns, Rows, parquet_files};
use repro::paper::data::shards::{Shard, Split, shard_files};
use repro::paper::data::tokenizer::encoder::Encoder;
use repro::paper::data::{corpus, tokenize, tokenizer};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// User and system CPU seconds of this process so far.
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default().to_owned();
    let ticks: Vec<f64> = after.split_whitespace().skip(11).take(2).filter_map(|tick| tick.parse().ok()).collect();
    ticks.iter().sum::<f64>() / 100.0
}

/// Peak resident memory in MB.
fn peak_mb() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    line.split_whitespace().nth(1).and_then(|kb| kb.parse::<f64>().ok()).unwrap_or(0.0) / 1024.0
}

struct Clock {
    wall: Instant,
    cpu: f64,
}

impl Clock {
    fn start() -> Self {
        Self { wall: Instant::now(), cpu: cpu_seconds() }
    }

    /// Wall and CPU seconds since the start.
    fn read(&self) -> (f64, f64) {
        (self.wall.elapsed().as_secs_f64(), cpu_seconds() - self.cpu)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["corpus", out, megabytes] => write_corpus(Path::new(out), megabytes.parse().unwrap()),
        ["folder", from, out] => take_folder(Path::new(from), Path::new(out)),
        ["tokenizer", corpus, out, vocabulary] => learn(Path::new(corpus), Path::new(out), vocabulary.parse().unwrap()),
        ["take-tokenizer", file, out] => take_tokenizer(Path::new(file), Path::new(out)),
        ["tokenize", corpus, tokenizer, out, runs] => {
            time_tokenize(Path::new(corpus), Path::new(tokenizer), Path::new(out), runs.parse().unwrap());
        }
        ["reference", corpus, tokenizer] => check_reference(Path::new(corpus), Path::new(tokenizer)),
        ["same", corpus, one, other] => same_ids(Path::new(corpus), Path::new(one), Path::new(other)),
        ["load", shards, seq_len, tokens] => time_load(Path::new(shards), seq_len.parse().unwrap(), tokens.parse().unwrap()),
        ["sums", shards] => sums(Path::new(shards)),
        _ => {
            println!("steps: corpus, folder, tokenizer, take-tokenizer, tokenize, reference, same, load, sums; see docs/data.md")
        }
    }
}

fn write_corpus(out: &Path, megabytes: u64) {
    let clock = Clock::start();
    let config = corpus::Config { bytes: megabytes * 1_000_000, ..Default::default() };
    let summary = corpus::run(&config, corpus::Inputs::default(), out, &mut |_| ()).unwrap();
    let (wall, cpu) = clock.read();
    println!(
        "corpus     {} documents, {} bytes: {wall:.2} s ({:.0} MB/s), {cpu:.2} s CPU",
        summary.documents,
        summary.bytes,
        megabytes as f64 / wall
    );
}

fn take_folder(from: &Path, out: &Path) {
    let config = corpus::Config { from: corpus::From::Folder, bytes: 0, file_bytes: 200_000_000, ..Default::default() };
    let summary = corpus::run(&config, corpus::Inputs { folder: Some(from) }, out, &mut |_| ()).unwrap();
    println!("folder     {} documents, {} bytes; rejected: {}", summary.documents, summary.bytes, summary.rejects.told());
}

fn learn(corpus: &Path, out: &Path, vocabulary: usize) {
    let clock = Clock::start();
    let config = tokenizer::Config { vocabulary, ..Default::default() };
    let facts = tokenizer::run(&config, tokenizer::Inputs { corpus: Some(corpus), file: None }, out, &mut |_| ()).unwrap();
    let (wall, cpu) = clock.read();
    println!("tokenizer  {} tokens, digest {}: {wall:.2} s, {cpu:.2} s CPU", facts.vocabulary, &facts.digest[..16]);
}

fn take_tokenizer(file: &Path, out: &Path) {
    let config = tokenizer::Config { from: tokenizer::From::File, ..Default::default() };
    let facts = tokenizer::run(&config, tokenizer::Inputs { corpus: None, file: Some(file) }, out, &mut |_| ()).unwrap();
    println!("tokenizer  {facts:?}");
}

fn time_tokenize(corpus: &Path, tokenizer: &Path, out: &Path, runs: usize) {
    let clock = Clock::start();
    let mut encoder = Encoder::open(tokenizer).unwrap();
    let (load, _) = clock.read();
    // Run 0 starts with empty caches; it is the one that counts.
    for run in 0..runs {
        let clock = Clock::start();
        let config = tokenize::Config { held_out: 1000, ..Default::default() };
        let summary = tokenize::run_with(&config, &mut encoder, corpus, out, &mut |_| ()).unwrap();
        let (wall, cpu) = clock.read();
        let tokens = summary.train.tokens + summary.heldout.tokens;
        let megabytes = summary.bytes as f64 / 1e6;
        println!(
            "tokenize   run {run}: {megabytes:.1} MB, {tokens} tokens: {wall:.3} s ({:.0} MB/s, {:.0} MB/s with loading), {cpu:.2} s CPU, load {load:.2} s, peak {:.0} MB{}",
            megabytes / wall,
            megabytes / (wall + load),
            peak_mb(),
            encoder.slow_because().map(|why| format!(", by the reference: {why}")).unwrap_or_default()
        );
    }
}

/// Every document of the corpus, both ways.
fn check_reference(corpus: &Path, tokenizer: &Path) {
    let encoder = Encoder::open(tokenizer).unwrap();
    assert_eq!(encoder.slow_because(), None, "the fast encoder is in use");
    let clock = Clock::start();
    let texts = texts(corpus);
    let bytes: usize = texts.iter().map(String::len).sum();
    use rayon::prelude::*;
    let tokens: usize = texts
        .par_iter()
        .map(|text| {
            let (fast, reference) = (encoder.encode(text).unwrap(), encoder.encode_reference(text).unwrap());
            assert!(
                fast == reference,
                "the ids differ in the document that begins {:?}",
                text.chars().take(60).collect::<String>()
            );
            assert!(
                encoder.decode(&fast).unwrap() == *text,
                "the text does not come back: {:?}",
                text.chars().take(60).collect::<String>()
            );
            fast.len()
        })
        .sum();
    let (wall, cpu) = clock.read();
    println!("reference  {bytes} bytes, {tokens} ids identical to tokenizers 0.23, texts come back: {wall:.1} s, {cpu:.1} s CPU");
}

/// Two tokenizers give the same ids on all of a corpus.
fn same_ids(corpus: &Path, one: &Path, other: &Path) {
    let (one, other) = (Encoder::open(one).unwrap(), Encoder::open(other).unwrap());
    let mut tokens = 0;
    for text in texts(corpus) {
        let (a, b) = (one.encode(&text).unwrap(), other.encode(&text).unwrap());
        assert!(a == b, "the ids differ in the document that begins {:?}", text.chars().take(60).collect::<String>());
        tokens += a.len();
    }
    println!("same       {tokens} ids identical by both tokenizers");
}

/// Documents, tokens and the sum of all ids per split, for others to agree with.
fn sums(shards: &Path) {
    for split in [Split::Train, Split::Heldout] {
        let (mut documents, mut tokens, mut sum) = (0, 0, 0u64);
        for file in shard_files(shards, split).unwrap() {
            let shard = Shard::open(&file).unwrap();
            for group in 0..shard.facts.row_groups.len() {
                let (ids, counts) = shard.read(group).unwrap();
                documents += counts.len();
                tokens += ids.len();
                sum += ids.iter().map(|&id| u64::from(id)).sum::<u64>();
            }
        }
        println!("{} {documents} {tokens} {sum}", split.folder());
    }
}

fn texts(corpus: &Path) -> Vec<String> {
    let files: Vec<PathBuf> = parquet_files(corpus).unwrap();
    let mut texts = Vec::new();
    for file in files {
        let mut rows = Rows::open(&file, &Columns { text: "text".into(), id: None }).unwrap();
        while let Some(batch) = rows.next(1 << 20).unwrap() {
            texts.extend(batch.rows.iter().map(|row| row.text().to_owned()));
        }
    }
    texts
}

fn time_load(shards: &Path, seq_len: usize, tokens: u64) {
    for (order, name) in [(Order::Shuffled { seed: 0 }, "shuffled"), (Order::Fixed, "fixed")] {
        for readers in [1, 2] {
            let mut loader = Loader::open(shards, Split::Train, order, readers).unwrap();
            let rows = (1 << 19) / seq_len;
            let clock = Clock::start();
            let (mut seen, mut sum) = (0, 0u64);
            while seen < tokens {
                let batch = loader.next_batch(rows, seq_len).unwrap();
                sum = sum.wrapping_add(u64::from(batch.tokens[batch.tokens.len() / 2]));
                seen += (rows * seq_len) as u64;
            }
            let (wall, cpu) = clock.read();
            println!(
                "load       {name}, {readers} readers: {:.0} M tokens/s over {seen} tokens ({:.1} epochs), {cpu:.2} s CPU, peak {:.0} MB, sum {sum}",
                seen as f64 / wall / 1e6,
                seen as f64 / loader.tokens() as f64,
                peak_mb()
            );
        }
    }
}

//! Measures how rich a text is: how its vocabulary grows, how far it compresses, what longer contexts gain, how much repeats.
//! Reads no files; `look` feeds it.

use super::random::mix;
use serde::Serialize;
use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};

/// For keys that are hashes already.
#[derive(Default)]
pub struct AsIs(u64);

impl Hasher for AsIs {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = mix(self.0 ^ u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = value;
    }
}

type Counts<V> = HashMap<u64, V, BuildHasherDefault<AsIs>>;

/// What one length of context has seen: per context how often and with how many followers, per context and follower how often.
#[derive(Clone, Default)]
struct Model {
    contexts: Counts<(u32, u32)>,
    pairs: Counts<u32>,
}

/// What one order of context is worth.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Entropy {
    /// Symbols of context: 0 knows only how common each symbol is.
    pub context: usize,
    /// Cross-entropy on text not counted, in bits per symbol.
    pub bits: f64,
}

/// Held-out cross-entropy of n-gram models with 0 to `longest` symbols of context, each backing off to the shorter one
/// in the measure in which its context was seen with new followers (Witten-Bell).
pub fn entropies(train: &[u32], test: &[u32], alphabet: usize, longest: usize) -> Vec<Entropy> {
    let mut bits = vec![0.0; longest + 1];
    let mut models = vec![Model::default(); longest + 1];
    for (context, model) in models.iter_mut().enumerate() {
        for at in context..train.len() {
            let key = key(&train[at - context..at]);
            let pair = model.pairs.entry(mix(key ^ u64::from(train[at]))).or_default();
            let total = model.contexts.entry(key).or_default();
            total.0 += 1;
            total.1 += u32::from(*pair == 0);
            *pair += 1;
        }
    }
    let scored = test.len().saturating_sub(longest).max(1);
    for at in longest..test.len() {
        let mut probability = 1.0 / alphabet as f64;
        for (context, model) in models.iter().enumerate() {
            let key = key(&test[at - context..at]);
            if let Some(&(total, kinds)) = model.contexts.get(&key) {
                let seen = model.pairs.get(&mix(key ^ u64::from(test[at]))).copied().unwrap_or(0);
                probability = (f64::from(seen) + f64::from(kinds) * probability) / f64::from(total + kinds);
            }
            bits[context] -= probability.log2();
        }
    }
    bits.into_iter().enumerate().map(|(context, bits)| Entropy { context, bits: bits / scored as f64 }).collect()
}

fn key(context: &[u32]) -> u64 {
    context.iter().fold(context.len() as u64, |key, &symbol| mix(key ^ u64::from(symbol)))
}

/// Counts words as they come, and how many were new at each size of text.
#[derive(Default)]
pub struct Vocabulary {
    counts: HashMap<String, u64>,
    words: u64,
    /// `(words seen, distinct words)` at each doubling.
    growth: Vec<(u64, u64)>,
    next: u64,
}

#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Words {
    pub words: u64,
    pub distinct: u64,
    /// Words that occur once.
    pub once: u64,
    /// b in `distinct = k words^b` over the last four doublings: Heaps. English prose has 0.4 to 0.6.
    pub heaps: f64,
    /// s in `count = k / rank^s` over ranks 10 to 1000: Zipf. English prose has about 1.
    pub zipf: f64,
    pub commonest: Vec<(String, u64)>,
}

impl Vocabulary {
    pub fn add(&mut self, text: &str) {
        for word in text.split(|letter: char| !letter.is_alphanumeric() && letter != '\'').filter(|word| !word.is_empty()) {
            let word = word.to_lowercase();
            self.words += 1;
            *self.counts.entry(word).or_default() += 1;
            if self.words >= self.next {
                self.growth.push((self.words, self.counts.len() as u64));
                self.next = (self.words * 2).max(1024);
            }
        }
    }

    pub fn finish(self) -> Words {
        let distinct = self.counts.len() as u64;
        let once = self.counts.values().filter(|&&count| count == 1).count() as u64;
        let mut growth = self.growth;
        growth.push((self.words, distinct));
        let tail: Vec<(f64, f64)> =
            growth.iter().rev().take(5).map(|&(words, distinct)| ((words as f64).ln(), (distinct as f64).ln())).collect();
        let mut ranked: Vec<(String, u64)> = self.counts.into_iter().collect();
        ranked.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let middle: Vec<(f64, f64)> = ranked
            .iter()
            .enumerate()
            .skip(9)
            .take(991)
            .map(|(rank, (_, count))| (((rank + 1) as f64).ln(), (*count as f64).ln()))
            .collect();
        ranked.truncate(10);
        Words { words: self.words, distinct, once, heaps: slope(&tail), zipf: -slope(&middle), commonest: ranked }
    }
}

/// Slope of the least-squares line; 0 where there is none.
fn slope(points: &[(f64, f64)]) -> f64 {
    let count = points.len() as f64;
    let mean = |value: &dyn Fn(&(f64, f64)) -> f64| points.iter().map(value).sum::<f64>() / count;
    let (x, y) = (mean(&|point| point.0), mean(&|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    if points.len() < 2 || spread == 0.0 {
        return 0.0;
    }
    points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum::<f64>() / spread
}

/// Finds documents and sentences met before.
#[derive(Default)]
pub struct Repeats {
    documents: HashSet<u64, BuildHasherDefault<AsIs>>,
    sentences: HashSet<u64, BuildHasherDefault<AsIs>>,
    document_count: u64,
    sentence_count: u64,
}

/// Sentences shorter than this repeat in any text: `yes`, `well done`.
const SHORTEST_SENTENCE: usize = 25;

impl Repeats {
    pub fn add(&mut self, text: &str) {
        self.document_count += 1;
        self.documents.insert(short_hash(text));
        for sentence in text.split_inclusive(['.', '?', '!', '\n']).map(str::trim).filter(|part| part.len() >= SHORTEST_SENTENCE)
        {
            self.sentence_count += 1;
            self.sentences.insert(short_hash(sentence));
        }
    }

    /// The shares of documents and of sentences that were met before.
    pub fn finish(&self) -> (f64, f64) {
        let share = |distinct: usize, count: u64| if count == 0 { 0.0 } else { 1.0 - distinct as f64 / count as f64 };
        (share(self.documents.len(), self.document_count), share(self.sentences.len(), self.sentence_count))
    }
}

fn short_hash(text: &str) -> u64 {
    let hash = blake3::hash(text.as_bytes());
    u64::from_le_bytes(*hash.as_bytes().first_chunk::<8>().expect("a hash has 32 bytes"))
}

/// Counts by powers of two: `(from, count)`, up to the largest that occurs.
#[derive(Clone, Debug, Default)]
pub struct Histogram {
    bins: Vec<u64>,
}

impl Histogram {
    pub fn add(&mut self, value: u64) {
        let bin = (64 - value.leading_zeros()) as usize;
        if self.bins.len() <= bin {
            self.bins.resize(bin + 1, 0);
        }
        self.bins[bin] += 1;
    }

    /// Bins from the smallest to the largest value met: the least value of each and its count.
    pub fn finish(&self) -> Vec<(u64, u64)> {
        let first = self.bins.iter().position(|&count| count > 0).unwrap_or(0);
        (first..self.bins.len()).map(|bin| (if bin == 0 { 0 } else { 1 << (bin - 1) }, self.bins[bin])).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::paper::data::random::Random;

    #[test]
    fn a_coin_has_one_bit_and_a_rhythm_none() {
        let mut random = Random::new(&[1]);
        let coin: Vec<u32> = (0..40_000).map(|_| random.below(2) as u32).collect();
        let rhythm: Vec<u32> = (0..40_000).map(|at| at % 2).collect();
        let coin = entropies(&coin[..30_000], &coin[30_000..], 2, 2);
        assert!(coin.iter().all(|entropy| (entropy.bits - 1.0).abs() < 0.01), "{coin:?}");
        let rhythm = entropies(&rhythm[..30_000], &rhythm[30_000..], 2, 2);
        assert!((rhythm[0].bits - 1.0).abs() < 0.01 && rhythm[1].bits < 0.01, "{rhythm:?}");
    }

    #[test]
    fn repeats_are_shares() {
        let mut repeats = Repeats::default();
        for text in
            ["This is a sentence of some length.", "This is a sentence of some length.", "Here is another sentence, also long."]
        {
            repeats.add(text);
        }
        let (documents, sentences) = repeats.finish();
        assert!((documents - 1.0 / 3.0).abs() < 1e-9 && (sentences - 1.0 / 3.0).abs() < 1e-9);
    }

    #[test]
    fn a_histogram_counts_by_powers_of_two() {
        let mut histogram = Histogram::default();
        [3, 4, 5, 7, 8].into_iter().for_each(|value| histogram.add(value));
        assert_eq!(histogram.finish(), [(2, 1), (4, 3), (8, 1)]);
    }
}

//! Invented names. Each land has sounds of its own, so that a name hints at where its bearer comes from.

use crate::paper::data::random::Random;
use std::collections::HashSet;

/// The sounds of one language: which letters open, carry and close its syllables.
#[derive(Clone, Debug)]
pub struct Tongue {
    onsets: Vec<&'static str>,
    vowels: Vec<&'static str>,
    codas: Vec<&'static str>,
    pub town_endings: Vec<&'static str>,
}

const ONSETS: &[&str] = &[
    "b", "br", "c", "d", "dr", "f", "g", "gr", "h", "j", "k", "kr", "l", "m", "n", "p", "pr", "qu", "r", "s", "sh", "sk", "st",
    "t", "th", "tr", "v", "w", "y", "z",
];
const VOWELS: &[&str] = &["a", "e", "i", "o", "u", "ae", "ai", "ea", "ia", "ou", "y"];
const CODAS: &[&str] = &["", "", "", "l", "n", "r", "s", "m", "t", "nd", "rn", "sk", "th", "x", "lm", "rk"];
const TOWN_ENDINGS: &[&str] = &[
    "ton", "ford", "mar", "wick", "holm", "gate", "by", "stead", "haven", "burg", "dale", "mouth", "keep", "port", "field",
    "ness",
];

fn some_of(random: &mut Random, from: &[&'static str], count: usize) -> Vec<&'static str> {
    let mut all = from.to_vec();
    random.shuffle(&mut all);
    all.truncate(count);
    all
}

impl Tongue {
    pub fn new(random: &mut Random) -> Self {
        Self {
            onsets: some_of(random, ONSETS, 11),
            vowels: some_of(random, VOWELS, 4),
            codas: some_of(random, CODAS, 6),
            town_endings: some_of(random, TOWN_ENDINGS, 4),
        }
    }

    /// A word of so many syllables, lower case.
    pub fn word(&self, random: &mut Random, syllables: usize) -> String {
        let mut word = String::new();
        for at in 0..syllables {
            word.push_str(self.onsets[random.zipf(self.onsets.len())]);
            word.push_str(self.vowels[random.zipf(self.vowels.len())]);
            // Codas inside a word make it hard to say, so most fall at its end.
            if at + 1 == syllables || random.chance(0.25) {
                word.push_str(self.codas[random.below(self.codas.len())]);
            }
        }
        word
    }
}

/// Hands out words that no one bears yet.
#[derive(Default)]
pub struct Register {
    taken: HashSet<String>,
}

impl Register {
    /// Calls `coin` with a growing number of syllables until it gives a new word.
    pub fn fresh(&mut self, mut coin: impl FnMut(usize) -> String) -> String {
        for attempt in 0.. {
            let word = coin(attempt / 8);
            if word.len() >= 3 && self.taken.insert(word.clone()) {
                return word;
            }
        }
        unreachable!("words of growing length never run out")
    }
}

pub fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

//! Writes one document about the world: decides its kind and its length, and leaves the sentences to the files beside it.

mod facts;
mod prose;
mod reasoning;

use super::pen::Pen;
use super::world::World;
use crate::paper::data::random::Random;

/// What a document is about, and how much of the corpus it makes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Genre {
    Article,
    Quiz,
    Comparison,
    Timeline,
    Glossary,
    Essay,
    Causes,
    Dialogue,
    Ledger,
    Chains,
    Problems,
    Arithmetic,
    Proofs,
}

const GENRES: &[(Genre, &str, f64)] = &[
    (Genre::Article, "article", 0.30),
    (Genre::Essay, "essay", 0.10),
    (Genre::Chains, "chains", 0.12),
    (Genre::Quiz, "quiz", 0.09),
    (Genre::Problems, "problems", 0.09),
    (Genre::Dialogue, "dialogue", 0.06),
    (Genre::Causes, "causes", 0.03),
    (Genre::Timeline, "timeline", 0.05),
    (Genre::Proofs, "proofs", 0.04),
    (Genre::Comparison, "comparison", 0.04),
    (Genre::Arithmetic, "arithmetic", 0.03),
    (Genre::Glossary, "glossary", 0.03),
    (Genre::Ledger, "ledger", 0.02),
];

/// A document as the corpus writes it.
pub struct Document {
    pub genre: &'static str,
    pub text: String,
}

/// How many authors share the writing.
const VOICES: usize = 200;
/// Lengths in bytes: half the documents are shorter than the median, none longer than the ceiling.
const MEDIAN_BYTES: f64 = 1100.0;
const CEILING_BYTES: f64 = 16_000.0;

/// Document `number` of the corpus of `seed`: the same text whoever asks, in whatever order.
pub fn write(world: &World, seed: u64, number: u64) -> Document {
    let mut random = Random::new(&[seed, 0x0064_6f63, number]);
    let (mut at, mut left) = (0, random.unit());
    while at + 1 < GENRES.len() && left >= GENRES[at].2 {
        left -= GENRES[at].2;
        at += 1;
    }
    let (genre, name, _) = GENRES[at];
    // The sum of three uniforms is near enough to a normal curve for lengths.
    let bell = random.unit() + random.unit() + random.unit() - 1.5;
    let length = (MEDIAN_BYTES * (bell * 1.7).exp()).min(CEILING_BYTES) as usize;

    let mut pen = Pen::new(random, VOICES);
    match genre {
        Genre::Article => facts::article(world, &mut pen, length),
        Genre::Quiz => facts::quiz(world, &mut pen, length),
        Genre::Comparison => facts::comparison(world, &mut pen, length),
        Genre::Timeline => facts::timeline(world, &mut pen, length),
        Genre::Glossary => facts::glossary(world, &mut pen, length),
        Genre::Essay => prose::essay(&mut pen, length),
        Genre::Causes => prose::causes(world, &mut pen, length),
        Genre::Dialogue => prose::dialogue(world, &mut pen, length),
        Genre::Ledger => prose::ledger(world, &mut pen, length),
        Genre::Chains => reasoning::chains(world, &mut pen, length),
        Genre::Problems => reasoning::problems(world, &mut pen, length),
        Genre::Arithmetic => reasoning::arithmetic(&mut pen, length),
        Genre::Proofs => reasoning::proofs(world, &mut pen, length),
    }
    Document { genre: name, text: pen.finish() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shares_of_the_genres_add_up() {
        let total: f64 = GENRES.iter().map(|(_, _, share)| share).sum();
        assert!((total - 1.0).abs() < 1e-9, "{total}");
    }

    #[test]
    fn no_template_is_broken_and_every_genre_is_written() {
        let world = World::new(11, 300);
        let mut seen = std::collections::BTreeSet::new();
        for number in 0..3000 {
            let document = write(&world, 11, number);
            seen.insert(document.genre);
            assert!(document.text.len() > 40, "{}: {}", document.genre, document.text);
            for stray in ['{', '}', '[', ']', '|'] {
                assert!(!document.text.contains(stray), "{}: {}", document.genre, document.text);
            }
            assert!(!document.text.contains("  "), "{}: {}", document.genre, document.text);
            assert!(!document.text.contains(" ."), "{}: {}", document.genre, document.text);
        }
        assert_eq!(seen.len(), GENRES.len());
    }
}

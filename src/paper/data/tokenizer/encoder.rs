//! Turns documents into ids and back. The fast encoder does the work once it has agreed with the reference on this tokenizer and this text.
//!
//! Documents are ordinary text: a special token spelled out in one stays spelled out. Begin-of-text is ours to add, once per document.

use super::{FACTS, Facts, JSON};
use crate::paper::data::Error;
use fastokens::AddedTokenPolicy;
use std::path::Path;
use std::sync::Arc;
use tokenizers::Tokenizer;

pub struct Encoder {
    reference: Arc<Tokenizer>,
    /// `None` where it could not be built or did not agree.
    fast: Option<Arc<fastokens::Tokenizer>>,
    /// Why the reference does the work, if it does.
    slow_because: Option<String>,
    facts: Facts,
}

/// Texts on which encoders like to differ: contractions, digits, white space, other scripts, composed letters, special tokens spelled out.
const TRICKY: &[&str] = &[
    "",
    " ",
    "\n\n \t\r\n  x",
    "It's 12345678 o'clock; THEY'LL say \"don't\"...",
    "<|begin_of_text|>not a token<|end_of_text|> <s></s> <|endoftext|>",
    "naïve café e\u{301} Ångström ﬁne \u{a0}\u{3000}x",
    "日本語のテキスト한국어 עברית العربية ไทย हिन्दी",
    "👩‍👩‍👧‍👦 🏳️‍🌈 🇩🇪 ½ Ⅷ ²³ ٣٤٥",
    "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
    "x = {'a': [1, 2.5e-3]}; // ==> \\n ????!!!! ______",
    "ſſ K İı ß\u{200b}\u{feff}\u{0}",
];

impl Encoder {
    /// Reads the output of the tokenizer step.
    pub fn open(folder: &Path) -> Result<Self, Error> {
        let path = folder.join(FACTS);
        let text = std::fs::read_to_string(&path).map_err(Error::io("read", &path))?;
        let facts: Facts = serde_json::from_str(&text).map_err(|error| Error::BadTokenizer { path, what: error.to_string() })?;
        let path = folder.join(JSON);
        let json = std::fs::read(&path).map_err(Error::io("read", &path))?;
        let bad = |what: String| Error::BadTokenizer { path: path.clone(), what };
        if blake3::hash(&json).to_hex().as_str() != facts.digest {
            return Err(bad(format!("it is not the file that `{FACTS}` beside it describes; run the tokenizer step again")));
        }
        // Both take a while to build for a large vocabulary, and neither needs the other.
        let (reference, fast) = std::thread::scope(|scope| {
            let fast = scope.spawn(|| {
                let value = serde_json::from_slice(&json).map_err(|error| error.to_string())?;
                fastokens::Tokenizer::from_json(value).map_err(|error| error.to_string())
            });
            (Tokenizer::from_bytes(&json), fast.join().unwrap_or_else(|_| Err("it panicked while loading".into())))
        });
        let mut reference = reference.map_err(|error| bad(format!("not a tokenizer.json: {error}")))?;
        reference.set_encode_special_tokens(true);
        reference.with_padding(None);
        reference.with_truncation(None).map_err(|error| bad(error.to_string()))?;
        let (fast, slow_because) = match fast {
            Ok(mut fast) => {
                fast.set_padding(None);
                fast.set_truncation(None);
                (Some(Arc::new(fast)), None)
            }
            Err(why) => (None, Some(format!("the fast encoder cannot load it: {why}"))),
        };
        let mut encoder = Self { reference: Arc::new(reference), fast, slow_because, facts };
        encoder.compare(TRICKY.iter().copied())?;
        Ok(encoder)
    }

    pub fn facts(&self) -> &Facts {
        &self.facts
    }

    /// Why the reference encodes instead of the fast encoder; `None` when the fast one does.
    pub fn slow_because(&self) -> Option<&str> {
        self.slow_because.as_deref()
    }

    /// Sends all work to the reference: for tests and benchmarks.
    pub fn use_reference(&mut self) {
        self.fast = None;
        self.slow_because = Some("asked to".into());
    }

    /// Encodes the texts both ways, and drops the fast encoder at the first difference.
    pub fn compare<'a>(&mut self, texts: impl IntoIterator<Item = &'a str>) -> Result<(), Error> {
        for text in texts {
            let Some(fast) = &self.fast else { break };
            let fast = encode_fast(fast, text);
            if fast.as_deref().ok() != Some(self.encode_reference(text)?.as_slice()) {
                let shown: String = text.chars().take(40).collect();
                self.slow_because = Some(format!("the fast encoder differs from the reference on {shown:?}"));
                self.fast = None;
            }
        }
        Ok(())
    }

    /// The ids of a document, without begin-of-text.
    pub fn encode(&self, text: &str) -> Result<Vec<u32>, Error> {
        let Some(fast) = &self.fast else { return self.encode_reference(text) };
        encode_fast(fast, text).map_err(|what| Error::Encode { document: text.chars().take(40).collect(), what })
    }

    /// The ids by the reference, without begin-of-text.
    pub fn encode_reference(&self, text: &str) -> Result<Vec<u32>, Error> {
        let encoding = self.reference.encode_fast(text, false);
        let encoding =
            encoding.map_err(|error| Error::Encode { document: text.chars().take(40).collect(), what: error.to_string() })?;
        Ok(encoding.get_ids().to_vec())
    }

    /// The text of some ids; a leading begin-of-text is taken off.
    pub fn decode(&self, ids: &[u32]) -> Result<String, Error> {
        let ids = ids.strip_prefix(&[self.facts.bos_id]).unwrap_or(ids);
        self.reference
            .decode(ids, false)
            .map_err(|error| Error::Encode { document: format!("{} ids", ids.len()), what: error.to_string() })
    }

    /// The text of one token, for people to look at.
    pub fn token(&self, id: u32) -> String {
        self.reference.decode(&[id], false).unwrap_or_default()
    }
}

fn encode_fast(fast: &fastokens::Tokenizer, text: &str) -> Result<Vec<u32>, String> {
    fast.encode_with_policy(text, false, AddedTokenPolicy::SkipSpecial).map_err(|error| error.to_string())
}

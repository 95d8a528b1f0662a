//! Turns templates into sentences in one author's voice. Knows grammar and chance; knows nothing of the world.
//!
//! A template is text with `{slot}` for a value, `{a:slot}` for the value with its article, and `[this|that|]` for a choice,
//! which may nest and may be empty. An author has habits: at each choice a favourite, taken more often than the rest.

use crate::paper::data::random::{Random, mix};

/// One document being written.
pub struct Pen {
    pub random: Random,
    voice: u64,
    text: String,
    /// A paragraph has begun and holds no sentence yet.
    fresh: bool,
}

/// How often an author takes the favourite.
const HABIT: f64 = 0.55;

pub fn article(noun: &str) -> &'static str {
    match noun.bytes().next().map(|first| first.to_ascii_lowercase()) {
        Some(b'a' | b'e' | b'i' | b'o' | b'u') => "an",
        _ => "a",
    }
}

pub fn plural(noun: &str) -> String {
    let stem = |cut: usize| &noun[..noun.len() - cut];
    if noun == "ox" {
        "oxen".into()
    } else if noun.ends_with("fish") || noun.ends_with("deer") {
        noun.into()
    } else if noun.ends_with("sh") || noun.ends_with("ch") || noun.ends_with('s') || noun.ends_with('x') {
        format!("{noun}es")
    } else if noun.ends_with("af") {
        format!("{}ves", stem(1))
    } else if noun == "knife" {
        "knives".into()
    } else if noun.ends_with('y') && !noun.ends_with("ay") && !noun.ends_with("ey") {
        format!("{}ies", stem(1))
    } else {
        format!("{noun}s")
    }
}

/// Hash of a choice's text: which choice it is, whatever the run or the machine.
fn site(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

/// The end of the bracket that opens at the start of `text`.
fn closing(text: &str) -> usize {
    let mut depth = 0usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => {
                depth -= 1;
                if depth == 0 {
                    return at;
                }
            }
            _ => {}
        }
    }
    panic!("a template leaves a bracket open: {text}")
}

/// The alternatives of a choice, cut at the bars that are not inside an inner choice.
fn alternatives(inside: &str) -> Vec<&str> {
    let (mut parts, mut depth, mut start) = (Vec::with_capacity(4), 0usize, 0);
    for (at, byte) in inside.bytes().enumerate() {
        match byte {
            b'[' => depth += 1,
            b']' => depth -= 1,
            b'|' if depth == 0 => {
                parts.push(&inside[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    parts.push(&inside[start..]);
    parts
}

impl Pen {
    /// `voices` authors share the writing; the document's own numbers decide which of them writes it.
    pub fn new(mut random: Random, voices: usize) -> Self {
        let voice = mix(random.zipf(voices) as u64);
        Self { random, voice, text: String::with_capacity(4096), fresh: true }
    }

    pub fn len(&self) -> usize {
        self.text.len()
    }

    pub fn finish(mut self) -> String {
        self.text.truncate(self.text.trim_end().len());
        self.text
    }

    /// Fills a template without writing it down.
    pub fn fill(&mut self, template: &str, slots: &[(&str, &str)]) -> String {
        let mut out = String::with_capacity(template.len() + 32);
        self.expand(template, slots, &mut out);
        out
    }

    fn expand(&mut self, template: &str, slots: &[(&str, &str)], out: &mut String) {
        let mut rest = template;
        while let Some(at) = rest.find(['{', '[']) {
            out.push_str(&rest[..at]);
            rest = &rest[at..];
            if rest.starts_with('{') {
                let end = rest.find('}').expect("a template closes its slots");
                let (form, name) = rest[1..end].split_once(':').unwrap_or(("", &rest[1..end]));
                let value = slots.iter().find(|(slot, _)| *slot == name).map(|(_, value)| *value);
                let value = value.unwrap_or_else(|| panic!("no value for slot `{name}` in template `{template}`"));
                if form == "a" {
                    out.push_str(article(value));
                    out.push(' ');
                }
                out.push_str(value);
                rest = &rest[end + 1..];
            } else {
                let end = closing(rest);
                let inside = &rest[1..end];
                let parts = alternatives(inside);
                let chosen = if self.random.chance(HABIT) {
                    (mix(self.voice ^ site(inside)) % parts.len() as u64) as usize
                } else {
                    self.random.zipf(parts.len())
                };
                self.expand(parts[chosen], slots, out);
                rest = &rest[end + 1..];
            }
        }
        out.push_str(rest);
    }

    /// Writes a sentence: capital first, a space before it, a full stop unless it ends in a mark of its own.
    pub fn say(&mut self, template: &str, slots: &[(&str, &str)]) {
        let sentence = self.fill(template, slots);
        self.put(&sentence);
    }

    /// Writes a finished sentence.
    pub fn put(&mut self, sentence: &str) {
        let sentence = sentence.trim();
        if sentence.is_empty() {
            return;
        }
        if !self.fresh {
            self.text.push(' ');
        }
        self.fresh = false;
        let mut letters = sentence.chars();
        if let Some(first) = letters.next() {
            self.text.extend(first.to_uppercase());
            self.text.push_str(letters.as_str());
        }
        if !sentence.ends_with(['.', '?', '!', ':', '"']) {
            self.text.push('.');
        }
    }

    pub fn paragraph(&mut self) {
        if !self.fresh {
            self.text.push_str("\n\n");
            self.fresh = true;
        }
    }

    /// Begins a new line in the same paragraph, for lists and tables.
    pub fn line(&mut self) {
        if !self.fresh {
            self.text.push('\n');
            self.fresh = true;
        }
    }

    pub fn title(&mut self, title: &str) {
        self.paragraph();
        let mut letters = title.chars();
        if let Some(first) = letters.next() {
            self.text.extend(first.to_uppercase());
            self.text.push_str(letters.as_str());
        }
        self.fresh = false;
        self.paragraph();
    }

    /// One of several templates, by the author's habit. Not for choices of content: those are `random`'s.
    pub fn choose<'a>(&mut self, templates: &[&'a str]) -> &'a str {
        let at = if self.random.chance(HABIT) {
            (mix(self.voice ^ site(templates[0])) % templates.len() as u64) as usize
        } else {
            self.random.zipf(templates.len())
        };
        templates[at]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pen() -> Pen {
        Pen::new(Random::new(&[1]), 10)
    }

    #[test]
    fn slots_take_their_article() {
        assert_eq!(pen().fill("{a:x} and {a:y}, {x}", &[("x", "owl"), ("y", "bear")]), "an owl and a bear, owl");
    }

    #[test]
    fn every_alternative_of_a_choice_is_met() {
        let mut pen = pen();
        let seen: std::collections::BTreeSet<String> = (0..200).map(|_| pen.fill("[a|b [c|d]|]", &[])).collect();
        assert_eq!(seen.into_iter().collect::<Vec<_>>(), ["", "a", "b c", "b d"]);
    }

    #[test]
    fn sentences_and_paragraphs_are_set_apart() {
        let mut pen = pen();
        pen.title("on owls");
        pen.say("an owl", &[]);
        pen.say("is it?", &[]);
        pen.paragraph();
        pen.say("yes", &[]);
        assert_eq!(pen.finish(), "On owls\n\nAn owl. Is it?\n\nYes.");
    }

    #[test]
    fn plurals_follow_the_spelling() {
        for (one, many) in
            [("harvest", "harvests"), ("brush", "brushes"), ("city", "cities"), ("sheaf", "sheaves"), ("journey", "journeys")]
        {
            assert_eq!(plural(one), many);
        }
    }
}

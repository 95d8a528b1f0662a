//! Words on a chart: a tiny markup (`*italic*`, `^{up}`, `_{down}`), the embedded fonts, and how wide a text is.

use std::sync::OnceLock;

/// Subsets of Roboto, and of DejaVu Sans for the signs Roboto lacks; see fonts/README.md.
pub const FONTS: [&[u8]; 4] = [
    include_bytes!("../fonts/Roboto-Regular.ttf"),
    include_bytes!("../fonts/Roboto-Italic.ttf"),
    include_bytes!("../fonts/Roboto-Bold.ttf"),
    include_bytes!("../fonts/DejaVuSans-Math.ttf"),
];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Face {
    Regular,
    Italic,
}

/// A run of text that looks the same throughout.
#[derive(Clone, Debug, PartialEq)]
pub struct Span {
    pub text: String,
    pub face: Face,
    /// Size and height above the line, in sizes of the surrounding text.
    pub scale: f64,
    pub rise: f64,
}

/// Reads the markup. A brace or star that is not closed ends with the text.
pub fn spans(words: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut italic = false;
    let (mut scale, mut rise) = (1.0, 0.0);
    let mut text = String::new();
    let mut chars = words.chars().peekable();
    let mut flush = |text: &mut String, italic: bool, scale: f64, rise: f64| {
        if !text.is_empty() {
            let face = if italic { Face::Italic } else { Face::Regular };
            found.push(Span { text: std::mem::take(text), face, scale, rise });
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '*' => {
                flush(&mut text, italic, scale, rise);
                italic = !italic;
            }
            '^' | '_' if chars.peek() == Some(&'{') => {
                chars.next();
                flush(&mut text, italic, scale, rise);
                (scale, rise) = if c == '^' { (0.72, 0.36) } else { (0.72, -0.18) };
            }
            '}' if scale != 1.0 => {
                flush(&mut text, italic, scale, rise);
                (scale, rise) = (1.0, 0.0);
            }
            c => text.push(c),
        }
    }
    flush(&mut text, italic, scale, rise);
    found
}

/// The text without markup, for tips and labels read aloud.
pub fn plain(words: &str) -> String {
    spans(words).into_iter().map(|span| span.text).collect()
}

fn faces() -> &'static [ttf_parser::Face<'static>] {
    static FACES: OnceLock<Vec<ttf_parser::Face<'static>>> = OnceLock::new();
    FACES.get_or_init(|| {
        let parse = |data: &'static &[u8]| ttf_parser::Face::parse(data, 0).expect("the embedded fonts are whole");
        FONTS.iter().map(parse).collect()
    })
}

/// Width of a text in the units of `size`.
pub fn width(words: &str, size: f64, bold: bool) -> f64 {
    spans(words)
        .iter()
        .map(|span| {
            let first = match (span.face, bold) {
                (Face::Italic, _) => 1,
                (Face::Regular, true) => 2,
                (Face::Regular, false) => 0,
            };
            let sum: f64 = span.text.chars().map(|c| advance(first, c)).sum();
            sum * span.scale * size
        })
        .sum()
}

fn advance(first: usize, c: char) -> f64 {
    for face in [first, 0, 3] {
        let face = &faces()[face];
        if let Some(glyph) = face.glyph_index(c) {
            return f64::from(face.glyph_hor_advance(glyph).unwrap_or(0)) / f64::from(face.units_per_em());
        }
    }
    0.6
}

/// Breaks a text into lines no wider than `room`; a longer word stands alone.
pub fn wrap(words: &str, size: f64, room: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words.split_whitespace() {
        match lines.last_mut() {
            Some(line) if width(&format!("{line} {word}"), size, false) <= room => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_becomes_spans() {
        let found = spans("*N*^{-1} = 1/*N*");
        let texts: Vec<&str> = found.iter().map(|span| span.text.as_str()).collect();
        assert_eq!(texts, ["N", "-1", " = 1/", "N"]);
        assert_eq!((found[0].face, found[1].rise > 0.0, found[2].scale), (Face::Italic, true, 1.0));
        assert_eq!(plain("*η*_{0} (×10^{-3})"), "η0 (×10-3)");
    }

    #[test]
    fn every_sign_the_figures_use_has_a_glyph() {
        for c in "√∝‖Δηεαβλσ−×±≈≤≥–—·°…₀∞".chars() {
            assert!(faces().iter().any(|face| face.glyph_index(c).is_some()), "no glyph for {c}");
        }
    }

    #[test]
    fn wide_words_are_wider_and_lines_fit() {
        assert!(width("WWWW", 10.0, false) > width("iiii", 10.0, false));
        assert!(width("abc", 10.0, true) > 0.0);
        for line in wrap("a panel that has no data says so in words", 10.0, 80.0) {
            assert!(width(&line, 10.0, false) <= 80.0);
        }
    }
}

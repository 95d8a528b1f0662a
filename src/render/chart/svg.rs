//! Writes SVG elements. Every number has at most two digits after the point, so the same chart is the same bytes everywhere.

use std::fmt::Write as _;

use super::text::{Face, spans};

/// Colours of everything that is not data.
pub const INK: &str = "#222222";
pub const QUIET: &str = "#5b5b5b";
pub const GRID: &str = "#e4e4e4";

/// The families a reader may have, the embedded one first.
const FAMILIES: &str = "Roboto, 'Helvetica Neue', Helvetica, Arial, 'DejaVu Sans', sans-serif";

/// A drawing under construction.
pub struct Svg {
    out: String,
}

/// Where a text stands relative to its point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    Start,
    Middle,
    End,
}

impl Anchor {
    pub fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::Middle => "middle",
            Self::End => "end",
        }
    }
}

/// How a text looks.
#[derive(Clone, Copy, Debug)]
pub struct Style<'a> {
    pub size: f64,
    pub colour: &'a str,
    pub anchor: Anchor,
    pub bold: bool,
    /// Read from bottom to top.
    pub upright: bool,
}

impl<'a> Style<'a> {
    pub fn new(size: f64, anchor: Anchor) -> Style<'a> {
        Style { size, colour: INK, anchor, bold: false, upright: false }
    }
    pub fn colour(self, colour: &'a str) -> Style<'a> {
        Style { colour, ..self }
    }
    pub fn bold(self) -> Style<'a> {
        Style { bold: true, ..self }
    }
    pub fn upright(self) -> Style<'a> {
        Style { upright: true, ..self }
    }
}

/// A number as short as it can be at two digits after the point.
pub fn num(value: f64) -> String {
    let text = format!("{value:.2}");
    let text = text.trim_end_matches('0').trim_end_matches('.');
    if text == "-0" { "0".to_string() } else { text.to_string() }
}

pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            c => out.push(c),
        }
    }
    out
}

impl Svg {
    /// An empty drawing on white. `label` is read aloud to those who cannot see it.
    pub fn new(name: &str, label: &str, width: f64, height: f64) -> Svg {
        let (w, h) = (num(width), num(height));
        let label = escape(label);
        let mut out = String::new();
        let _ = write!(
            out,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"chart\" id=\"chart-{}\" role=\"img\" aria-label=\"{label}\" viewBox=\"0 0 {w} {h}\" \
             width=\"{w}\" height=\"{h}\" font-family=\"{FAMILIES}\" font-size=\"10\">\n\
             <rect class=\"paper\" width=\"{w}\" height=\"{h}\" fill=\"#ffffff\"/>\n",
            escape(name)
        );
        Svg { out }
    }

    pub fn finish(mut self) -> String {
        self.out.push_str("</svg>\n");
        self.out
    }

    pub fn raw(&mut self, text: &str) {
        self.out.push_str(text);
        self.out.push('\n');
    }

    pub fn line(&mut self, class: &str, from: (f64, f64), to: (f64, f64), colour: &str, width: f64) {
        let _ = writeln!(
            self.out,
            "<path class=\"{class}\" d=\"M{} {}L{} {}\" stroke=\"{colour}\" stroke-width=\"{}\" fill=\"none\"/>",
            num(from.0),
            num(from.1),
            num(to.0),
            num(to.1),
            num(width)
        );
    }

    pub fn rect(&mut self, class: &str, at: (f64, f64), size: (f64, f64), attributes: &str) {
        let _ = writeln!(
            self.out,
            "<rect class=\"{class}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" {attributes}/>",
            num(at.0),
            num(at.1),
            num(size.0),
            num(size.1)
        );
    }

    /// Something that stands for data: it tells its value when pointed at.
    pub fn mark(&mut self, shape: &str, tip: &str) {
        let tag = shape.split(' ').next().unwrap_or(shape);
        let tip = escape(tip);
        let _ = writeln!(self.out, "<{shape} class=\"mark\" data-tip=\"{tip}\"><title>{tip}</title></{tag}>");
    }

    /// A text in the markup of [`super::text`].
    pub fn text(&mut self, at: (f64, f64), style: Style, words: &str) {
        let (x, y) = (num(at.0), num(at.1));
        let place =
            if style.upright { format!("transform=\"translate({x} {y}) rotate(-90)\"") } else { format!("x=\"{x}\" y=\"{y}\"") };
        let weight = if style.bold { " font-weight=\"bold\"" } else { "" };
        let anchor = match style.anchor {
            Anchor::Start => String::new(),
            anchor => format!(" text-anchor=\"{}\"", anchor.name()),
        };
        let _ = write!(self.out, "<text {place} font-size=\"{}\" fill=\"{}\"{weight}{anchor}>", num(style.size), style.colour);
        let mut height = 0.0;
        for span in spans(words) {
            let rise = span.rise * style.size;
            let mut attributes = String::new();
            if span.face == Face::Italic {
                attributes.push_str(" font-style=\"italic\"");
            }
            if span.scale != 1.0 {
                let _ = write!(attributes, " font-size=\"{}\"", num(style.size * span.scale));
            }
            if rise != height {
                let _ = write!(attributes, " dy=\"{}\"", num(height - rise));
                height = rise;
            }
            let words = escape(&span.text);
            if attributes.is_empty() {
                self.out.push_str(&words);
            } else {
                let _ = write!(self.out, "<tspan{attributes}>{words}</tspan>");
            }
        }
        self.out.push_str("</text>\n");
    }
}

/// A path through points; a gap where one is not finite.
pub fn path(points: impl IntoIterator<Item = (f64, f64)>) -> String {
    let mut d = String::new();
    let mut pen_down = false;
    for (x, y) in points {
        if !(x.is_finite() && y.is_finite()) {
            pen_down = false;
            continue;
        }
        let _ = write!(d, "{}{} {}", if pen_down { 'L' } else { 'M' }, num(x), num(y));
        pen_down = true;
    }
    d
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_never_minus_zero() {
        assert_eq!([num(1.0), num(-0.001), num(12.345), num(0.1)], ["1", "0", "12.35", "0.1"].map(str::to_string));
    }

    #[test]
    fn a_hole_in_the_data_is_a_hole_in_the_line() {
        assert_eq!(path([(0.0, 1.0), (1.0, f64::NAN), (2.0, 3.0), (3.0, 4.0)]), "M0 1M2 3L3 4");
    }
}

//! The figures: each picture inline, its caption, the claims it bears on, and what stands behind it.

use std::path::Path;

use maud::{Markup, PreEscaped, html};
use serde::Deserialize;

use super::verdicts::{Verdicts, claim_links};
use super::{ReportError, anchor, list, read_text, stem, svg};

/// A picture and what `<name>.json` says of it.
#[derive(Clone, Debug, Default)]
pub struct Figure {
    pub name: String,
    pub title: String,
    pub caption: String,
    pub alt: String,
    pub claims: Vec<String>,
    pub tables: Vec<String>,
    /// Safe to stand in a page: see [`svg::inline`].
    pub svg: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct About {
    title: String,
    caption: String,
    alt: String,
    claims: Vec<String>,
    tables: Vec<String>,
}

/// The order in which the paper shows them; others follow by name.
const ORDER: [&str; 13] = [
    "energy",
    "cosine-deep",
    "cosine-looped",
    "lr-step",
    "multi-step-update",
    "lr-transfer",
    "optimum",
    "regret",
    "trained-cosine-N8",
    "trained-cosine-N4",
    "hidden-norm",
    "loss-curves",
    "theory-slopes",
];

pub fn read(folder: &Path) -> Result<Vec<Figure>, ReportError> {
    let mut figures = Vec::new();
    for path in list(folder, &["svg"])? {
        let about = path.with_extension("json");
        figures.push(read_one(&stem(&path), &path, about.is_file().then_some(about.as_path()))?);
    }
    let rank = |figure: &Figure| ORDER.iter().position(|name| *name == figure.name).unwrap_or(ORDER.len());
    figures.sort_by(|left, right| rank(left).cmp(&rank(right)).then_with(|| left.name.cmp(&right.name)));
    Ok(figures)
}

/// A figure from its picture and, if there is one, the file about it.
pub fn read_one(name: &str, picture: &Path, about: Option<&Path>) -> Result<Figure, ReportError> {
    let about: About = match about {
        Some(path) => {
            serde_json::from_str(&read_text(path)?).map_err(|source| ReportError::Figure { path: path.to_path_buf(), source })?
        }
        None => About::default(),
    };
    let title = if about.title.is_empty() { name.to_string() } else { about.title };
    let alt = if about.alt.is_empty() { title.clone() } else { about.alt };
    let svg = svg::inline(&read_text(picture)?, name, &alt)
        .map_err(|source| ReportError::Svg { path: picture.to_path_buf(), source })?;
    Ok(Figure { name: name.to_string(), title, caption: about.caption, alt, claims: about.claims, tables: about.tables, svg })
}

pub fn section(figures: &[Figure], verdicts: &Verdicts) -> Markup {
    html! {
        section #figures aria-labelledby="figures-title" {
            h2 #figures-title { "Figures" }
            @if figures.is_empty() {
                p .quiet { "No figure has been drawn yet." }
            } @else {
                p .lead { "Point at a mark, or reach it with the arrow keys once a picture has the focus, to read its values." }
                @if figures.len() > 3 {
                    ul .contents {
                        @for figure in figures { li { a href={ "#" (anchor("figure", &figure.name)) } { (figure.title) } } }
                    }
                }
                @for figure in figures { (one(figure, verdicts)) }
            }
        }
    }
}

fn one(figure: &Figure, verdicts: &Verdicts) -> Markup {
    let id = anchor("figure", &figure.name);
    html! {
        figure id=(id) data-figure=(figure.name) {
            h3 { a .self href={ "#" (id) } { (figure.title) } }
            div .sheet tabindex="0" role="group" aria-label={ (figure.title) ", values by arrow keys" } { (PreEscaped(&figure.svg)) }
            figcaption {
                @if !figure.caption.is_empty() { (figure.caption) " " }
                @if !figure.claims.is_empty() { span .claims { "Claims: " (claim_links(verdicts, &figure.claims)) } }
            }
            details .behind data-figure=(figure.name) data-tables=(figure.tables.join(" ")) {
                summary { "What stands behind it" }
                div .body { p .quiet { "Keys and parameters are written into this page at the end of a run, by " code { "repro run" } " or " code { "repro report" } "." } }
            }
        }
    }
}

//! The figures: one file each, from tidy tables to a chart and its caption. A panel without data says so in words.

pub mod cosine;
pub mod energy;
pub mod hidden_norm;
pub mod loss_curves;
pub mod lr_step;
pub mod lr_transfer;
pub mod multi_step_update;
pub mod optimum;
pub mod regret;
pub mod series;
pub mod sweep;
pub mod theory_slopes;
pub mod trained_cosine;

use serde::{Deserialize, Serialize};

use super::chart::Chart;
use super::chart::export::{Drawing, ExportError};
use super::tidy::Tables;

/// What a reader may set about a figure.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The base learning rate whose regret is shown; absent: the best at one loop and the reference depth.
    pub base_lr: Option<f64>,
}

/// A figure as drawn: the chart and what ours shows, in sentences.
pub struct Drawn {
    pub chart: Chart,
    /// Measured values for the caption.
    pub ours: String,
}

/// A figure there is.
pub struct Figure {
    pub name: &'static str,
    pub title: &'static str,
    /// What the paper says it shows; for figures of our own, what it is.
    pub claim: &'static str,
    /// Ids of the claims it bears on.
    pub claims: &'static [&'static str],
    /// The tidy tables it reads.
    pub tables: &'static [&'static str],
    pub draw: fn(&Tables, &Settings) -> Drawn,
}

/// All figures, the paper's first.
pub const FIGURES: [Figure; 13] = [
    energy::FIGURE,
    cosine::DEEP,
    cosine::LOOPED,
    lr_step::FIGURE,
    multi_step_update::FIGURE,
    lr_transfer::FIGURE,
    trained_cosine::EIGHT,
    trained_cosine::FOUR,
    hidden_norm::FIGURE,
    optimum::FIGURE,
    regret::FIGURE,
    loss_curves::FIGURE,
    theory_slopes::FIGURE,
];

pub fn find(name: &str) -> Option<&'static Figure> {
    static ALL: [Figure; 13] = FIGURES;
    ALL.iter().find(|figure| figure.name == name)
}

/// `<name>.json`: what the report prints around a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Note {
    pub name: String,
    pub title: String,
    pub caption: String,
    pub claims: Vec<String>,
    pub tables: Vec<String>,
    pub alt: String,
}

/// A figure in every form.
pub struct Files {
    pub svg: String,
    pub png: Vec<u8>,
    pub pdf: Vec<u8>,
    pub json: String,
}

impl Figure {
    pub fn files(&self, tables: &Tables, settings: &Settings) -> Result<Files, ExportError> {
        let drawn = (self.draw)(tables, settings);
        let svg = drawn.chart.svg();
        let drawing = Drawing::read(self.name, &svg)?;
        let note = Note {
            name: self.name.to_string(),
            title: self.title.to_string(),
            caption: if drawn.ours.is_empty() { self.claim.to_string() } else { format!("{} {}", self.claim, drawn.ours) },
            claims: self.claims.iter().map(|id| id.to_string()).collect(),
            tables: self.tables.iter().map(|name| name.to_string()).collect(),
            alt: drawn.chart.alt.clone(),
        };
        let json = serde_json::to_string_pretty(&note).expect("a note is plain text") + "\n";
        Ok(Files { png: drawing.png()?, pdf: drawing.pdf()?, svg, json })
    }
}

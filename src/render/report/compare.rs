//! Two results side by side, as one page.

use maud::{Markup, PreEscaped, html};
use serde::Serialize;

use super::figures::Figure;
use super::page::plain_document;
use super::verdicts::{Verdict, badge, digits};

/// What two results say, beside each other.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Difference {
    pub left: String,
    pub right: String,
    pub left_scale: String,
    pub right_scale: String,
    pub verdicts: Vec<VerdictPair>,
    pub metrics: Vec<MetricRow>,
    pub figures: Vec<FigurePair>,
}

/// A claim as both sides judge it.
#[derive(Clone, Debug, Serialize)]
pub struct VerdictPair {
    pub left: Option<Verdict>,
    pub right: Option<Verdict>,
}

impl VerdictPair {
    pub fn either(&self) -> Option<&Verdict> {
        self.right.as_ref().or(self.left.as_ref())
    }
    pub fn ruling_differs(&self) -> bool {
        self.left.as_ref().map(|verdict| verdict.verdict) != self.right.as_ref().map(|verdict| verdict.verdict)
    }
    /// In the ruling, or in what was measured.
    pub fn differs(&self) -> bool {
        let said =
            |side: &Option<Verdict>| side.as_ref().map(|verdict| (verdict.verdict, verdict.ours(), verdict.interval.clone()));
        said(&self.left) != said(&self.right)
    }
}

/// A metric of a table: how many numbers both sides have, and how far they are apart.
#[derive(Clone, Debug, Default, Serialize)]
pub struct MetricRow {
    pub table: String,
    pub metric: String,
    pub unit: String,
    pub both: usize,
    pub differing: usize,
    pub only_left: usize,
    pub only_right: usize,
    pub largest: Option<Largest>,
}

impl MetricRow {
    pub fn differs(&self) -> bool {
        self.differing + self.only_left + self.only_right > 0
    }
}

/// The number that changed most, relative to its size.
#[derive(Clone, Debug, Serialize)]
pub struct Largest {
    pub at: String,
    pub left: f64,
    pub right: f64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Likeness {
    Same,
    Differs,
    OnlyLeft,
    OnlyRight,
}

#[derive(Clone, Debug, Serialize)]
pub struct FigurePair {
    pub name: String,
    pub likeness: Likeness,
    #[serde(skip)]
    pub left: Option<Figure>,
    #[serde(skip)]
    pub right: Option<Figure>,
}

/// The comparison as a page that needs nothing outside itself.
pub fn page(difference: &Difference) -> String {
    let title = format!("{} and {}", difference.left, difference.right);
    let changed = difference.verdicts.iter().filter(|pair| pair.ruling_differs()).count();
    let body = html! {
        header .title {
            p .kicker { "Two results side by side" }
            h1 { (title) }
            p .lead { (changed) " of " (difference.verdicts.len()) " verdicts differ." }
        }
        section #verdicts aria-labelledby="verdicts-title" {
            h2 #verdicts-title { "Verdicts" }
            div .scroll tabindex="0" role="region" aria-label="Verdicts of both sides" { table {
                thead { tr {
                    th scope="col" { "Claim" }
                    th scope="col" { (difference.left) @if !difference.left_scale.is_empty() { br; (difference.left_scale) } }
                    th scope="col" { (difference.right) @if !difference.right_scale.is_empty() { br; (difference.right_scale) } }
                } }
                @for pair in &difference.verdicts { tbody .changed[pair.ruling_differs()] { tr {
                    @if let Some(verdict) = pair.either() { th scope="row" .claim { span .id { (verdict.id) } (verdict.claim) } }
                    (side(pair.left.as_ref()))
                    (side(pair.right.as_ref()))
                } } }
            } }
        }
        section #metrics aria-labelledby="metrics-title" {
            h2 #metrics-title { "Metrics" }
            (metrics(difference))
        }
        section #figures aria-labelledby="figures-title" {
            h2 #figures-title { "Figures" }
            @for pair in &difference.figures { (figures(difference, pair)) }
        }
    };
    plain_document(&title, &body)
}

fn side(verdict: Option<&Verdict>) -> Markup {
    html! {
        td {
            @match verdict {
                Some(verdict) => {
                    (badge(verdict.verdict)) " " (verdict.ours())
                    @if let Some(interval) = verdict.interval_text() { " " span .interval { (interval) } }
                    div .quiet { (verdict.why) }
                },
                None => span .quiet { "not judged" },
            }
        }
    }
}

fn metrics(difference: &Difference) -> Markup {
    html! {
        @if difference.metrics.is_empty() { p .quiet { "There are no tidy tables on either side." } } @else {
            div .scroll tabindex="0" role="region" aria-label="Metrics of both sides" { table {
                thead { tr {
                    th scope="col" { "Table" } th scope="col" { "Metric" } th scope="col" .num { "On both sides" } th scope="col" .num { "Differ" }
                    th scope="col" .num { "Only " (difference.left) } th scope="col" .num { "Only " (difference.right) } th scope="col" { "Largest change" }
                } }
                tbody { @for row in &difference.metrics { tr {
                    td { (row.table) } td { (row.metric) @if row.unit != "1" { " " span .quiet { (row.unit) } } }
                    td .num { (row.both) } td .num { (row.differing) } td .num { (row.only_left) } td .num { (row.only_right) }
                    td { @if let Some(largest) = &row.largest { (digits(largest.left)) " → " (digits(largest.right)) " " span .quiet { (largest.at) } } }
                } } }
            } }
        }
    }
}

fn figures(difference: &Difference, pair: &FigurePair) -> Markup {
    let title = pair.right.as_ref().or(pair.left.as_ref()).map(|figure| figure.title.as_str()).unwrap_or_default();
    let one = |label: &str, figure: Option<&Figure>| {
        html! {
            div {
                h4 { (label) }
                @match figure {
                    Some(figure) => div .sheet data-figure=(figure.name) tabindex="0" role="group" aria-label={ (figure.title) ", " (label) } { (PreEscaped(&figure.svg)) },
                    None => p .quiet { "not drawn" },
                }
            }
        }
    };
    html! {
        figure {
            h3 { (title) }
            @if pair.likeness == Likeness::Same {
                p .quiet { "The same on both sides." }
                (one(&difference.right, pair.right.as_ref()))
            } @else {
                div .sides { (one(&difference.left, pair.left.as_ref())) (one(&difference.right, pair.right.as_ref())) }
            }
        }
    }
}

//! The verdicts: what `verify` wrote, and the table that opens the page.

use std::path::Path;

use maud::{Markup, html};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{ReportError, anchor, read_text};

/// How a claim stands. Each has a word and a sign, so that nothing hangs on colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Ruling {
    Pass,
    Fail,
    Inconclusive,
}

impl Ruling {
    pub const ALL: [Ruling; 3] = [Ruling::Pass, Ruling::Fail, Ruling::Inconclusive];

    pub fn word(self) -> &'static str {
        match self {
            Ruling::Pass => "PASS",
            Ruling::Fail => "FAIL",
            Ruling::Inconclusive => "INCONCLUSIVE",
        }
    }
    fn shown(self) -> &'static str {
        match self {
            Ruling::Pass => "Pass",
            Ruling::Fail => "Fail",
            Ruling::Inconclusive => "Inconclusive",
        }
    }
    pub fn sign(self) -> &'static str {
        match self {
            Ruling::Pass => "✓",
            Ruling::Fail => "✗",
            Ruling::Inconclusive => "?",
        }
    }
    fn class(self) -> &'static str {
        match self {
            Ruling::Pass => "pass",
            Ruling::Fail => "fail",
            Ruling::Inconclusive => "open",
        }
    }
}

/// The file `verdicts.json`. Fields it may gain later are passed over.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Verdicts {
    /// What the numbers were measured at.
    pub scale: String,
    pub verdicts: Vec<Verdict>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Verdict {
    pub id: String,
    #[serde(default)]
    pub group: String,
    #[serde(default)]
    pub claim: String,
    pub verdict: Ruling,
    /// A number, or null.
    #[serde(default)]
    pub measured: Value,
    #[serde(default)]
    pub measured_text: String,
    #[serde(default)]
    pub interval: Option<[Value; 2]>,
    #[serde(default)]
    pub unit: String,
    #[serde(default)]
    pub paper: String,
    #[serde(default)]
    pub scale: String,
    #[serde(default)]
    pub why: String,
    #[serde(default)]
    pub resolve: Option<String>,
    #[serde(default)]
    pub parts: Vec<Part>,
    #[serde(default)]
    pub tables: Vec<String>,
    #[serde(default)]
    pub artefacts: Vec<Artefact>,
    #[serde(default)]
    pub figures: Vec<String>,
}

/// One of the rules that make up a verdict.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Part {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub rule: String,
    #[serde(default)]
    pub measured: Value,
    #[serde(default)]
    pub interval: Option<[Value; 2]>,
    pub verdict: Ruling,
    #[serde(default)]
    pub why: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Artefact {
    #[serde(default)]
    pub table: String,
    #[serde(default)]
    pub rows: u64,
    #[serde(default)]
    pub digest: String,
}

/// How many claims stand how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    pub pass: usize,
    pub fail: usize,
    pub inconclusive: usize,
}

impl Counts {
    pub fn of(self, ruling: Ruling) -> usize {
        match ruling {
            Ruling::Pass => self.pass,
            Ruling::Fail => self.fail,
            Ruling::Inconclusive => self.inconclusive,
        }
    }
}

impl Verdicts {
    pub fn read(path: &Path) -> Result<Verdicts, ReportError> {
        let text = read_text(path)?;
        serde_json::from_str(&text).map_err(|source| ReportError::Verdicts { path: path.to_path_buf(), source })
    }

    pub fn counts(&self) -> Counts {
        let mut counts = Counts::default();
        for verdict in &self.verdicts {
            match verdict.verdict {
                Ruling::Pass => counts.pass += 1,
                Ruling::Fail => counts.fail += 1,
                Ruling::Inconclusive => counts.inconclusive += 1,
            }
        }
        counts
    }

    /// Groups in the order of their first claim.
    fn groups(&self) -> Vec<&str> {
        let mut found: Vec<&str> = Vec::new();
        for verdict in &self.verdicts {
            if !found.contains(&verdict.group.as_str()) {
                found.push(&verdict.group);
            }
        }
        found
    }

    fn ruling(&self, id: &str) -> Option<Ruling> {
        self.verdicts.iter().find(|verdict| verdict.id == id).map(|verdict| verdict.verdict)
    }
}

impl Verdict {
    /// What was measured, as the judge wrote it, or else the bare number.
    pub fn ours(&self) -> String {
        let text = if self.measured_text.is_empty() { number(&self.measured) } else { self.measured_text.clone() };
        match self.unit.as_str() {
            "" | "1" => text,
            unit if text.is_empty() || text.contains(unit) => text,
            unit => format!("{text} {unit}"),
        }
    }

    pub fn interval_text(&self) -> Option<String> {
        interval(self.interval.as_ref())
    }
}

/// Both ends, unless they are one: an exact number needs no interval.
fn interval(bounds: Option<&[Value; 2]>) -> Option<String> {
    bounds.filter(|[low, high]| number(low) != number(high)).map(|[low, high]| {
        let (low, high) = (number(low), number(high));
        let (low, high) = (evened(&low, &high), evened(&high, &low));
        format!("[{low}, {high}]")
    })
}

/// A number with at least as many decimals as the one beside it: `[11.90, 11.92]`.
fn evened(text: &str, beside: &str) -> String {
    let places = |text: &str| text.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let plain = |text: &str| text.chars().all(|c| c.is_ascii_digit() || c == '.' || c == '-');
    if !plain(text) || !plain(beside) || text.is_empty() || places(text) >= places(beside) {
        return text.to_string();
    }
    let dot = if text.contains('.') { "" } else { "." };
    format!("{text}{dot}{}", "0".repeat(places(beside) - places(text)))
}

/// A number with as many digits as one reads; text as it is; nothing for null.
pub fn number(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        Value::Number(number) => number.as_f64().map_or_else(|| number.to_string(), digits),
        other => other.to_string(),
    }
}

/// Four significant digits; powers of ten where the number is very small or large.
pub fn digits(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return format!("{value}");
    }
    if value.fract() == 0.0 && size < 1e7 {
        return format!("{value:.0}");
    }
    if !(1e-3..1e6).contains(&size) {
        let text = format!("{value:.2e}");
        return text.replace(".00e", "e").replacen("0e", "e", usize::from(text.contains('.') && !text.contains(".00e")));
    }
    let places = (3 - size.log10().floor() as i32).clamp(0, 6) as usize;
    let text = format!("{value:.places$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_string() } else { text }
}

/// A verdict as a small label: sign, word, colour.
pub fn badge(ruling: Ruling) -> Markup {
    html! {
        span class={ "badge " (ruling.class()) } { span aria-hidden="true" { (ruling.sign()) } " " (ruling.shown()) }
    }
}

/// Links to claims, each with how it stands.
pub fn claim_links(verdicts: &Verdicts, ids: &[String]) -> Markup {
    html! {
        @for id in ids {
            @match verdicts.ruling(id) {
                Some(ruling) => {
                    a class={ "claim-link " (ruling.class()) } href={ "#" (anchor("claim", id)) } {
                        (id) " " span aria-hidden="true" { (ruling.sign()) } span .unseen { " " (ruling.shown()) }
                    } " "
                },
                None => { span .claim-link { (id) } " " },
            }
        }
    }
}

/// The bar under the title: how many claims stand how, as lengths and as words.
pub fn summary(verdicts: &Verdicts) -> Markup {
    let counts = verdicts.counts();
    let total = verdicts.verdicts.len();
    html! {
        @if total > 0 {
            div .tally {
                @for ruling in Ruling::ALL {
                    @let count = counts.of(ruling);
                    div class={ "count " (ruling.class()) } {
                        span .figure { (count) }
                        span .word { span aria-hidden="true" { (ruling.sign()) " " } (ruling.shown().to_lowercase()) }
                    }
                }
            }
            div .bar role="img" aria-label={ (counts.pass) " of " (total) " claims pass, " (counts.fail) " fail, " (counts.inconclusive) " are inconclusive" } {
                @for ruling in Ruling::ALL {
                    @if counts.of(ruling) > 0 { span class=(ruling.class()) style={ "flex-grow:" (counts.of(ruling)) } {} }
                }
            }
        }
    }
}

/// The table of verdicts with its filter.
pub fn section(verdicts: &Verdicts) -> Markup {
    html! {
        section #verdicts aria-labelledby="verdicts-title" {
            h2 #verdicts-title { "Verdicts" }
            @if verdicts.verdicts.is_empty() {
                p .quiet { "No claim has been judged yet." }
            } @else {
                @if !verdicts.scale.is_empty() { p .lead { "Measured at: " (verdicts.scale) } }
                (filter(verdicts))
                (table(verdicts))
                p #no-claims .quiet hidden { "No claim matches the filter." }
            }
        }
    }
}

fn filter(verdicts: &Verdicts) -> Markup {
    let counts = verdicts.counts();
    html! {
        form .filter role="search" aria-label="Filter the claims" {
            label .search {
                span .unseen { "Search claims" }
                input #claim-search type="search" placeholder="Search claims  ( / )" autocomplete="off" spellcheck="false";
            }
            div .chips role="group" aria-label="Show verdicts" {
                @for ruling in Ruling::ALL {
                    button type="button" class={ "chip " (ruling.class()) } data-verdict=(ruling.word()) aria-pressed="false" {
                        span aria-hidden="true" { (ruling.sign()) } " " (ruling.shown()) " " span .n { (counts.of(ruling)) }
                    }
                }
            }
            label .group {
                span .unseen { "Group" }
                select #claim-group {
                    option value="" { "All groups" }
                    @for group in verdicts.groups() { option value=(group) { (group) } }
                }
            }
            output #claim-count aria-live="polite" { (verdicts.verdicts.len()) " claims" }
        }
    }
}

fn table(verdicts: &Verdicts) -> Markup {
    html! {
        table .verdicts {
            caption .unseen { "Claims of the paper, what it says, what was measured here, and the verdict" }
            thead { tr {
                th scope="col" { "Claim" }
                th scope="col" { "Paper" }
                th scope="col" { "Here" }
                th scope="col" { "Verdict" }
                th scope="col" { "Why" }
            } }
            @for verdict in &verdicts.verdicts { (row(verdict)) }
        }
    }
}

fn row(verdict: &Verdict) -> Markup {
    let id = anchor("claim", &verdict.id);
    let more = format!("{id}-more");
    html! {
        tbody .claim id=(id) data-verdict=(verdict.verdict.word()) data-group=(verdict.group) {
            tr {
                th scope="row" data-label="Claim" {
                    span .id { (verdict.id) } " " span .text { (verdict.claim) }
                    button type="button" .more aria-expanded="false" aria-controls=(more) { "Details" span .unseen { " of " (verdict.id) } }
                }
                td data-label="Paper" { (verdict.paper) }
                td data-label="Here" .ours {
                    @let ours = verdict.ours();
                    @if ours.is_empty() { span .quiet { "not measured" } } @else { (ours) }
                    @if let Some(interval) = verdict.interval_text() { " " span .interval title="interval" { (interval) } }
                }
                td data-label="Verdict" { (badge(verdict.verdict)) }
                td data-label="Why" .why { (verdict.why) }
            }
            tr .detail id=(more) hidden { td colspan="5" { (details(verdict)) } }
        }
    }
}

fn details(verdict: &Verdict) -> Markup {
    html! {
        @if !verdict.parts.is_empty() {
            table .parts {
                caption { "What " (verdict.id) " consists of" }
                thead { tr { th scope="col" { "Part" } th scope="col" { "Rule" } th scope="col" { "Measured" } th scope="col" { "Verdict" } th scope="col" { "Why" } } }
                tbody {
                    @for part in &verdict.parts {
                        tr {
                            th scope="row" { (part.name) }
                            td { (part.rule) }
                            td { (number(&part.measured)) @if let Some(bounds) = interval(part.interval.as_ref()) { " " span .interval { (bounds) } } }
                            td { (badge(part.verdict)) }
                            td { (part.why) }
                        }
                    }
                }
            }
        }
        dl .facts {
            @if !verdict.group.is_empty() { dt { "Group" } dd { (verdict.group) } }
            @if !verdict.scale.is_empty() { dt { "Scale" } dd { (verdict.scale) } }
            @if let Some(resolve) = verdict.resolve.as_deref().filter(|text| !text.is_empty()) { dt { "To resolve it" } dd { (resolve) } }
            @if !verdict.figures.is_empty() {
                dt { "Figures" }
                dd { @for figure in &verdict.figures { a href={ "#" (anchor("figure", figure)) } { (figure) } " " } }
            }
            @if !verdict.artefacts.is_empty() {
                dt { "Computed from" }
                dd { @for artefact in &verdict.artefacts {
                    div { (artefact.table) ", " (artefact.rows) " rows " code { (artefact.digest.get(..12).unwrap_or(&artefact.digest)) } }
                } }
            }
        }
        div .behind data-claim=(verdict.id) data-tables=(verdict.tables.join(" ")) {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_an_interval_have_the_same_decimals() {
        let shown = |low: f64, high: f64| interval(Some(&[low.into(), high.into()])).unwrap();
        assert_eq!(shown(11.9, 11.923), "[11.90, 11.92]");
        assert_eq!(shown(-1.0, 0.5), "[-1.0, 0.5]");
        assert_eq!(shown(1e-9, 2.0), "[1e-9, 2]");
        assert_eq!(interval(Some(&[3.4641.into(), 3.46411.into()])), None);
    }

    #[test]
    fn numbers_have_four_digits() {
        let cases = [
            (0.0, "0"),
            (0.025, "0.025"),
            (1.0 / 3.0, "0.3333"),
            (183_454_464.0, "1.83e8"),
            (1234.5678, "1235"),
            (12.345, "12.35"),
            (1e-4, "1e-4"),
            (1.25e-4, "1.25e-4"),
            (1.5e-4, "1.5e-4"),
            (-0.0371, "-0.0371"),
            (f64::NAN, "NaN"),
        ];
        for (value, text) in cases {
            assert_eq!(digits(value), text);
        }
    }
}

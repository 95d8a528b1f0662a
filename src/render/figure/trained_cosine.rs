//! Figures "trained-cosine-N8" and "trained-cosine-N4": cosines of the increments after training, one matrix per depth.

use super::cosine::{matrix, pairs, range_of};
use super::series::{letter, list, nothing};
use super::{Drawn, Figure, Settings};
use crate::render::chart::heat::range_text;
use crate::render::chart::layout::{COLUMN, PAGE};
use crate::render::chart::{Cell, Chart, Row};
use crate::render::tidy::{Row as Number, Tables};

pub const EIGHT: Figure = Figure {
    name: "trained-cosine-N8",
    title: "Cosine similarity between loop-step increments after training, N = 8",
    claim: "The paper: after 20,000 steps most early and middle loop steps remain positively correlated (0.3 to 0.6) at every depth; pairs \
            with the final loop step are weaker and can be negative.",
    claims: &["E12"],
    tables: &["post-training"],
    draw: |tables, _: &Settings| draw(tables, 8, &EIGHT),
};

pub const FOUR: Figure = Figure {
    name: "trained-cosine-N4",
    title: "Cosine similarity between loop-step increments after training, N = 4",
    claim: "The paper: the pattern at N = 4 matches that at N = 8; final-step pairs are weaker and can be near zero or negative, especially \
            at the reference depth.",
    claims: &["E13"],
    tables: &["post-training"],
    draw: |tables, _: &Settings| draw(tables, 4, &FOUR),
};

/// Models under linear scaling: the rule itself, or the factorised rule at other depths.
pub fn linear(row: &&Number) -> bool {
    row.rule() != "sqrt" && row.rule() != "none"
}

/// The depths there are, ascending.
pub fn depths<'t>(rows: impl Iterator<Item = &'t Number>) -> Vec<i64> {
    let mut depths: Vec<i64> = rows.filter_map(|row| row.l).collect();
    depths.sort_unstable();
    depths.dedup();
    depths
}

fn draw(tables: &Tables, n: i64, figure: &Figure) -> Drawn {
    let table = tables.get("post-training");
    let alt = format!("Heat maps of the cosines between loop-step increments of trained models with {n} loops, one per depth.");
    let mut chart = Chart::new(figure.name, alt, PAGE);
    let here = |row: &&Number| row.n == Some(n) && linear(row);
    let depths = depths(table.of("cosine").filter(here));
    if depths.is_empty() {
        let text = format!("No trained model with N = {n} is part of this profile.");
        chart.rows.push(Row { height: 110.0, cells: vec![nothing("", text.clone())] });
        return Drawn { chart, ours: text };
    }
    let mut cells = Vec::new();
    let mut told = Vec::new();
    for (at, depth) in depths.iter().enumerate() {
        let at_depth = |row: &&Number| here(row) && row.l == Some(*depth);
        let last = table.of("cosine").filter(at_depth).filter_map(|row| row.step).max();
        let (found, seeds, over_seeds) = pairs(table.of("cosine").filter(at_depth).filter(|row| row.step == last));
        let (initial, ..) = pairs(table.of("cosine").filter(at_depth).filter(|row| row.step == Some(0) && last != Some(0)));
        let title = format!("({}) *L* = {depth}, *N* = {n}, {} steps", letter(at), last.unwrap_or(0));
        let mut heat = matrix(&found, title, (at + 1 == depths.len()).then(|| "cosine".to_string()));
        if at > 0 {
            heat.y_label.clear();
        }
        let average = |pairs: &super::cosine::Pairs| pairs.values().sum::<f64>() / pairs.len().max(1) as f64;
        let (low, high) = range_of(&found);
        let mut words = format!("L = {depth}: mean {:.2}, range {}", average(&found), range_text(low, high));
        if seeds.len() > 1 {
            words += &format!(", over {} seeds {}", seeds.len(), range_text(over_seeds.0, over_seeds.1));
        }
        if !initial.is_empty() {
            words += &format!(" (mean {:.2} as initialised)", average(&initial));
        }
        told.push(words.replace('-', "−"));
        cells.push(Cell::Heat(heat));
    }
    let height = if depths.len() > 2 { 175.0 } else { 210.0 };
    if depths.len() == 1 {
        chart.width = COLUMN;
    }
    chart.rows.push(Row { height, cells });
    Drawn { chart, ours: format!("Here {}.", list(&told)) }
}

//! Figure "hidden-norm": the norm of the residual stream from loop step to loop step in trained models.

use std::collections::BTreeMap;

use super::series::{letter, list, look, nothing, with_sem};
use super::trained_cosine::{depths, linear};
use super::{Drawn, Figure, Settings};
use crate::render::chart::layout::PAGE;
use crate::render::chart::{Axis, Cell, Chart, Dot, Key, Layer, Plot, Row, Sample};
use crate::render::statistics::mean;
use crate::render::tidy::{Row as Number, Tables};

pub const FIGURE: Figure = Figure {
    name: "hidden-norm",
    title: "Residual-stream norm across loop steps under linear scaling",
    claim: "The paper: although the increments differ across N, the final norms come to about the same value within a depth. L2 norm of the \
            stream, mean over held-out tokens, from loop step 0 (after the embedding) to N; dotted: the same models as initialised.",
    claims: &["E14"],
    tables: &["post-training"],
    draw,
};

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let table = tables.get("post-training");
    let here = |row: &&Number| linear(row) && row.n.is_some_and(|n| n > 1);
    let depths = depths(table.of("norm").filter(here));
    let mut loops: Vec<i64> = table.of("norm").filter(here).filter_map(|row| row.n).collect();
    loops.sort_unstable();
    loops.dedup();
    let alt =
        "L2 norm of the residual stream over loop steps in trained models, one panel per depth and one line per loop count.";
    let mut chart = Chart::new(FIGURE.name, alt, PAGE);
    if depths.is_empty() {
        let text = "No trained looped model is part of this profile.";
        chart.rows.push(Row { height: 110.0, cells: vec![nothing("", text)] });
        return Drawn { chart, ours: text.into() };
    }
    let mut cells = Vec::new();
    let mut told = Vec::new();
    let mut dotted = false;
    for (at, depth) in depths.iter().enumerate() {
        let title = format!("({}) *L* = {depth}", letter(at));
        let y = Axis::linear(if at == 0 { "‖*h*‖_{2}" } else { "" });
        let mut plot = Plot::new(title, Axis::whole("loop step"), y);
        let mut finals = Vec::new();
        for n in &loops {
            let of_model = |row: &&Number| here(row) && row.l == Some(*depth) && row.n == Some(*n);
            let last = table.of("norm").filter(of_model).filter_map(|row| row.step).max();
            let (colour, shape) = look(loops.iter().position(|have| have == n).unwrap_or(0) + 1);
            for (step, trained) in [(Some(0), false), (last, true)] {
                if !trained && last == Some(0) {
                    continue;
                }
                let mut by_visit: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
                for row in table.of("norm").filter(of_model).filter(|row| row.step == step) {
                    by_visit.entry(row.visit.unwrap_or(0)).or_default().push(row.value);
                }
                let stats: Vec<_> =
                    by_visit.iter().filter_map(|(visit, values)| mean(values).map(|found| (*visit as f64, found))).collect();
                let points: Vec<(f64, f64)> = stats.iter().map(|(x, found)| (*x, found.mean)).collect();
                if points.is_empty() {
                    continue;
                }
                if !trained {
                    dotted = true;
                    let tip = Some(format!("L = {depth}, N = {n}, as initialised"));
                    plot.add(Layer::Line { points, colour: colour.into(), width: 1.0, dash: Some("1.5 2.5"), tip });
                    continue;
                }
                finals.extend(points.last().map(|(_, y)| *y));
                if stats.iter().any(|(_, found)| found.count > 1) {
                    let band = stats.iter().map(|(x, found)| (*x, found.mean - found.sem, found.mean + found.sem)).collect();
                    plot.add(Layer::Band { points: band, colour: colour.into() });
                }
                plot.add(Layer::Line { points, colour: colour.into(), width: 1.4, dash: None, tip: None });
                let dots = stats.iter().map(|(x, found)| {
                    let tip = format!("L = {depth}, N = {n}, loop step {x}: norm {}", with_sem(*found));
                    Dot { x: *x, y: found.mean, tip }
                });
                plot.add(Layer::Dots { dots: dots.collect(), shape, size: 2.6, colour: colour.into(), hollow: false });
            }
        }
        if let (Some(least), Some(most)) = (finals.iter().copied().reduce(f64::min), finals.iter().copied().reduce(f64::max)) {
            told.push(format!("{:.2} at L = {depth}", most / least));
        }
        if let Some(high) = Some(plot.y_range().1).filter(|high| high.is_finite()) {
            plot.y.range = Some((0.0, high));
        }
        cells.push(Cell::Plot(plot));
    }
    for (at, n) in loops.iter().enumerate() {
        let (colour, shape) = look(at + 1);
        let sample = Sample::Line { colour: colour.into(), shape: Some(shape), dash: None };
        chart.legend.push(Key { sample, label: format!("*N* = {n}") });
    }
    if dotted {
        let sample = Sample::Line { colour: "#555555".into(), shape: None, dash: Some("1.5 2.5") };
        chart.legend.push(Key { sample, label: "as initialised".into() });
    }
    chart.rows.push(Row { height: 150.0, cells });
    Drawn { chart, ours: format!("Here the largest over the smallest final norm is {}.", list(&told)) }
}

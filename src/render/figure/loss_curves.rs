//! Figure "loss-curves": training loss over steps at each model's best learning rate.

use std::collections::BTreeMap;

use super::series::{letter, look, nothing};
use super::sweep::{Family, by_rule_and_by_depth, epsilon, rate_text, same_rate};
use super::{Drawn, Figure, Settings};
use crate::render::chart::axis::plain_number;
use crate::render::chart::layout::PAGE;
use crate::render::chart::{Axis, Cell, Chart, Dot, Key, Layer, Plot, Row, Sample, Shape};
use crate::render::statistics::mean;
use crate::render::tidy::{Table, Tables};

pub const FIGURE: Figure = Figure {
    name: "loss-curves",
    title: "Training loss at the best learning rate",
    claim: "Ours: training loss over optimiser steps for every loop count, each at the rate with the lowest held-out loss; mean ± SEM over \
            seeds.",
    claims: &["E7", "E8"],
    tables: &["lr-transfer", "depth-transfer"],
    draw,
};

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let (sweep, depths) = by_rule_and_by_depth(tables);
    let all: Vec<(&Family, &Table)> = sweep
        .iter()
        .map(|family| (family, tables.get("lr-transfer")))
        .chain(depths.iter().map(|family| (family, tables.get("depth-transfer"))))
        .collect();
    let mut loops: Vec<i64> = all.iter().flat_map(|(family, _)| family.curves.keys().copied()).collect();
    loops.sort_unstable();
    loops.dedup();
    let alt = "Training loss over optimiser steps, one line per loop count, a panel for each residual rule and depth.";
    let mut chart = Chart::new(FIGURE.name, alt, PAGE);
    let mut cells = Vec::new();
    let (mut lowest, mut highest) = (f64::INFINITY, f64::NEG_INFINITY);
    for (family, table) in &all {
        let title = format!("({}) *L* = {}, {}", letter(cells.len()), family.depth, epsilon(&family.rule));
        let mut plot = Plot::new(title.clone(), Axis::whole("optimiser step"), Axis::linear("training loss (nats/token)"));
        for (n, curve) in &family.curves {
            let Some(best) = curve.optimum() else { continue };
            let steps = by_step(table, family, *n, best.at);
            let (colour, _) = look(loops.iter().position(|have| have == n).unwrap_or(0));
            let stats: Vec<_> =
                steps.iter().filter_map(|(step, losses)| mean(losses).map(|found| (*step as f64, found))).collect();
            let Some((end, _)) = stats.last().copied() else { continue };
            if stats.iter().any(|(_, found)| found.count > 1) {
                let points = stats.iter().map(|(x, found)| (*x, found.mean - found.sem, found.mean + found.sem)).collect();
                plot.add(Layer::Band { points, colour: colour.into() });
            }
            for (x, found) in &stats {
                lowest = lowest.min(found.mean);
                // The first steps fall from the logarithm of the vocabulary and would squeeze the rest.
                if *x >= 0.08 * end {
                    highest = highest.max(found.mean);
                }
            }
            plot.add(Layer::Line {
                points: stats.iter().map(|(x, found)| (*x, found.mean)).collect(),
                colour: colour.into(),
                width: 1.2,
                dash: None,
                tip: Some(format!("{}, L = {}, N = {n} at η₀ = {}", family.rule, family.depth, rate_text(best.at))),
            });
            let every = stats.len().div_ceil(12).max(1);
            let dots = stats.iter().rev().step_by(every).map(|(x, found)| {
                let tip = format!("N = {n}, step {x}: loss {} at η₀ = {}", plain_number(found.mean), rate_text(best.at));
                Dot { x: *x, y: found.mean, tip }
            });
            plot.add(Layer::Dots { dots: dots.collect(), shape: Shape::Circle, size: 1.6, colour: colour.into(), hollow: false });
        }
        cells.push(if plot.layers.is_empty() {
            nothing(title, "The training loss by step was not kept in this profile.")
        } else {
            Cell::Plot(plot)
        });
    }
    if cells.is_empty() {
        let text = "No training run is part of this profile.";
        chart.rows.push(Row { height: 120.0, cells: vec![nothing("", text)] });
        return Drawn { chart, ours: text.into() };
    }
    for (at, n) in loops.iter().enumerate() {
        let sample = Sample::Line { colour: look(at).0.into(), shape: None, dash: None };
        chart.legend.push(Key { sample, label: format!("*N* = {n}") });
    }
    let pad = 0.05 * (highest - lowest).max(1e-6);
    let mut first = true;
    for (at, cell) in cells.iter_mut().enumerate() {
        if let Cell::Plot(plot) = cell {
            if lowest < highest {
                plot.y.range = Some((lowest - pad, highest + pad));
            }
            if !first && at % 2 == 1 {
                plot.y.label.clear();
            }
            first = false;
        }
    }
    while !cells.is_empty() {
        let rest = cells.split_off(cells.len().min(2));
        chart.rows.push(Row { height: 150.0, cells });
        cells = rest;
    }
    Drawn { chart, ours: String::new() }
}

/// Training loss of one model by step, over its seeds. At one loop any rule's run is meant.
fn by_step(table: &Table, family: &Family, n: i64, lr: f64) -> BTreeMap<i64, Vec<f64>> {
    let mut found: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    let here = table.of("loss").filter(|row| row.stack() != "deep");
    for row in here.filter(|row| row.l == Some(family.depth) && row.n == Some(n) && (n == 1 || row.rule() == family.rule)) {
        if let (Some(step), Some(rate)) = (row.step, row.lr)
            && same_rate(rate, lr)
        {
            found.entry(step).or_default().push(row.value);
        }
    }
    found
}

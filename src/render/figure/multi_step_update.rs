//! Figure "multi-step-update": the change of the output by each of the first ten steps, over loop counts.

use super::energy::signed;
use super::lr_step::{PREDICTED, references};
use super::series::{RULES, add_curve, curves, letter, list, means, nothing, step_ramp};
use super::{Drawn, Figure, Settings};
use crate::render::chart::colour::ordered;
use crate::render::chart::layout::PAGE;
use crate::render::chart::plot::Corner;
use crate::render::chart::{Axis, Cell, Chart, Plot, Row, Scale, Shape};
use crate::render::statistics::log_slope;
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "multi-step-update",
    title: "The ηεN scaling persists across all optimiser steps",
    claim: "The paper: at every one of the first 10 steps the update runs parallel to N without scaling (a) and to √N with 1/√N (b); with \
            1/N (c) it stays within about a factor of 4 over N = 1 to 64 and saturates near N = 32. Mean ± SEM over seeds, one learning \
            rate for all; dashed references start at N = 1, t = 1.",
    claims: &["E5"],
    tables: &["init-diagnostics"],
    draw,
};

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let table = tables.get("init-diagnostics");
    let mut chart = Chart::new(
        FIGURE.name,
        "Three panels of the RMS change of the output by each optimiser step over the loop count: no scaling, square-root, linear.",
        PAGE,
    );
    let found = RULES.map(|(rule, ..)| curves(table, "update", "looped", rule));
    let mut steps: Vec<i64> = found.iter().flat_map(|curves| curves.keys().copied()).collect();
    steps.sort_unstable();
    steps.dedup();
    let all = found.iter().flat_map(|curves| curves.values()).flat_map(|curve| means(curve).into_iter().map(|(_, y)| y));
    let (low, high) = Scale::Log10.around(all, 0.06);
    let anchor_of = |curves: &super::series::Curves| {
        curves.get(&1).and_then(|curve| means(curve).into_iter().find(|(n, _)| *n == 1.0)).map(|(_, y)| y)
    };
    let mut told = Vec::new();
    let mut cells = Vec::new();
    for (c, ((rule, name, _), curves)) in RULES.into_iter().zip(&found).enumerate() {
        let title = format!("({}) {name}", letter(c));
        if curves.is_empty() {
            cells.push(nothing(title, format!("No update with rule `{rule}` was measured in this profile.")));
            continue;
        }
        let y = Axis::log10("‖Δ*h*_{*N*}‖_{RMS} by step *t*").range(low, high);
        let mut plot = Plot::new(title, Axis::log2("loop count *N*"), if c == 0 { y } else { y.bare() });
        let last = curves.values().flat_map(|curve| curve.keys().copied()).max().unwrap_or(1) as f64;
        for (step, curve) in curves {
            let colour = ordered(steps.iter().position(|have| have == step).unwrap_or(0), steps.len());
            add_curve(&mut plot.layers, curve, &colour, Shape::Circle, 1.9, &|n| format!("{rule}, N = {n}, step {step}"), true);
        }
        if let (Some(anchor), true) = (anchor_of(curves), last > 1.0) {
            let (slope, label) = PREDICTED[c];
            plot.layers.extend(references(anchor, last, &[(slope, "")]));
            plot.notes = vec![format!("dashed: {label}")];
            plot.notes_at = Corner::TopLeft;
        }
        let slopes: Vec<f64> = curves.values().filter_map(|curve| log_slope(&means(curve))).collect();
        if !slopes.is_empty() {
            let low = slopes.iter().copied().fold(f64::INFINITY, f64::min);
            let high = slopes.iter().copied().fold(f64::NEG_INFINITY, f64::max);
            told.push(format!("{rule} {} to {}", signed(low), signed(high)));
        }
        cells.push(Cell::Plot(plot));
    }
    chart.rows.push(Row { height: 170.0, cells });
    if !steps.is_empty() {
        chart.ramp = Some(step_ramp(&steps));
    }
    let ours =
        if told.is_empty() { String::new() } else { format!("Here the log-log slopes over the steps are: {}.", list(&told)) };
    Drawn { chart, ours }
}

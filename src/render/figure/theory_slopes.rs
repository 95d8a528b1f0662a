//! Figure "theory-slopes": the scaling laws of the theory's recursion, measured beside what the theorems say.

use std::collections::BTreeMap;

use super::energy::signed;
use super::lr_step::{PREDICTED, references};
use super::series::{add_curve, letter, look, means, nothing};
use super::{Drawn, Figure, Settings};
use crate::render::chart::axis::number;
use crate::render::chart::layout::PAGE;
use crate::render::chart::plot::Corner;
use crate::render::chart::{Axis, Cell, Chart, Key, Layer, Plot, Row, Sample};
use crate::render::statistics::log_slope;
use crate::render::tidy::{Row as Number, Table, Tables};

pub const FIGURE: Figure = Figure {
    name: "theory-slopes",
    title: "Scaling laws of the theory's model",
    claim: "Ours: Monte-Carlo measurements of the recursion h ← h + εWφ(h) beside what the theorems say. (a) With normalised input the norm \
            grows as N without scaling, as √N with 1/√N, and not at all with 1/N. (b) The summed branches of a shared layer grow as N² in \
            energy. (c) One update moves the output by ηεN. (d) Independent layers: exp(cL^(1−2α)), dotted. (e) Blocks of L layers: energy \
            over LN² is constant, unless λ is large and the input is not normalised. (f) Updates that agree across layers add up to √L, \
            random ones do not.",
    claims: &["T3", "T5", "T7", "T8", "T10"],
    tables: &["theory"],
    draw,
};

/// One curve of a panel: the rows it is made of and its name.
struct Line<'w> {
    name: String,
    rows: Box<dyn Fn(&Number) -> bool + 'w>,
}

impl<'w> Line<'w> {
    fn new(name: impl Into<String>, rows: impl Fn(&Number) -> bool + 'w) -> Line<'w> {
        Line { name: name.into(), rows: Box::new(rows) }
    }
}

fn is(field: &Option<std::sync::Arc<str>>, wanted: &str) -> bool {
    field.as_deref() == Some(wanted)
}

/// Values by N or L, over draws.
fn collect(table: &Table, check: &str, metric: &str, x: fn(&Number) -> Option<i64>, line: &Line) -> BTreeMap<i64, Vec<f64>> {
    let mut found: BTreeMap<i64, Vec<f64>> = BTreeMap::new();
    for row in table.of(metric).filter(|row| is(&row.check, check) && (line.rows)(row)) {
        if let Some(x) = x(row) {
            found.entry(x).or_default().push(row.value);
        }
    }
    found
}

struct Panel<'w> {
    check: &'static str,
    metric: &'static str,
    title: &'static str,
    x: (fn(&Number) -> Option<i64>, &'static str),
    y: &'static str,
    lines: Vec<Line<'w>>,
    references: &'static [(f64, &'static str)],
    corner: Corner,
}

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let table = tables.get("theory");
    let of_check = |check: &'static str| table.rows.iter().filter(move |row| is(&row.check, check));
    let least_eta = of_check("T5").filter_map(|row| row.eta).fold(f64::INFINITY, f64::min);
    let most_n = |check: &'static str| of_check(check).filter_map(|row| row.n).max();
    let (n8, n10) = (most_n("T8"), most_n("T10"));
    let lambda_one = |row: &Number| row.lambda.is_none_or(|lambda| (lambda - 1.0).abs() < 1e-9);
    let large = |row: &Number| row.lambda.is_some_and(|lambda| lambda > 2.0);
    let rules = || {
        [("none", "*ε* = 1"), ("sqrt", "*ε* = 1/√*N*"), ("linear", "*ε* = 1/*N*")]
            .map(|(rule, name)| Line::new(name, move |row: &Number| is(&row.model, "prenorm") && row.rule() == rule))
    };
    let mut alphas: Vec<f64> = of_check("T7").filter_map(|row| row.alpha).collect();
    alphas.sort_by(f64::total_cmp);
    alphas.dedup();
    let panels = [
        Panel {
            check: "T3",
            metric: "R",
            title: "norm, normalised input",
            x: (|row| row.n, "loop count *N*"),
            y: "*R*_{*N*}",
            lines: rules().into_iter().collect(),
            references: &PREDICTED,
            corner: Corner::TopLeft,
        },
        Panel {
            check: "T3",
            metric: "branch_energy",
            title: "shared layer, *ε* = 1/*N*",
            x: (|row| row.n, "loop count *N*"),
            y: "‖∑ *r*_{*n*}‖^{2} / *d*",
            lines: ["raw", "prenorm"]
                .map(|model| Line::new(named(model), move |row: &Number| is(&row.model, model) && row.rule() == "linear"))
                .into_iter()
                .collect(),
            references: &[(2.0, "∝ *N*^{2}")],
            corner: Corner::TopLeft,
        },
        Panel {
            check: "T5",
            metric: "update_per_eta",
            title: "one update, normalised input",
            x: (|row| row.n, "loop count *N*"),
            y: "‖Δ*h*_{*N*}‖_{RMS} / *η*",
            lines: rules()
                .into_iter()
                .map(|line| Line { name: line.name, rows: Box::new(move |row| (line.rows)(row) && row.eta == Some(least_eta)) })
                .collect(),
            references: &PREDICTED,
            corner: Corner::TopLeft,
        },
        Panel {
            check: "T7",
            metric: "energy",
            title: "independent layers, *ε* = *L*^{−*α*}",
            x: (|row| row.l, "depth *L*"),
            y: "*R*_{*L*}^{2}",
            lines: alphas
                .iter()
                .map(|alpha| {
                    Line::new(format!("*α* = {}", number(*alpha)), move |row: &Number| {
                        is(&row.model, "raw") && row.alpha == Some(*alpha)
                    })
                })
                .collect(),
            references: &[],
            corner: Corner::TopLeft,
        },
        Panel {
            check: "T8",
            metric: "branch_ratio",
            title: "blocks, *ε* = *λ*/(*N*√*L*)",
            x: (|row| row.l, "depth *L*"),
            y: "‖∑ *G*_{*l*}‖^{2} / (*d L N*^{2})",
            lines: vec![
                Line::new("raw, *λ* = 1", move |row: &Number| is(&row.model, "raw") && lambda_one(row) && row.n == n8),
                Line::new("normalised, *λ* = 1", move |row: &Number| {
                    is(&row.model, "prenorm") && lambda_one(row) && row.n == n8
                }),
                Line::new("raw, *λ* = √12, *N* = 1", move |row: &Number| {
                    is(&row.model, "raw") && large(row) && row.n == Some(1)
                }),
                Line::new("normalised, *λ* = √12", move |row: &Number| {
                    is(&row.model, "prenorm") && large(row) && row.n == Some(1)
                }),
            ],
            references: &[],
            corner: Corner::TopLeft,
        },
        Panel {
            check: "T10",
            metric: "update_per_eta",
            title: "updates of *L* layers, *λ* = 1",
            x: (|row| row.l, "depth *L*"),
            y: "‖Δ*h*‖_{RMS} / *η*",
            lines: [("coherent", "coherent"), ("random-sign", "random signs")]
                .map(|(variant, name)| {
                    Line::new(name, move |row: &Number| {
                        is(&row.variant, variant) && is(&row.model, "raw") && lambda_one(row) && row.n == n10
                    })
                })
                .into_iter()
                .collect(),
            references: &[(0.5, "∝ √*L*")],
            corner: Corner::TopLeft,
        },
    ];
    let alt = "Six panels of measured scaling laws of the theory's recursion with reference slopes.";
    let mut chart = Chart::new(FIGURE.name, alt, PAGE);
    let mut told = Vec::new();
    let mut cells: Vec<Cell> = Vec::new();
    for panel in &panels {
        let title = format!("({}) {}", letter(cells.len()), panel.title);
        cells.push(draw_panel(table, panel, title, &mut told));
    }
    while !cells.is_empty() {
        let rest = cells.split_off(cells.len().min(3));
        chart.rows.push(Row { height: 140.0, cells });
        cells = rest;
    }
    let ours = if told.is_empty() {
        "No theory check is part of this profile.".into()
    } else {
        format!("Here the log-log slopes, from 8 loops or layers on, are: {}.", told.join("; "))
    };
    Drawn { chart, ours }
}

fn named(model: &str) -> &'static str {
    if model == "raw" { "*φ*(*h*)" } else { "*φ*(RMSNorm(*h*))" }
}

fn draw_panel(table: &Table, panel: &Panel, title: String, told: &mut Vec<String>) -> Cell {
    let mut plot = Plot::new(title.clone(), Axis::log2(panel.x.1), Axis::log10(panel.y));
    let mut ends: Vec<(f64, f64)> = Vec::new();
    for (at, line) in panel.lines.iter().enumerate() {
        let found = collect(table, panel.check, panel.metric, panel.x.0, line);
        let points = means(&found);
        let Some(end) = points.last().copied() else { continue };
        let (colour, shape) = look(at);
        let name = crate::render::chart::text::plain(&line.name);
        let axis = if panel.x.1.starts_with("loop") { "N" } else { "L" };
        add_curve(&mut plot.layers, &found, colour, shape, 2.3, &|x| format!("{} {name}, {axis} = {x}", panel.check), true);
        if panel.check == "T7" {
            let predicted = means(&collect(table, "T7", "energy_predicted", panel.x.0, line));
            let off = points.iter().zip(&predicted).map(|((_, have), (_, want))| (have / want - 1.0).abs()).fold(0.0, f64::max);
            told.push(format!("T7 {name} within {:.0}% of the prediction", 100.0 * off));
            plot.add(Layer::Line { points: predicted, colour: colour.into(), width: 1.0, dash: Some("1.5 2.5"), tip: None });
        } else if let Some(slope) = tail_slope(&points) {
            told.push(format!("{} {name} {}", panel.check, signed(slope)));
        }
        ends.push(end);
        let sample = Sample::Line { colour: colour.into(), shape: Some(shape), dash: None };
        plot.keys.push(Key { sample, label: line.name.clone() });
    }
    if plot.layers.is_empty() {
        return nothing(title, format!("Check {} is not part of this profile.", panel.check));
    }
    // The laws hold for many loops: each reference goes through the end of its curve.
    for (at, (slope, label)) in panel.references.iter().enumerate() {
        let (last, value) = ends[at.min(ends.len() - 1)];
        if last > 1.0 {
            let label = if *slope == 0.0 { "" } else { label };
            plot.layers.extend(references(value / last.powf(*slope), last, &[(*slope, label)]));
        }
    }
    plot.keys_at = panel.corner;
    let (low, high) = plot.y_range();
    // Room for the legend above the curves.
    let lift = 10f64.powf((high / low).log10() * 0.105 * plot.keys.len() as f64);
    plot.y.range = Some((low, high * lift));
    Cell::Plot(plot)
}

/// The slope from 8 on, where the laws hold; of all points where there are few.
fn tail_slope(points: &[(f64, f64)]) -> Option<f64> {
    let tail: Vec<(f64, f64)> = points.iter().copied().filter(|(x, _)| *x >= 8.0).collect();
    log_slope(if tail.len() >= 3 { &tail } else { points })
}

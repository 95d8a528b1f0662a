//! Figure "lr-step": how much one optimiser step moves the output, over loop counts.

use super::energy::signed;
use super::series::{RULES, add_curve, curves, list, look, means, nothing};
use super::{Drawn, Figure, Settings};
use crate::render::chart::layout::COLUMN;
use crate::render::chart::{Axis, Cell, Chart, Key, Layer, Plot, Row, Sample};
use crate::render::statistics::log_slope;
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "lr-step",
    title: "Constant-LR per-step output updates track the ηεN upper-bound scaling",
    claim: "The paper: at one fixed learning rate the RMS change of the final pre-norm state after one step grows as N without scaling and \
            as √N with 1/√N, and stays within a small range with 1/N. Mean ± SEM over seeds; dashed: slopes 1, 1/2 and 0 from N = 1.",
    claims: &["E4"],
    tables: &["init-diagnostics"],
    draw,
};

/// What the theory predicts: exponent, and its name.
pub const PREDICTED: [(f64, &str); 3] = [(1.0, "∝ *N*"), (0.5, "∝ √*N*"), (0.0, "constant")];

/// Slopes anchored at the value at one loop, up to the largest loop count.
pub fn references(anchor: f64, last: f64, which: &[(f64, &str)]) -> Vec<Layer> {
    which
        .iter()
        .map(|(slope, label)| Layer::Reference {
            points: (0..=24).map(|at| last.powf(f64::from(at) / 24.0)).map(|n| (n, anchor * n.powf(*slope))).collect(),
            label: label.to_string(),
        })
        .collect()
}

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let table = tables.get("init-diagnostics");
    let mut chart = Chart::new(
        FIGURE.name,
        "RMS change of the output after one optimiser step over the loop count, for three residual rules, with reference slopes.",
        COLUMN,
    );
    let mut plot = Plot::new("", Axis::log2("loop count *N*"), Axis::log10("‖Δ*h*_{*N*}‖_{RMS} after one step"));
    let mut told = Vec::new();
    let mut anchor = None;
    let mut last: f64 = 1.0;
    let mut lines = Vec::new();
    for (at, (rule, name, _)) in RULES.into_iter().enumerate() {
        let found = curves(table, "update", "looped", rule);
        let Some(curve) = found.get(&1) else { continue };
        let (colour, shape) = look([1, 2, 0][at]);
        add_curve(&mut lines, curve, colour, shape, 3.2, &|n| format!("{rule}, N = {n}"), true);
        chart
            .legend
            .push(Key { sample: Sample::Line { colour: colour.into(), shape: Some(shape), dash: None }, label: name.into() });
        let points = means(curve);
        anchor = anchor.or(points.iter().find(|(n, y)| *n == 1.0 && y.is_finite()).map(|(_, y)| *y));
        last = points.iter().map(|(n, _)| *n).fold(last, f64::max);
        if let Some(slope) = log_slope(&points) {
            let values: Vec<f64> = points.iter().map(|(_, y)| *y).filter(|y| y.is_finite()).collect();
            let ratio = values.iter().copied().fold(0.0, f64::max) / values.iter().copied().fold(f64::INFINITY, f64::min);
            told.push(format!("{rule} {} (largest over smallest {ratio:.2})", signed(slope)));
        }
    }
    if lines.is_empty() {
        let text = "No update of a looped stack was measured in this profile.";
        chart.rows.push(Row { height: 120.0, cells: vec![nothing("", text)] });
        return Drawn { chart, ours: text.into() };
    }
    if let (Some(anchor), true) = (anchor, last > 1.0) {
        plot.layers.extend(references(anchor, last, &PREDICTED));
    }
    plot.layers.extend(lines);
    chart.rows.push(Row { height: 210.0, cells: vec![Cell::Plot(plot)] });
    Drawn { chart, ours: format!("Here the log-log slopes are: {}.", list(&told)) }
}

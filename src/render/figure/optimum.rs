//! Figure "optimum": the fitted best learning rate over loop counts, with the spread of the seeds.

use super::series::{list, look, nothing};
use super::sweep::{Family, epsilon, families, rate_text, rate_ticks, rates, reference_depth};
use super::{Drawn, Figure, Settings};
use crate::render::chart::layout::COLUMN;
use crate::render::chart::{Axis, Cell, Chart, Dot, Key, Layer, Plot, Row, Sample, Shape};
use crate::render::statistics::log_slope;
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "optimum",
    title: "The fitted optimum against loop count",
    claim: "Ours: the vertex of a parabola in log learning rate through the five rates nearest to the lowest loss, for each rule and depth. \
            Bars span the vertices of single seeds; hollow points lie at the edge of the grid. If the optimum transfers, its line is level.",
    claims: &["E6", "E9"],
    tables: &["lr-transfer", "depth-transfer"],
    draw,
};

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let sweep = families(tables.get("lr-transfer"));
    let reference = reference_depth(&sweep);
    let depths = families(tables.get("depth-transfer"));
    let all: Vec<Family> = sweep.into_iter().chain(depths.into_iter().filter(|family| Some(family.depth) != reference)).collect();
    let mut chart = Chart::new(
        FIGURE.name,
        "Fitted optimal base learning rate over the loop count, one line per residual rule and depth, with the spread over seeds.",
        COLUMN,
    );
    let grid = rates(all.iter());
    let y = Axis::log2("fitted optimum *η*_{0} (×10^{−3})").ticks(rate_ticks(&grid));
    let mut plot = Plot::new("", Axis::log2("loop count *N*"), y);
    let mut told = Vec::new();
    for (at, family) in all.iter().enumerate() {
        let (colour, shape) = look(at);
        // Lines of several families stand side by side, not on top of each other.
        let shift = (0.045 * (at as f64 - (all.len() as f64 - 1.0) / 2.0)).exp2();
        let mut line = Vec::new();
        let (mut inside, mut at_edge) = (Vec::new(), Vec::new());
        for (n, curve) in &family.curves {
            let Some(best) = curve.optimum() else { continue };
            let x = *n as f64 * shift;
            let seeds = curve.optimum_by_seed();
            let low = seeds.iter().map(|seed| seed.lr).fold(f64::INFINITY, f64::min);
            let high = seeds.iter().map(|seed| seed.lr).fold(0.0, f64::max);
            let edge = if best.edge { ", at the edge of the grid" } else { "" };
            let spread =
                if seeds.len() > 1 { format!(", seeds {} to {}", rate_text(low), rate_text(high)) } else { String::new() };
            let tip = format!("{}, L = {}, N = {n}: η₀ = {}{spread}{edge}", family.rule, family.depth, rate_text(best.lr));
            if seeds.len() > 1 {
                plot.add(Layer::Interval { x, low, high, colour: colour.into(), tip: tip.clone() });
            }
            line.push((x, best.lr));
            if best.edge { &mut at_edge } else { &mut inside }.push(Dot { x, y: best.lr, tip });
        }
        if line.is_empty() {
            continue;
        }
        let slope = log_slope(
            &family.curves.iter().filter_map(|(n, c)| c.optimum().map(|best| (*n as f64, best.lr))).collect::<Vec<_>>(),
        );
        if let Some(slope) = slope {
            told.push(format!("{} at L = {}: {}", family.rule, family.depth, super::energy::signed(slope)));
        }
        plot.add(Layer::Line { points: line, colour: colour.into(), width: 1.3, dash: None, tip: None });
        plot.add(Layer::Dots { dots: inside, shape, size: 3.2, colour: colour.into(), hollow: false });
        plot.add(Layer::Dots { dots: at_edge, shape, size: 3.2, colour: colour.into(), hollow: true });
        let sample = Sample::Line { colour: colour.into(), shape: Some(shape), dash: None };
        chart.legend.push(Key { sample, label: format!("{}, *L* = {}", epsilon(&family.rule), family.depth) });
    }
    if plot.layers.is_empty() {
        let text = "No sweep over learning rates is part of this profile.";
        chart.rows.push(Row { height: 120.0, cells: vec![nothing("", text)] });
        return Drawn { chart, ours: text.into() };
    }
    // From the rate of the grid below everything drawn to the one above.
    let (low, high) = plot.y_range();
    let below = grid.iter().copied().filter(|rate| *rate <= low).fold(f64::NAN, f64::max);
    let above = grid.iter().copied().filter(|rate| *rate >= high).fold(f64::NAN, f64::min);
    plot.y.range = Some((if below.is_nan() { low } else { below * 0.94 }, if above.is_nan() { high } else { above * 1.06 }));
    let hollow = plot.layers.iter().any(|layer| matches!(layer, Layer::Dots { hollow: true, dots, .. } if !dots.is_empty()));
    if hollow {
        let sample = Sample::Point { colour: "#444444".into(), shape: Shape::Circle, hollow: true };
        chart.legend.push(Key { sample, label: "at the edge of the grid".into() });
    }
    chart.rows.push(Row { height: 200.0, cells: vec![Cell::Plot(plot)] });
    let ours =
        if told.is_empty() { String::new() } else { format!("Here the slopes of log η₀ over log N are: {}.", list(&told)) };
    Drawn { chart, ours }
}

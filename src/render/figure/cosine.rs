//! Figures "cosine-deep" and "cosine-looped": how alike the increments of the residual stream are, block by block.

use std::collections::BTreeMap;

use super::series::nothing;
use super::{Drawn, Figure, Settings};
use crate::render::chart::colour::Map;
use crate::render::chart::heat::range_text;
use crate::render::chart::layout::PAGE;
use crate::render::chart::plot::Corner;
use crate::render::chart::{Axis, Cell, Chart, Heat, Layer, Plot, Row};
use crate::render::tidy::{Row as Number, Tables};

pub const DEEP: Figure = Figure {
    name: "cosine-deep",
    title: "Without weight sharing, the increments of the residual stream are uncorrelated",
    claim: "The paper: in a stack of 64 independent copies of a 12-layer block, without residual scaling and after 10 steps, pairwise \
            cosines of the increments are negligible, range [−0.037, 0.034].",
    claims: &["E3"],
    tables: &["init-diagnostics"],
    draw: |tables, _: &Settings| draw(tables, "deep"),
};

pub const LOOPED: Figure = Figure {
    name: "cosine-looped",
    title: "Weight sharing induces persistent cross-step correlations",
    claim: "The paper: in a looped network (L = 12, N = 64, d = 768), without residual scaling and after 10 steps, shared weights give dense \
            positive alignment of the increments, range [0.027, 0.995].",
    claims: &["E3"],
    tables: &["init-diagnostics"],
    draw: |tables, _: &Settings| draw(tables, "looped"),
};

/// The cosines of one model, by pair, with i < j.
pub type Pairs = BTreeMap<(i64, i64), f64>;

/// Those of the smallest seed among the rows, and the range over all seeds.
pub fn pairs<'t>(rows: impl Iterator<Item = &'t Number>) -> (Pairs, Vec<i64>, (f64, f64)) {
    let mut by_seed: BTreeMap<i64, Pairs> = BTreeMap::new();
    for row in rows {
        if let (Some(i), Some(j)) = (row.i, row.j) {
            by_seed.entry(row.seed.unwrap_or(0)).or_default().insert((i.min(j), i.max(j)), row.value);
        }
    }
    let seeds: Vec<i64> = by_seed.keys().copied().collect();
    let all = by_seed.values().flat_map(|pairs| pairs.values().copied()).filter(|value| value.is_finite());
    let range = all.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)));
    (by_seed.into_values().next().unwrap_or_default(), seeds, range)
}

pub fn range_of(pairs: &Pairs) -> (f64, f64) {
    let finite = pairs.values().copied().filter(|value| value.is_finite());
    finite.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), value| (low.min(value), high.max(value)))
}

/// The whole symmetric matrix, ones on the diagonal.
pub fn matrix(pairs: &Pairs, title: String, bar: Option<String>) -> Heat {
    let size = pairs.keys().map(|(_, j)| *j).max().unwrap_or(0).max(0) as usize;
    let every = size.div_ceil(8).next_power_of_two();
    let names: Vec<String> =
        (1..=size).map(|n| if n % every == 0 || (n == 1 && every > 1) { n.to_string() } else { String::new() }).collect();
    let value = |r: usize, c: usize| {
        let (i, j) = (r.min(c) as i64 + 1, r.max(c) as i64 + 1);
        if i == j { Some(1.0) } else { pairs.get(&(i, j)).copied() }
    };
    let tip = |r: usize, c: usize| {
        let shown = value(r, c).map_or("not measured".to_string(), |value| format!("{value:.3}").replace('-', "−"));
        format!("i={} j={}: {shown}", r + 1, c + 1)
    };
    let (low, high) = range_of(pairs);
    Heat {
        title,
        subtitle: format!("off-diagonal range {}", range_text(low, high)),
        rows: names.clone(),
        columns: names,
        x_label: "step *j*".into(),
        y_label: "step *i*".into(),
        values: (0..size).map(|r| (0..size).map(|c| value(r, c)).collect()).collect(),
        tips: (0..size).map(|r| (0..size).map(|c| tip(r, c)).collect()).collect(),
        map: Map::Signed,
        range: (-1.0, 1.0),
        digits: (size <= 10).then_some(2),
        square: true,
        bar,
    }
}

fn draw(tables: &Tables, stack: &str) -> Drawn {
    let table = tables.get("init-diagnostics");
    let figure = if stack == "deep" { &DEEP } else { &LOOPED };
    let alt = format!("Heat map of the cosines between all pairs of increments of a {stack} stack, and their histogram.");
    let mut chart = Chart::new(figure.name, alt, PAGE);
    chart.shares = vec![1.0, 1.0];
    let here = |row: &&Number| row.stack() == stack && row.rule() == "none";
    let n = table.of("cosine").filter(here).filter_map(|row| row.n).max();
    let of = |metric: &'static str| {
        let step = table.of(metric).filter(here).filter(|row| row.n == n).filter_map(|row| row.step).max();
        (step, table.of(metric).filter(here).filter(move |row| row.n == n && row.step == step))
    };
    let (step, rows) = of("cosine");
    let (found, seeds, over_seeds) = pairs(rows);
    let (Some(n), Some(step), false) = (n, step, found.is_empty()) else {
        let text = format!("No cosines of a {stack} stack without residual scaling were measured in this profile.");
        chart.rows.push(Row { height: 120.0, cells: vec![nothing("", text)] });
        chart.shares.clear();
        return Drawn { chart, ours: "No cosines were measured in this profile.".into() };
    };
    let blocks = if stack == "deep" { format!("{n} independent blocks") } else { format!("*N* = {n} loops") };
    let mut heat = matrix(&found, format!("(a) {stack} stack, {blocks}, step {step}"), Some("cosine".into()));
    heat.subtitle.clear();
    let (low, high) = range_of(&found);
    let average = found.values().sum::<f64>() / found.len() as f64;
    let mut plot = Plot::new("(b) off-diagonal pairs", Axis::linear("cosine"), Axis::whole("number of pairs"));
    let bars = 36usize;
    let (from, wide) = (low, ((high - low) / bars as f64).max(1e-9));
    let mut counts = vec![0usize; bars];
    for value in found.values().filter(|value| value.is_finite()) {
        counts[(((value - from) / wide) as usize).min(bars - 1)] += 1;
    }
    for (at, count) in counts.into_iter().enumerate() {
        let (a, b) = (from + at as f64 * wide, from + (at + 1) as f64 * wide);
        let tip = format!("cosine {} to {}: {count} pairs", short(a), short(b));
        plot.add(Layer::Column { from: a, to: b, y: count as f64, colour: "#5f7f9f".into(), tip });
    }
    let top = plot.layers.iter().map(|layer| if let Layer::Column { y, .. } = layer { *y } else { 0.0 }).fold(1.0, f64::max);
    plot.y.range = Some((0.0, top * 1.25));
    plot.notes = vec![format!("{} pairs, mean {}", found.len(), short(average)), format!("range {}", range_text(low, high))];
    plot.notes_at = if stack == "deep" { Corner::TopRight } else { Corner::TopLeft };
    chart.rows.push(Row { height: 250.0, cells: vec![Cell::Heat(heat), Cell::Plot(plot)] });
    let mut ours = format!(
        "Here seed {}, {} copies of the block, after {step} steps: mean {}, range {}",
        seeds[0],
        n,
        short(average),
        range_text(low, high)
    );
    if stack == "looped" {
        ours = ours.replace("copies of the block", "loops");
    }
    if seeds.len() > 1 {
        ours += &format!("; over {} seeds {}", seeds.len(), range_text(over_seeds.0, over_seeds.1));
    }
    let (_, flat) = of("cosine_flat");
    let (flat, ..) = pairs(flat);
    if !flat.is_empty() {
        let (low, high) = range_of(&flat);
        ours += &format!("; of the vectors flattened over tokens {}", range_text(low, high));
    }
    Drawn { chart, ours: ours + "." }
}

fn short(value: f64) -> String {
    format!("{value:.3}").replace('-', "−")
}

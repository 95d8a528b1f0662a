//! Figure "lr-transfer": held-out loss over the base learning rate, for each residual rule and depth.

use super::series::{letter, list, look, nothing, with_sem};
use super::sweep::{Family, by_rule_and_by_depth, epsilon, rate_text, rate_ticks, rates, reference_depth};
use super::{Drawn, Figure, Settings};
use crate::render::chart::layout::PAGE;
use crate::render::chart::{Axis, Cell, Chart, Dot, Key, Layer, Plot, Row, Sample, Scale, Shape};
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "lr-transfer",
    title: "Learning-rate transfer across scaling rules and depths",
    claim: "The paper: at the reference depth 1/√N shifts the optimum with N (a), while 1/N aligns the optima and improves the loss at many \
            loops (b); with 1/(N√L) one base learning rate stays near-optimal over depths and loops (c, d). Stars mark the optima, bands \
            are ± SEM over seeds, crosses at the top are runs that diverged. The axis is the base rate; blocks train at η₀/√m_L.",
    claims: &["E6", "E7", "E8", "E9", "E11"],
    tables: &["lr-transfer", "depth-transfer"],
    draw,
};

fn draw(tables: &Tables, _: &Settings) -> Drawn {
    let (sweep, depths) = by_rule_and_by_depth(tables);
    let reference = reference_depth(&sweep);
    let mut loops: Vec<i64> = sweep.iter().chain(&depths).flat_map(|family| family.curves.keys().copied()).collect();
    loops.sort_unstable();
    loops.dedup();
    let mut chart = Chart::new(
        FIGURE.name,
        "Held-out loss over the base learning rate, one line per loop count and a star at each optimum: square-root and linear \
         scaling at the reference depth, and the factorised rule at greater depths.",
        PAGE,
    );
    for (at, n) in loops.iter().enumerate() {
        let (colour, shape) = look(at);
        let sample = Sample::Line { colour: colour.into(), shape: Some(shape), dash: None };
        chart.legend.push(Key { sample, label: format!("*N* = {n}") });
    }
    if !loops.is_empty() {
        let star = Sample::Point { colour: "#ffffff".into(), shape: Shape::Star, hollow: false };
        chart.legend.push(Key { sample: star, label: "optimum".into() });
    }

    // The paper's four panels come first; rules of a user's own study follow.
    let mut wanted: Vec<(String, Option<&Family>, String)> = Vec::new();
    let l = |depth: Option<i64>| depth.map_or("reference depth".to_string(), |depth| format!("*L* = {depth}"));
    for rule in ["sqrt", "linear"] {
        let family = sweep.iter().find(|family| family.rule == rule);
        let missing = format!("The sweep with rule `{rule}` is not part of this profile.");
        wanted.push((format!("{}, {}", l(reference), epsilon(rule)), family, missing));
    }
    for at in 0..depths.len().max(2) {
        let family = depths.get(at);
        let title = match family {
            Some(family) => format!("{}, {}", l(Some(family.depth)), epsilon(&family.rule)),
            None => format!("{} × reference depth", ["2", "4"].get(at).unwrap_or(&"more")),
        };
        wanted.push((title, family, "No sweep at this depth is part of this profile.".to_string()));
    }
    for family in sweep.iter().filter(|family| !["sqrt", "linear"].contains(&family.rule.as_str())) {
        wanted.push((format!("{}, {}", l(Some(family.depth)), epsilon(&family.rule)), Some(family), String::new()));
    }

    let diverged = sweep.iter().chain(&depths).flat_map(|f| f.curves.values()).flat_map(|c| &c.points).any(|p| p.diverged() > 0);
    if diverged {
        let cross = Sample::Point { colour: "#555555".into(), shape: Shape::Cross, hollow: false };
        chart.legend.push(Key { sample: cross, label: "diverged".into() });
    }
    let all_rates = rates(sweep.iter().chain(&depths));
    let x_range = Scale::Log2.around(all_rates.iter().copied(), if diverged { 0.07 } else { 0.05 });
    let mut cells: Vec<Cell> = Vec::new();
    // Panels side by side have one loss axis, so that curves can be compared across.
    let ranges: Vec<Option<(f64, f64)>> =
        wanted.chunks(2).map(|pair| loss_range(&pair.iter().filter_map(|(_, family, _)| *family).collect::<Vec<_>>())).collect();
    let mut beyond = false;
    for (at, (title, family, missing)) in wanted.into_iter().enumerate() {
        let title = format!("({}) {title}", letter(at));
        let Some(family) = family else {
            cells.push(nothing(title, missing));
            continue;
        };
        let x = Axis::log2("base learning rate *η*_{0} (×10^{−3})").ticks(rate_ticks(&all_rates)).range(x_range.0, x_range.1);
        let left = at % 2 == 0 || !matches!(cells.last(), Some(Cell::Plot(_)));
        let mut plot = Plot::new(title, x, Axis::linear(if left { "held-out loss (nats/token)" } else { "" }));
        plot.y.range = ranges[at / 2];
        beyond |= add_family(&mut plot, family, &loops);
        cells.push(Cell::Plot(plot));
    }
    if beyond {
        let arrow = Sample::Point { colour: "#555555".into(), shape: Shape::Triangle, hollow: true };
        chart.legend.push(Key { sample: arrow, label: "beyond the axis".into() });
    }
    while !cells.is_empty() {
        let rest = cells.split_off(cells.len().min(2));
        chart.rows.push(Row { height: 165.0, cells });
        cells = rest;
    }
    Drawn { chart, ours: told(&sweep, &depths) }
}

/// The losses a row of panels shows: from the lowest to the highest, but not so high that the lowest part of the curves, which the
/// figure is about, is squeezed flat.
fn loss_range(families: &[&Family]) -> Option<(f64, f64)> {
    let points = families.iter().flat_map(|family| family.curves.values()).flat_map(|curve| &curve.points);
    let mut losses: Vec<f64> = points.map(|point| point.loss()).filter(|loss| loss.is_finite()).collect();
    losses.sort_by(f64::total_cmp);
    let (low, high, middle) = (*losses.first()?, *losses.last()?, losses[losses.len() / 2]);
    let high = if high - low > 5.0 * (middle - low) { low + 4.0 * (middle - low).max(0.01) } else { high };
    Some(Scale::Linear.around([low, high], 0.08))
}

/// Adds the curves of a family; says whether a point lies beyond the axis.
fn add_family(plot: &mut Plot, family: &Family, loops: &[i64]) -> bool {
    let top = plot.y.range.map_or(f64::INFINITY, |(_, top)| top);
    let mut beyond = false;
    let mut stars = Vec::new();
    for (n, curve) in &family.curves {
        let at = loops.iter().position(|have| have == n).unwrap_or(0);
        let (colour, shape) = look(at);
        let whole: Vec<_> = curve.points.iter().filter(|point| point.loss().is_finite()).collect();
        let stats = || whole.iter().filter_map(|point| point.mean().map(|found| (point.lr, found)));
        if stats().any(|(_, found)| found.count > 1) {
            let points = stats().map(|(lr, found)| (lr, found.mean - found.sem, found.mean + found.sem)).collect();
            plot.add(Layer::Band { points, colour: colour.into() });
        }
        // A rate at which a seed diverged breaks the line.
        let line = curve.points.iter().map(|point| (point.lr, point.loss())).collect();
        plot.add(Layer::Line { points: line, colour: colour.into(), width: 1.4, dash: None, tip: None });
        let dots = stats().map(|(lr, found)| {
            let tip = format!("N = {n}, η₀ = {}: loss {}", rate_text(lr), with_sem(found));
            Dot { x: lr, y: found.mean, tip }
        });
        plot.add(Layer::Dots { dots: dots.collect(), shape, size: 2.6, colour: colour.into(), hollow: false });
        let slot = 0.9 * (at as f64 - (loops.len() as f64 - 1.0) / 2.0);
        for (lr, found) in stats().filter(|(_, found)| found.mean > top) {
            beyond = true;
            let tip = format!("N = {n}, η₀ = {}: loss {}, beyond the axis", rate_text(lr), with_sem(found));
            plot.add(Layer::Above { x: lr, slot, shape: Shape::Triangle, colour: colour.into(), tip });
        }
        for point in curve.points.iter().filter(|point| point.diverged() > 0) {
            let tip =
                format!("N = {n}, η₀ = {}: {} of {} diverged", rate_text(point.lr), point.diverged(), runs(point.losses.len()));
            plot.add(Layer::Above { x: point.lr, slot, shape: Shape::Cross, colour: colour.into(), tip });
        }
        if let Some(best) = curve.optimum() {
            let edge = if best.edge { ", at the edge of the grid" } else { "" };
            let tip = format!("optimum for N = {n}: η₀ = {}, loss {:.4}{edge}", rate_text(best.at), best.loss);
            stars.push((colour, Dot { x: best.at, y: best.loss, tip }));
        }
    }
    for (colour, star) in stars {
        plot.add(Layer::Dots { dots: vec![star], shape: Shape::Star, size: 5.0, colour: colour.into(), hollow: false });
    }
    beyond
}

fn runs(count: usize) -> String {
    if count == 1 { "1 run".into() } else { format!("{count} runs") }
}

fn told(sweep: &[Family], depths: &[Family]) -> String {
    let mut sentences = Vec::new();
    for family in sweep.iter().chain(depths) {
        let optima: Vec<String> = family
            .curves
            .iter()
            .filter_map(|(n, curve)| curve.optimum().map(|best| format!("{} (N = {n})", rate_text(best.at))))
            .collect();
        if !optima.is_empty() {
            sentences.push(format!("{} at L = {}: optima at {}", family.rule, family.depth, list(&optima)));
        }
    }
    if sentences.is_empty() { "No sweep is part of this profile.".into() } else { format!("Here, {}.", sentences.join("; ")) }
}

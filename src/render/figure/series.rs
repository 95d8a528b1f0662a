//! Measurements grouped into curves: mean and standard error over seeds, by loop count and step. Shared by the diagnostics' figures.

use std::collections::BTreeMap;

use crate::render::chart::axis::plain_number;
use crate::render::chart::colour::{QUALITATIVE, ordered};
use crate::render::chart::{Cell, Dot, Layer, Ramp, Shape};
use crate::render::statistics::{Mean, mean};
use crate::render::tidy::{Row, Table};

/// The rules of the diagnostics with the factor each gives.
pub const RULES: [(&str, &str, &str); 3] =
    [("none", "*ε* = 1", "1"), ("sqrt", "*ε* = 1/√*N*", "1/√N"), ("linear", "*ε* = 1/*N*", "1/N")];

/// By step, then by number of loops or copies.
pub type Curves = BTreeMap<i64, BTreeMap<i64, Vec<f64>>>;

/// The values of a metric for one stack and rule. With one loop or copy all stacks and rules are the same run, which is there once.
pub fn curves(table: &Table, metric: &str, stack: &str, rule: &str) -> Curves {
    let mut found = Curves::new();
    let mut add = |row: &Row| {
        if let (Some(step), Some(n)) = (row.step, row.n) {
            found.entry(step).or_default().entry(n).or_default().push(row.value);
        }
    };
    let own = |row: &&Row| row.stack() == stack && row.rule() == rule;
    let measured = || table.of(metric).filter(|row| row.visit.is_none());
    measured().filter(own).for_each(&mut add);
    if measured().any(|row| own(&row)) && !measured().any(|row| own(&row) && row.n == Some(1)) {
        let same_stack = measured().find(|row| row.n == Some(1) && row.stack() == stack);
        if let Some(one) = same_stack.or_else(|| measured().find(|row| row.n == Some(1))) {
            let (stack, rule) = (one.stack(), one.rule());
            measured().filter(|row| row.n == Some(1) && row.stack() == stack && row.rule() == rule).for_each(add);
        }
    }
    found
}

/// The means of a curve; NaN where nothing is finite.
pub fn means(curve: &BTreeMap<i64, Vec<f64>>) -> Vec<(f64, f64)> {
    curve.iter().map(|(n, values)| (*n as f64, mean(values).map_or(f64::NAN, |found| found.mean))).collect()
}

pub fn with_sem(found: Mean) -> String {
    if found.count < 2 {
        plain_number(found.mean)
    } else {
        format!("{} ± {} ({} seeds)", plain_number(found.mean), plain_number(found.sem), found.count)
    }
}

/// A line with its points; where no seed has a value, a cross at the top. `what` begins the tips.
pub fn add_curve(
    layers: &mut Vec<Layer>,
    curve: &BTreeMap<i64, Vec<f64>>,
    colour: &str,
    shape: Shape,
    size: f64,
    what: &dyn Fn(i64) -> String,
    band: bool,
) {
    let found: Vec<(i64, Option<Mean>)> = curve.iter().map(|(n, values)| (*n, mean(values))).collect();
    if band {
        let points = found.iter().filter_map(|(n, m)| m.map(|m| (*n as f64, m.mean - m.sem, m.mean + m.sem))).collect();
        layers.push(Layer::Band { points, colour: colour.to_string() });
    }
    layers.push(Layer::Line {
        points: found.iter().map(|(n, m)| (*n as f64, m.map_or(f64::NAN, |m| m.mean))).collect(),
        colour: colour.to_string(),
        width: 1.3,
        dash: None,
        tip: None,
    });
    let dots = found
        .iter()
        .filter_map(|(n, m)| m.map(|m| Dot { x: *n as f64, y: m.mean, tip: format!("{}: {}", what(*n), with_sem(m)) }));
    layers.push(Layer::Dots { dots: dots.collect(), shape, size, colour: colour.to_string(), hollow: false });
    for (n, _) in found.iter().filter(|(_, m)| m.is_none()) {
        let tip = format!("{}: not finite", what(*n));
        layers.push(Layer::Above { x: *n as f64, slot: 0.0, shape: Shape::Cross, colour: colour.to_string(), tip });
    }
}

/// Viridis over these steps.
pub fn step_ramp(steps: &[i64]) -> Ramp {
    let steps = steps.iter().enumerate().map(|(at, step)| (ordered(at, steps.len()), step.to_string())).collect();
    Ramp { label: "optimiser step *t*".to_string(), steps }
}

/// The colour and shape of the `at`-th of several unordered things.
pub fn look(at: usize) -> (&'static str, Shape) {
    (QUALITATIVE[at % QUALITATIVE.len()], Shape::ALL[at % Shape::ALL.len()])
}

pub fn letter(at: usize) -> char {
    char::from(b'a' + (at % 26) as u8)
}

/// A panel in words.
pub fn nothing(title: impl Into<String>, text: impl Into<String>) -> Cell {
    Cell::Words { title: title.into(), text: text.into() }
}

/// "a, b and c".
pub fn list(words: &[String]) -> String {
    match words {
        [] => String::new(),
        [one] => one.clone(),
        [rest @ .., last] => format!("{} and {last}", rest.join(", ")),
    }
}

//! Training runs grouped into learning-rate curves: by rule, depth and loop count. Shared by the figures and tables of the sweeps.

use std::collections::{BTreeMap, BTreeSet};

use crate::render::chart::axis::Tick;
use crate::render::statistics::{Mean, Optimum, mean, optimum};
use crate::render::tidy::{Row, Table, Tables};

/// One model at one learning rate: what its seeds came to.
#[derive(Clone, Debug, Default)]
pub struct Point {
    pub lr: f64,
    /// Held-out loss by seed; NaN where the run diverged.
    pub losses: BTreeMap<i64, f64>,
}

impl Point {
    pub fn diverged(&self) -> usize {
        self.losses.values().filter(|loss| !loss.is_finite()).count()
    }
    /// Over the seeds that finished.
    pub fn mean(&self) -> Option<Mean> {
        mean(&self.losses.values().copied().collect::<Vec<f64>>())
    }
    /// The mean if every seed finished: a rate at which some diverge is no optimum.
    pub fn loss(&self) -> f64 {
        if self.diverged() > 0 { f64::NAN } else { self.mean().map_or(f64::NAN, |found| found.mean) }
    }
}

/// Loss over learning rate of one model, by rising rate.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    pub points: Vec<Point>,
}

impl Curve {
    pub fn optimum(&self) -> Option<Optimum> {
        optimum(&self.points.iter().map(|point| (point.lr, point.loss())).collect::<Vec<_>>())
    }

    /// The optimum of each seed by itself.
    pub fn optimum_by_seed(&self) -> Vec<Optimum> {
        let mut seeds: Vec<i64> = self.points.iter().flat_map(|point| point.losses.keys().copied()).collect();
        seeds.sort_unstable();
        seeds.dedup();
        let of = |seed: &i64| {
            let curve: Vec<(f64, f64)> =
                self.points.iter().filter_map(|point| point.losses.get(seed).map(|loss| (point.lr, *loss))).collect();
            optimum(&curve)
        };
        seeds.iter().filter_map(of).collect()
    }

    pub fn at(&self, lr: f64) -> Option<&Point> {
        self.points.iter().find(|point| same_rate(point.lr, lr))
    }
}

pub fn same_rate(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

/// A rule at a depth; its curves by loop count.
#[derive(Clone, Debug, Default)]
pub struct Family {
    pub rule: String,
    pub depth: i64,
    pub curves: BTreeMap<i64, Curve>,
}

/// The families of a table of training runs: the paper's rules in its order, then others by name; depths ascending. The run at one
/// loop belongs to every rule of its depth.
pub fn families(table: &Table) -> Vec<Family> {
    let mut found: BTreeMap<(i64, usize, String), BTreeMap<i64, Vec<Point>>> = BTreeMap::new();
    // What names a run: rule, depth, loops, rate and seed.
    let key = |row: &Row| (row.rule().to_string(), [row.l, row.n, row.seed], row.lr.map(f64::to_bits));
    let bad: BTreeSet<_> = table.of("diverged").filter(|row| row.value > 0.0).map(key).collect();
    for row in table.of("eval_loss").filter(|row| row.stack() != "deep") {
        let (Some(depth), Some(n), Some(lr)) = (row.l, row.n, row.lr) else { continue };
        let order = ["none", "sqrt", "linear", "factorised"].iter().position(|rule| *rule == row.rule()).unwrap_or(9);
        let points = found.entry((depth, order, row.rule().to_string())).or_default().entry(n).or_default();
        let at = match points.iter().position(|point| same_rate(point.lr, lr)) {
            Some(at) => at,
            None => {
                points.push(Point { lr, losses: BTreeMap::new() });
                points.len() - 1
            }
        };
        let loss = if bad.contains(&key(row)) { f64::NAN } else { row.value };
        points[at].losses.insert(row.seed.unwrap_or(0), loss);
    }
    let mut families: Vec<Family> = found
        .into_iter()
        .map(|((depth, _, rule), curves)| {
            let curves = curves.into_iter().map(|(n, mut points)| {
                points.sort_by(|a, b| a.lr.total_cmp(&b.lr));
                (n, Curve { points })
            });
            Family { rule, depth, curves: curves.collect() }
        })
        .collect();
    for at in 0..families.len() {
        let one = families.iter().find(|other| other.depth == families[at].depth && other.curves.contains_key(&1));
        let one = one.map(|other| other.curves[&1].clone());
        if let Some(curve) = one {
            families[at].curves.entry(1).or_insert(curve);
        }
    }
    // A rule that has nothing but the shared run at one loop is a rule only if no other has it.
    let depths_with_loops: Vec<i64> = families.iter().filter(|f| f.curves.keys().any(|n| *n > 1)).map(|f| f.depth).collect();
    families.retain(|family| family.curves.keys().any(|n| *n > 1) || !depths_with_loops.contains(&family.depth));
    families
}

/// The depth the learning rate was tuned at: that of the sweep over rules.
pub fn reference_depth(sweep: &[Family]) -> Option<i64> {
    sweep.iter().map(|family| family.depth).min()
}

/// The sweep over rules, and that over depths without the reference depth, which the first one holds already.
pub fn by_rule_and_by_depth(tables: &Tables) -> (Vec<Family>, Vec<Family>) {
    let sweep = families(tables.get("lr-transfer"));
    let reference = reference_depth(&sweep);
    let deeper = families(tables.get("depth-transfer")).into_iter().filter(|family| Some(family.depth) != reference).collect();
    (sweep, deeper)
}

/// All learning rates there are, ascending.
pub fn rates<'f>(families: impl Iterator<Item = &'f Family>) -> Vec<f64> {
    let mut rates: Vec<f64> =
        families.flat_map(|family| family.curves.values()).flat_map(|curve| curve.points.iter().map(|point| point.lr)).collect();
    rates.sort_by(f64::total_cmp);
    rates.dedup_by(|a, b| same_rate(*a, *b));
    rates
}

/// Ticks at the rates themselves, in thousandths.
pub fn rate_ticks(rates: &[f64]) -> Vec<Tick> {
    rates.iter().map(|rate| Tick::new(*rate, thousandths(*rate))).collect()
}

pub fn thousandths(rate: f64) -> String {
    let text = format!("{:.4}", rate * 1e3);
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// `2e-3`: a rate in a tip or a table.
pub fn rate_text(rate: f64) -> String {
    let text = format!("{rate:.3e}");
    match text.split_once('e') {
        Some((digits, power)) => format!("{}e{power}", digits.trim_end_matches('0').trim_end_matches('.')),
        None => text,
    }
}

/// A rule's factor as the paper writes it.
pub fn epsilon(rule: &str) -> String {
    match rule {
        "none" => "*ε* = 1".into(),
        "sqrt" => "*ε* = 1/√*N*".into(),
        "linear" => "*ε* = 1/*N*".into(),
        "factorised" => "*ε* = 1/(*N*√*m*_{*L*})".into(),
        other => match other.strip_prefix("power-") {
            Some(alpha) => format!("*ε* = *N*^{{−{alpha}}}"),
            None => other.to_string(),
        },
    }
}

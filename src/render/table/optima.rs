//! Tables of the sweeps: where each model's learning rate is best, and the lowest losses of the rules side by side.

use std::collections::BTreeMap;

use super::{Column, Entry, Sheet, fixed};
use crate::render::figure::series::with_sem;
use crate::render::figure::sweep::{Family, Point, families, rate_text, rates, reference_depth};
use crate::render::statistics::mean;
use crate::render::tidy::Tables;

/// All families of a profile: rules at the reference depth, then depths.
pub fn all(tables: &Tables) -> Vec<Family> {
    let sweep = families(tables.get("lr-transfer"));
    let reference = reference_depth(&sweep);
    let depths = families(tables.get("depth-transfer"));
    sweep.into_iter().chain(depths.into_iter().filter(|family| Some(family.depth) != reference)).collect()
}

pub fn optima(tables: &Tables, base_lr: Option<f64>) -> Sheet {
    let families = all(tables);
    let base = base_lr.or_else(|| families.iter().find_map(|f| f.curves.get(&1)).and_then(|c| c.optimum()).map(|best| best.at));
    let mut sheet = Sheet::new(
        "lr-optima",
        format!(
            "Optimal base learning rate by rule, depth L and loop count N: the best of the grid, the vertex of a parabola in log rate \
             through the five nearest rates with the span of single seeds, the lowest held-out loss (nats/token, mean ± SEM), and what the \
             base rate {} costs. An optimum at the edge of the grid may lie outside it.",
            base.map_or("—".to_string(), rate_text)
        ),
        vec![
            Column::left("rule"),
            Column::right("L"),
            Column::right("N"),
            Column::right("best η₀"),
            Column::right("fitted η₀"),
            Column::left("over seeds"),
            Column::left("lowest loss"),
            Column::right("regret"),
            Column::right("diverged"),
            Column::left("edge"),
        ],
    );
    sheet.wide = true;
    for family in &families {
        sheet.line();
        for (n, curve) in &family.curves {
            let diverged: usize = curve.points.iter().map(|point| point.diverged()).sum();
            let runs: usize = curve.points.iter().map(|point| point.losses.len()).sum();
            let mut row: Vec<Entry> = vec![family.rule.clone().into(), family.depth.to_string().into(), n.to_string().into()];
            match curve.optimum() {
                None => row.extend(["—", "—", "—", "—", "—"].map(Entry::new)),
                Some(best) => {
                    let seeds = curve.optimum_by_seed();
                    let low = seeds.iter().map(|seed| seed.lr).fold(f64::INFINITY, f64::min);
                    let high = seeds.iter().map(|seed| seed.lr).fold(0.0, f64::max);
                    let span =
                        if seeds.len() > 1 { format!("{} to {}", rate_text(low), rate_text(high)) } else { "one seed".into() };
                    let lowest = curve.at(best.at).and_then(|point| point.mean());
                    let regret = base.and_then(|base| curve.at(base)).map_or(f64::NAN, |point| point.loss() - best.loss);
                    row.push(rate_text(best.at).into());
                    row.push(rate_text(best.lr).into());
                    row.push(span.into());
                    row.push(lowest.map_or("—".to_string(), with_sem).into());
                    row.push(fixed(regret, 3).into());
                }
            }
            row.push(format!("{diverged} of {runs}").into());
            row.push(curve.optimum().map_or("", |best| if best.edge { "yes" } else { "no" }).into());
            sheet.push(row);
        }
    }
    sheet
}

/// Lowest losses, rules beside each other, and the difference of the paper's two by paired seeds.
pub fn lowest(tables: &Tables) -> Sheet {
    let families = all(tables);
    let mut loops: Vec<i64> = families.iter().flat_map(|family| family.curves.keys().copied()).collect();
    loops.sort_unstable();
    loops.dedup();
    let mut columns = vec![Column::left("rule"), Column::right("L")];
    columns.extend(loops.iter().map(|n| Column::right(format!("N = {n}"))));
    let mut sheet = Sheet::new(
        "min-loss",
        "Lowest held-out loss over the learning rates (nats/token, mean ± SEM over seeds). Last row: linear minus sqrt at the best rate of \
         each, over seeds that both have; the paper finds −0.025 at N = 8.",
        columns,
    );
    sheet.wide = true;
    for family in &families {
        let mut row: Vec<Entry> = vec![family.rule.clone().into(), family.depth.to_string().into()];
        row.extend(loops.iter().map(|n| {
            let best = family.curves.get(n).and_then(|curve| curve.optimum().and_then(|best| curve.at(best.at)?.mean()));
            Entry::new(best.map_or("—".to_string(), |found| {
                let sem = if found.count > 1 { format!(" ± {}", fixed(found.sem, 4)) } else { String::new() };
                format!("{}{sem}", fixed(found.mean, 4))
            }))
        }));
        sheet.push(row);
    }
    let find = |rule: &str| families.iter().find(|family| family.rule == rule);
    if let (Some(linear), Some(sqrt)) = (find("linear"), find("sqrt")) {
        sheet.line();
        let mut row: Vec<Entry> = vec!["linear − sqrt".into(), linear.depth.to_string().into()];
        row.extend(loops.iter().map(|n| Entry::new(difference(linear, sqrt, *n))));
        sheet.push(row);
    }
    sheet
}

fn difference(linear: &Family, sqrt: &Family, n: i64) -> String {
    if n == 1 {
        return "same run".into();
    }
    let at_best = |family: &Family| -> Option<BTreeMap<i64, f64>> {
        let curve = family.curves.get(&n)?;
        Some(curve.at(curve.optimum()?.at)?.losses.clone())
    };
    let (Some(a), Some(b)) = (at_best(linear), at_best(sqrt)) else { return "—".into() };
    let pairs: Vec<f64> = a.iter().filter_map(|(seed, loss)| b.get(seed).map(|other| loss - other)).collect();
    match mean(&pairs) {
        Some(found) if found.count > 1 => format!("{} ± {}", fixed(found.mean, 4), fixed(found.sem, 4)),
        Some(found) => fixed(found.mean, 4),
        None => "—".into(),
    }
}

/// Every point of the sweeps.
pub fn sweep(tables: &Tables) -> Sheet {
    let families = all(tables);
    let rates = rates(families.iter());
    let mut columns = vec![Column::left("rule"), Column::right("L"), Column::right("N")];
    columns.extend(rates.iter().map(|rate| Column::right(format!("η₀ = {}", rate_text(*rate)))));
    let mut sheet = Sheet::new(
        "lr-sweep",
        "Held-out loss at every base learning rate (nats/token, mean ± SEM over the seeds that finished); where seeds diverged, how many.",
        columns,
    );
    sheet.wide = true;
    for family in &families {
        sheet.line();
        for (n, curve) in &family.curves {
            let mut row: Vec<Entry> = vec![family.rule.clone().into(), family.depth.to_string().into(), n.to_string().into()];
            row.extend(rates.iter().map(|rate| Entry::new(curve.at(*rate).map_or("—".to_string(), shown))));
            sheet.push(row);
        }
    }
    sheet
}

fn shown(point: &Point) -> String {
    let loss = point.mean().map(|found| match found.count {
        1 => fixed(found.mean, 4),
        _ => format!("{} ± {}", fixed(found.mean, 4), fixed(found.sem, 4)),
    });
    let lost = (point.diverged() > 0).then(|| format!("{} of {} diverged", point.diverged(), point.losses.len()));
    [loss, lost].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

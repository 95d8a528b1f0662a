//! Figure "regret": what one base learning rate costs at every depth and loop count.

use super::series::nothing;
use super::sweep::{Family, epsilon, families, rate_text, reference_depth, same_rate};
use super::{Drawn, Figure, Settings};
use crate::render::chart::colour::Map;
use crate::render::chart::layout::COLUMN;
use crate::render::chart::{Cell, Chart, Heat, Row};
use crate::render::tidy::Tables;

pub const FIGURE: Figure = Figure {
    name: "regret",
    title: "What one base learning rate costs over depths and loop counts",
    claim: "The paper: one base learning rate is near-optimal for all depths and loop counts. Ours: the held-out loss at the base rate, the \
            best at N = 1 and the reference depth unless another is given, minus the lowest loss of that model, in nats per token.",
    claims: &["E10"],
    tables: &["lr-transfer", "depth-transfer"],
    draw,
};

fn draw(tables: &Tables, settings: &Settings) -> Drawn {
    let sweep = families(tables.get("lr-transfer"));
    let reference = reference_depth(&sweep);
    let depths = families(tables.get("depth-transfer"));
    let all: Vec<Family> =
        sweep.iter().cloned().chain(depths.into_iter().filter(|family| Some(family.depth) != reference)).collect();
    let mut chart = Chart::new(
        FIGURE.name,
        "Heat map of the loss at one base learning rate minus the best loss, over depth and rule (rows) and loop count (columns).",
        COLUMN,
    );
    let tuned = sweep.iter().find_map(|family| family.curves.get(&1)).and_then(|curve| curve.optimum()).map(|best| best.at);
    let Some(base) = settings.base_lr.or(tuned) else {
        let text = "No sweep with one loop at the reference depth is part of this profile, so there is no base learning rate.";
        chart.rows.push(Row { height: 110.0, cells: vec![nothing("", text)] });
        return Drawn { chart, ours: text.into() };
    };
    let mut loops: Vec<i64> = all.iter().flat_map(|family| family.curves.keys().copied()).collect();
    loops.sort_unstable();
    loops.dedup();
    let mut heat = Heat {
        title: format!("loss at *η*_{{0}} = {} minus the lowest", rate_text(base)),
        subtitle: String::new(),
        rows: all.iter().map(|family| format!("*L* = {}, {}", family.depth, epsilon(&family.rule))).collect(),
        columns: loops.iter().map(|n| n.to_string()).collect(),
        x_label: "loop count *N*".into(),
        y_label: String::new(),
        values: Vec::new(),
        tips: Vec::new(),
        map: Map::Amount,
        range: (0.0, 0.0),
        digits: Some(3),
        square: false,
        bar: Some("regret (nats/token)".into()),
    };
    let mut worst: Option<(f64, String)> = None;
    for family in &all {
        let mut values = Vec::new();
        let mut tips = Vec::new();
        for n in &loops {
            let curve = family.curves.get(n);
            let best = curve.and_then(|curve| curve.optimum());
            let here = curve.and_then(|curve| curve.points.iter().find(|point| same_rate(point.lr, base)));
            let name = format!("{}, L = {}, N = {n}", family.rule, family.depth);
            let (value, tip) = match (here, best) {
                (Some(here), Some(best)) if here.loss().is_finite() => {
                    let regret = here.loss() - best.loss;
                    if family.rule != "sqrt" && worst.as_ref().is_none_or(|(most, _)| regret > *most) {
                        worst = Some((regret, name.clone()));
                    }
                    (
                        Some(regret),
                        format!("{name}: {regret:.4} nats above the best, {} at {}", round(best.loss), rate_text(best.at)),
                    )
                }
                (Some(_), _) => (Some(f64::NAN), format!("{name}: diverged at this rate")),
                (None, _) => (None, format!("{name}: not run at this rate")),
            };
            values.push(value);
            tips.push(tip);
        }
        heat.values.push(values);
        heat.tips.push(tips);
    }
    let most = heat.values.iter().flatten().flatten().copied().filter(|value| value.is_finite()).fold(0.0, f64::max);
    // Below 0.02 nats a rate counts as near-optimal: a map of only such values stays pale.
    heat.range = (0.0, most.max(0.04));
    let height = 26.0 * all.len().max(2) as f64;
    chart.rows.push(Row { height, cells: vec![Cell::Heat(heat)] });
    let ours = match worst {
        Some((regret, name)) => format!(
            "Here the base rate is {} and the largest regret without the 1/√N rule is {regret:.3} nats ({name}); up to 0.02 counts as near-optimal.",
            rate_text(base)
        ),
        None => format!("No model of this profile ran at the base rate {}.", rate_text(base)),
    };
    Drawn { chart, ours }
}

fn round(loss: f64) -> String {
    format!("{loss:.4}")
}

//! Table of the diagnostics at initialisation: how norms and updates grow with loops, beside what the theory says.

use super::{Column, Sheet, fixed, significant};
use crate::render::figure::series::{RULES, curves, means};
use crate::render::statistics::log_slope;
use crate::render::tidy::Tables;

pub fn slopes(tables: &Tables) -> Sheet {
    let table = tables.get("init-diagnostics");
    let mut sheet = Sheet::new(
        "diagnostics",
        "Log-log slopes over loop count N (looped) or number of independent blocks k (deep): the norm R at the end of the stack, and the \
         RMS change of the output by a step. Predicted: 1 − α for loops and 1/2 − α for independent blocks, where ε = N^−α.",
        vec![
            Column::left("quantity"),
            Column::left("stack"),
            Column::left("rule"),
            Column::right("step"),
            Column::right("slope"),
            Column::right("predicted"),
            Column::right("at N = 1"),
            Column::right("at the largest N"),
            Column::right("N"),
            Column::right("seeds"),
        ],
    );
    sheet.wide = true;
    for (metric, what, stacks) in [("R", "R", &["looped", "deep"][..]), ("update", "update", &["looped"][..])] {
        for stack in stacks {
            sheet.line();
            for (at, (rule, ..)) in RULES.into_iter().enumerate() {
                let found = curves(table, metric, stack, rule);
                let ends: Vec<_> = found.iter().next().into_iter().chain(found.iter().next_back()).collect();
                for (which, (step, curve)) in ends.iter().enumerate() {
                    if which == 1 && ends[0].0 == ends[1].0 {
                        continue;
                    }
                    let points = means(curve);
                    let predicted = if *stack == "looped" { 1.0 } else { 0.5 } - [0.0, 0.5, 1.0][at];
                    let (first, last) = (points.first().copied(), points.last().copied());
                    sheet.push(vec![
                        what.into(),
                        (*stack).into(),
                        rule.into(),
                        step.to_string().into(),
                        log_slope(&points).map_or("—".to_string(), |slope| fixed(slope, 3)).into(),
                        fixed(predicted, 1).into(),
                        first.filter(|(n, _)| *n == 1.0).map_or("—".to_string(), |(_, y)| significant(y, 3)).into(),
                        last.map_or("—".to_string(), |(_, y)| significant(y, 3)).into(),
                        last.map_or("—".to_string(), |(n, _)| n.to_string()).into(),
                        curve.values().map(Vec::len).max().unwrap_or(0).to_string().into(),
                    ]);
                }
            }
        }
    }
    sheet
}

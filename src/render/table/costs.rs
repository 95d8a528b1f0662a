//! Table of costs: how many runs of which size, their tokens and floating-point operations.

use std::collections::BTreeMap;

use super::{Column, Sheet, significant};
use crate::render::tidy::{Row, Tables};

pub fn costs(tables: &Tables) -> Sheet {
    let mut sheet = Sheet::new(
        "costs",
        "What the training runs of this profile cost: parameters (tied), tokens and training FLOPs of one run, and of all runs of the row.",
        vec![
            Column::left("sweep"),
            Column::left("rule"),
            Column::right("L"),
            Column::right("N"),
            Column::right("runs"),
            Column::right("parameters"),
            Column::right("tokens of one"),
            Column::right("FLOPs of one"),
            Column::right("FLOPs of all"),
        ],
    );
    sheet.wide = true;
    let (mut all_runs, mut all_tokens, mut all_flops) = (0usize, 0.0, 0.0);
    for name in ["lr-transfer", "depth-transfer", "ablations"] {
        let table = tables.get(name);
        let mut models: BTreeMap<(String, i64, i64), BTreeMap<&str, Vec<f64>>> = BTreeMap::new();
        let key = |row: &Row| Some((row.rule().to_string(), row.l?, row.n?));
        for row in &table.rows {
            let metric = ["parameters", "tokens", "train_flops", "diverged"].into_iter().find(|metric| row.is(metric));
            if let (Some(metric), Some(key)) = (metric, key(row)) {
                models.entry(key).or_default().entry(metric).or_default().push(row.value);
            }
        }
        sheet.line();
        for ((rule, depth, n), found) in models {
            let largest =
                |metric: &str| found.get(metric).and_then(|all| all.iter().copied().reduce(f64::max)).unwrap_or(f64::NAN);
            let sum =
                |metric: &str| found.get(metric).map_or(0.0, |all| all.iter().filter(|value| value.is_finite()).sum::<f64>());
            let runs = found.values().map(Vec::len).max().unwrap_or(0);
            all_runs += runs;
            all_tokens += sum("tokens");
            all_flops += sum("train_flops");
            sheet.push(vec![
                name.into(),
                rule.into(),
                depth.to_string().into(),
                n.to_string().into(),
                runs.to_string().into(),
                significant(largest("parameters"), 4).into(),
                significant(largest("tokens"), 4).into(),
                significant(largest("train_flops"), 3).into(),
                significant(sum("train_flops"), 3).into(),
            ]);
        }
    }
    if all_runs > 0 {
        sheet.line();
        sheet.push(vec![
            "together".into(),
            "".into(),
            "".into(),
            "".into(),
            all_runs.to_string().into(),
            "".into(),
            format!("{} in all", significant(all_tokens, 4)).into(),
            "".into(),
            significant(all_flops, 3).into(),
        ]);
    }
    sheet
}

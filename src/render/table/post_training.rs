//! Table of trained models: how alike loop steps still are, and where the norm of the stream ends.

use std::collections::BTreeMap;

use super::{Column, Sheet, fixed};
use crate::render::figure::cosine::{Pairs, range_of};
use crate::render::figure::trained_cosine::linear;
use crate::render::statistics::mean;
use crate::render::tidy::{Row, Tables};

pub fn trained(tables: &Tables) -> Sheet {
    let table = tables.get("post-training");
    let mut sheet = Sheet::new(
        "post-training",
        "Trained models under linear scaling on held-out text: mean cosine of all pairs of loop-step increments, of pairs with the last \
         step and of the others, the range, the mean as initialised, and the L2 norm of the stream after the last loop; means over seeds.",
        vec![
            Column::right("L"),
            Column::right("N"),
            Column::right("mean cosine"),
            Column::right("with the last"),
            Column::right("others"),
            Column::left("range"),
            Column::right("as initialised"),
            Column::right("final norm"),
            Column::right("seeds"),
        ],
    );
    sheet.wide = true;
    let mut models: Vec<(i64, i64)> = table.rows.iter().filter(linear).filter_map(|row| Some((row.l?, row.n?))).collect();
    models.sort_unstable();
    models.dedup();
    let mut depth_before = None;
    for (depth, n) in models {
        let here = |row: &&Row| linear(row) && row.l == Some(depth) && row.n == Some(n);
        let last = table.rows.iter().filter(here).filter_map(|row| row.step).max();
        let cosines = |step: Option<i64>| {
            let mut values: BTreeMap<(i64, i64), Vec<f64>> = BTreeMap::new();
            for row in table.of("cosine").filter(here).filter(|row| row.step == step) {
                if let (Some(i), Some(j)) = (row.i, row.j) {
                    values.entry((i.min(j), i.max(j))).or_default().push(row.value);
                }
            }
            let averaged: Pairs = values.into_iter().filter_map(|(pair, values)| Some((pair, mean(&values)?.mean))).collect();
            averaged
        };
        let found = cosines(last);
        let average = |pairs: &Pairs, keep: &dyn Fn(i64) -> bool| {
            let values: Vec<f64> = pairs.iter().filter(|((_, j), _)| keep(*j)).map(|(_, value)| *value).collect();
            mean(&values).map_or("—".to_string(), |found| fixed(found.mean, 3))
        };
        let norms: Vec<f64> =
            table.of("norm").filter(here).filter(|row| row.step == last && row.visit == Some(n)).map(|row| row.value).collect();
        let (low, high) = range_of(&found);
        if depth_before.is_some_and(|before| before != depth) {
            sheet.line();
        }
        depth_before = Some(depth);
        let range = if found.is_empty() { "—".to_string() } else { format!("{} to {}", fixed(low, 3), fixed(high, 3)) };
        sheet.push(vec![
            depth.to_string().into(),
            n.to_string().into(),
            average(&found, &|_| true).into(),
            average(&found, &|j| j == n).into(),
            average(&found, &|j| j != n).into(),
            range.into(),
            average(&cosines(Some(0).filter(|_| last != Some(0))), &|_| true).into(),
            mean(&norms).map_or("—".to_string(), |found| fixed(found.mean, 2)).into(),
            norms.len().to_string().into(),
        ]);
    }
    sheet
}

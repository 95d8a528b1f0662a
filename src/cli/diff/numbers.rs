//! The numbers of two results: tidy tables compared row by row, a row being known by its metric and dimensions.

use std::collections::{BTreeMap, BTreeSet};

use super::sides::Side;
use crate::cli::CliError;
use crate::render::report::compare::{Largest, MetricRow};

/// Which row it is: metric, unit, and the dimensions as `name=value`.
type RowName = (String, String, String);
type Rows = BTreeMap<RowName, Vec<f64>>;

pub fn compare(left: &Side, right: &Side) -> Result<Vec<MetricRow>, CliError> {
    let names =
        |side: &Side| -> BTreeSet<String> { side.below("tidy").into_keys().filter(|name| name.ends_with(".csv")).collect() };
    let mut all = Vec::new();
    for file in names(left).union(&names(right)) {
        let (old, new) = (read(left, file)?, read(right, file)?);
        let table = file.rsplit('/').next().unwrap_or(file).trim_end_matches(".csv");
        let metrics: BTreeSet<(String, String)> =
            old.keys().chain(new.keys()).map(|(metric, unit, _)| (metric.clone(), unit.clone())).collect();
        for (metric, unit) in metrics {
            all.push(row(table, &metric, &unit, &old, &new));
        }
    }
    Ok(all)
}

fn row(table: &str, metric: &str, unit: &str, old: &Rows, new: &Rows) -> MetricRow {
    let of = |rows: &Rows| -> Rows {
        let chosen = rows.iter().filter(|((name, of, _), _)| name == metric && of == unit);
        chosen.map(|(name, values)| (name.clone(), values.clone())).collect()
    };
    let (old, new) = (of(old), of(new));
    let mut out = MetricRow { table: table.into(), metric: metric.into(), unit: unit.into(), ..MetricRow::default() };
    let mut worst = 0.0;
    for (name, values) in &old {
        let Some(others) = new.get(name) else {
            out.only_left += values.len();
            continue;
        };
        out.only_left += values.len().saturating_sub(others.len());
        out.only_right += others.len().saturating_sub(values.len());
        for (left, right) in values.iter().zip(others) {
            out.both += 1;
            let change = change(*left, *right);
            if change > 0.0 {
                out.differing += 1;
            }
            if change > worst {
                worst = change;
                out.largest = Some(Largest { at: name.2.clone(), left: *left, right: *right });
            }
        }
    }
    out.only_right += new.iter().filter(|(name, _)| !old.contains_key(*name)).map(|(_, values)| values.len()).sum::<usize>();
    out
}

/// How far apart, relative to the larger; a number beside none is as far apart as can be.
fn change(left: f64, right: f64) -> f64 {
    if left == right || (left.is_nan() && right.is_nan()) {
        return 0.0;
    }
    if !left.is_finite() || !right.is_finite() {
        return f64::INFINITY;
    }
    (left - right).abs() / left.abs().max(right.abs())
}

fn read(side: &Side, file: &str) -> Result<Rows, CliError> {
    let Some(path) = side.files.get(&format!("tidy/{file}")) else { return Ok(Rows::new()) };
    let bytes = std::fs::read(path)
        .map_err(|source| CliError::Io { what: format!("table `{file}` of `{}` cannot be read", side.label), source })?;
    let text = String::from_utf8_lossy(&bytes);
    let mut lines = records(&text).into_iter();
    let header = lines.next().unwrap_or_default();
    let column = |name: &str| {
        header
            .iter()
            .position(|have| have == name)
            .ok_or_else(|| CliError::Wrong(format!("table `{file}` of `{}` is not tidy: it has no column `{name}`", side.label)))
    };
    let (metric, unit, value) = (column("metric")?, column("unit")?, column("value")?);
    let mut rows = Rows::new();
    for record in lines {
        let field = |at: usize| record.get(at).cloned().unwrap_or_default();
        // The node that measured it names the same dimensions once more, in the words of its pipeline.
        let dims = header.iter().enumerate().filter(|(at, name)| ![metric, unit, value].contains(at) && *name != "node");
        let dims: Vec<String> =
            dims.filter(|(at, _)| !field(*at).is_empty()).map(|(at, name)| format!("{name}={}", field(at))).collect();
        let number = field(value).parse().unwrap_or(f64::NAN);
        rows.entry((field(metric), field(unit), dims.join(" "))).or_default().push(number);
    }
    Ok(rows)
}

/// Comma-separated values; a field in quotes may hold commas, line ends and doubled quotes.
fn records(text: &str) -> Vec<Vec<String>> {
    let mut all = Vec::new();
    let mut record = Vec::new();
    let mut field = String::new();
    let mut quoted = false;
    let mut letters = text.chars().peekable();
    while let Some(letter) = letters.next() {
        match letter {
            '"' if quoted && letters.peek() == Some(&'"') => {
                letters.next();
                field.push('"');
            }
            '"' => quoted = !quoted,
            ',' if !quoted => record.push(std::mem::take(&mut field)),
            '\r' if !quoted => {}
            '\n' if !quoted => {
                record.push(std::mem::take(&mut field));
                all.push(std::mem::take(&mut record));
            }
            letter => field.push(letter),
        }
    }
    if !field.is_empty() || !record.is_empty() {
        record.push(field);
        all.push(record);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotes_hold_commas_and_lines() {
        assert_eq!(records("a,\"b,\"\"c\"\"\n\",d\r\n1,,\n"), [vec!["a", "b,\"c\"\n", "d"], vec!["1", "", ""]]);
        assert_eq!(records("a"), [["a"]]);
    }

    #[test]
    fn numbers_that_are_none_are_equal_to_each_other_alone() {
        assert_eq!(change(f64::NAN, f64::NAN), 0.0);
        assert_eq!(change(1.0, f64::NAN), f64::INFINITY);
        assert_eq!(change(0.0, -0.0), 0.0);
        assert_eq!(change(1.0, 2.0), 0.5);
    }
}

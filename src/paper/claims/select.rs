//! From tables to the points of a measure: which rows are meant, gathered into one cell per point of the experiment with a value per seed.

use super::expression::{Compare, Condition, Selection, Test, Value};
use crate::paper::tidy::{DIMENSIONS, Dim, Row, Table};
use std::collections::BTreeMap;

/// Rules whose only argument is the number of loops or copies. At one loop they are one and the same model, and it is trained once.
fn argument_is_loops(rule: &str) -> bool {
    matches!(rule, "none" | "sqrt" | "linear") || rule.starts_with("power-")
}

/// The rows of some tables, by metric.
pub struct Rows<'t> {
    by_metric: BTreeMap<&'t str, BTreeMap<&'t str, Vec<&'t Row>>>,
}

impl<'t> Rows<'t> {
    pub fn of(tables: &'t [Table]) -> Rows<'t> {
        let mut by_metric: BTreeMap<&str, BTreeMap<&str, Vec<&Row>>> = BTreeMap::new();
        for table in tables {
            let metrics = by_metric.entry(table.name.as_str()).or_default();
            for row in &table.rows {
                metrics.entry(row.metric.as_str()).or_default().push(row);
            }
        }
        Rows { by_metric }
    }

    pub fn has(&self, table: &str) -> bool {
        self.by_metric.contains_key(table)
    }

    /// All rows of a metric in some tables.
    pub fn all(&self, tables: &[String], metric: &str) -> Vec<&'t Row> {
        self.metric(tables, metric).into_iter().map(|(_, row)| row).collect()
    }

    /// All rows of a metric in any table.
    pub fn every(&self, metric: &str) -> impl Iterator<Item = &'t Row> {
        self.by_metric.values().filter_map(move |metrics| metrics.get(metric)).flatten().copied()
    }

    fn metric(&self, tables: &[String], metric: &str) -> Vec<(&'t str, &'t Row)> {
        let mut found = Vec::new();
        for table in tables {
            if let Some((table, metrics)) = self.by_metric.get_key_value(table.as_str()) {
                found.extend(metrics.get(metric).into_iter().flatten().map(|row| (*table, *row)));
            }
        }
        found
    }

    /// The rows that a selection means, outer conditions first. A value for a column replaces what was said of it further out; a
    /// comparison narrows that down.
    /// An error text says which condition leaves nothing.
    pub fn select(
        &self,
        tables: &[String],
        outer: &[Vec<Condition>],
        selection: &Selection,
    ) -> Result<Vec<(&'t str, &'t Row)>, String> {
        let mut conditions: Vec<&Condition> = Vec::new();
        for level in outer.iter().chain([&selection.conditions]) {
            conditions.retain(|have| !level.iter().any(|new| new.column == have.column && new.replaces()));
            conditions.extend(level);
        }
        let absent: Vec<String> = tables.iter().filter(|table| !self.has(table)).map(|table| format!("`{table}`")).collect();
        let all = self.metric(tables, &selection.metric);
        if all.is_empty() {
            return Err(match absent.as_slice() {
                [] => format!("there is no `{}` in {}", selection.metric, listed(tables)),
                absent => format!("table {} is not there; its stage was skipped or has not run", absent.join(", ")),
            });
        }
        let (relative, plain): (Vec<&Condition>, Vec<&Condition>) =
            conditions.into_iter().partition(|condition| is_relative(condition));
        let mut rows: Vec<(&str, &Row)> = all.iter().copied().filter(|(_, row)| plain.iter().all(|c| matches(c, row))).collect();
        let shared = |row: &Row| {
            let failing = |condition: &&&Condition| !matches(condition, row);
            row.int("N") == Some(1)
                && row.text("rule").is_some_and(argument_is_loops)
                && plain.iter().filter(failing).all(|condition| match (condition.column.as_str(), &condition.test) {
                    ("rule", Test::Is(Compare::Equal, Value::Text(rule))) => argument_is_loops(rule),
                    ("stack", Test::Is(Compare::Equal, _)) => true,
                    _ => false,
                })
        };
        if !rows.iter().any(|(_, row)| row.int("N") == Some(1)) {
            let (mut own, mut others) = (Vec::new(), Vec::new());
            for row in all.iter().copied().filter(|(_, row)| shared(row)) {
                let of_this_stack = plain.iter().filter(|condition| condition.column == "stack").all(|c| matches(c, row.1));
                if of_this_stack { own.push(row) } else { others.push(row) }
            }
            // Runs of the other kind of stack stand in only where this one has none.
            rows.extend(if own.is_empty() { others } else { own });
        }
        for condition in &relative {
            rows = extreme(condition, rows);
        }
        if rows.is_empty() { Err(self.blame(&all, &plain, &selection.metric, tables)) } else { Ok(rows) }
    }

    /// Which condition leaves nothing, and what there is instead.
    fn blame(&self, all: &[(&str, &Row)], conditions: &[&Condition], metric: &str, tables: &[String]) -> String {
        let mut left: Vec<&Row> = all.iter().map(|(_, row)| *row).collect();
        for condition in conditions {
            let kept: Vec<&Row> = left.iter().copied().filter(|row| matches(condition, row)).collect();
            if kept.is_empty() {
                let column = condition.column.as_str();
                let there = values_of(column, &left);
                let there = if there.is_empty() {
                    format!("no row has a `{column}`")
                } else {
                    format!("{column} is {}", there.join(", "))
                };
                return format!("there is no `{metric}` with {} in {}: {there}", shown(condition), listed(tables));
            }
            left = kept;
        }
        format!("there is no `{metric}` of that kind in {}", listed(tables))
    }
}

fn listed(tables: &[String]) -> String {
    let names: Vec<String> = tables.iter().map(|table| format!("`{table}`")).collect();
    names.join(", ")
}

/// The values of a column, in order, the first few of them.
fn values_of(column: &str, rows: &[&Row]) -> Vec<String> {
    const MOST: usize = 8;
    let mut values: Vec<&Dim> = Vec::new();
    for dim in rows.iter().filter_map(|row| row.dims.get(column)) {
        if !values.contains(&dim) {
            values.push(dim);
        }
        if values.len() > 64 {
            break;
        }
    }
    values.sort_by(|a, b| order(a).total_cmp(&order(b)).then_with(|| a.to_string().cmp(&b.to_string())));
    let more = values.len().saturating_sub(MOST);
    let mut texts: Vec<String> = values.iter().take(MOST).map(|dim| dim.to_string()).collect();
    if more > 0 {
        texts.push(format!("and {more} more"));
    }
    texts
}

fn order(dim: &Dim) -> f64 {
    match dim {
        Dim::Text(_) => f64::NEG_INFINITY,
        Dim::Int(value) => *value as f64,
        Dim::Real(value) => *value,
    }
}

/// A condition as people write it.
pub fn shown(condition: &Condition) -> String {
    let value = |value: &Value| match value {
        Value::Number(number) => format!("{number}"),
        Value::Text(text) | Value::Column(text) => text.clone(),
        Value::Smallest => "min".into(),
        Value::Largest => "max".into(),
    };
    let column = &condition.column;
    match &condition.test {
        Test::Among(values) => format!("{column} of {}", values.iter().map(value).collect::<Vec<_>>().join(", ")),
        Test::Is(compare, wanted) => {
            let sign = match compare {
                Compare::Equal => "=",
                Compare::NotEqual => "!=",
                Compare::Below => "<",
                Compare::AtMost => "<=",
                Compare::Above => ">",
                Compare::AtLeast => ">=",
            };
            format!("{column}{sign}{}", value(wanted))
        }
    }
}

fn is_relative(condition: &Condition) -> bool {
    matches!(&condition.test, Test::Is(_, Value::Smallest | Value::Largest))
}

fn number(row: &Row, column: &str) -> Option<f64> {
    if column == "value" { Some(row.value) } else { row.number(column) }
}

pub fn matches(condition: &Condition, row: &Row) -> bool {
    let is = |compare: Compare, value: &Value| match value {
        Value::Text(text) => {
            let same = row.text(&condition.column) == Some(text.as_str());
            if compare == Compare::NotEqual { !same } else { same }
        }
        Value::Number(wanted) => number(row, &condition.column).is_some_and(|have| compare.holds(have, *wanted)),
        Value::Column(other) => {
            number(row, &condition.column).zip(number(row, other)).is_some_and(|(have, wanted)| compare.holds(have, wanted))
        }
        Value::Smallest | Value::Largest => true,
    };
    match &condition.test {
        Test::Is(compare, value) => is(*compare, value),
        Test::Among(values) => values.iter().any(|value| is(Compare::Equal, value)),
    }
}

fn extreme<'t>(condition: &Condition, rows: Vec<(&'t str, &'t Row)>) -> Vec<(&'t str, &'t Row)> {
    let Test::Is(compare, value) = &condition.test else { return rows };
    let column = condition.column.as_str();
    let all = rows.iter().filter_map(|(_, row)| number(row, column));
    let Some(bound) = (if *value == Value::Smallest { all.reduce(f64::min) } else { all.reduce(f64::max) }) else {
        return Vec::new();
    };
    rows.into_iter().filter(|(_, row)| number(row, column).is_some_and(|have| compare.holds(have, bound))).collect()
}

/// One point of the experiment: where it is, and what each seed gave.
#[derive(Clone, Debug)]
pub struct Cell {
    pub dims: BTreeMap<&'static str, Dim>,
    /// One value per seed, or a single one where there are no seeds.
    pub values: BTreeMap<Option<i64>, f64>,
}

impl Cell {
    pub fn number(&self, column: &str) -> Option<f64> {
        match self.dims.get(column)? {
            Dim::Text(_) => None,
            dim => Some(order(dim)),
        }
    }

    pub fn name(&self) -> String {
        let parts: Vec<String> = self.dims.iter().map(|(column, dim)| format!("{column}={dim}")).collect();
        parts.join(", ")
    }
}

/// Rows as cells. Two rows of the same point and seed, such as one run seen through two tables, count once by their mean.
pub fn cells(rows: &[(&str, &Row)]) -> Vec<Cell> {
    type Sums = BTreeMap<Option<i64>, (f64, f64)>;
    type Place = Vec<Option<Part>>;
    let mut found: BTreeMap<Place, (BTreeMap<&'static str, Dim>, Sums)> = BTreeMap::new();
    for (_, row) in rows {
        let dimensions = DIMENSIONS.iter().filter(|dimension| !matches!(dimension.name, "node" | "seed"));
        let key: Vec<Option<Part>> = dimensions.clone().map(|dimension| row.dims.get(dimension.name).map(Part::of)).collect();
        let (_, sums) = found.entry(key).or_insert_with(|| {
            let dims = dimensions.filter_map(|dimension| Some((dimension.name, row.dims.get(dimension.name)?.clone())));
            (dims.collect(), Sums::new())
        });
        let (sum, count) = sums.entry(row.int("seed")).or_insert((0.0, 0.0));
        *sum += row.value;
        *count += 1.0;
    }
    found
        .into_values()
        .map(|(dims, sums)| Cell { dims, values: sums.into_iter().map(|(seed, (sum, count))| (seed, sum / count)).collect() })
        .collect()
}

/// A coordinate that can be ordered.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Number(u64),
    Text(String),
}

impl Part {
    fn of(dim: &Dim) -> Part {
        match dim {
            Dim::Text(text) => Part::Text(text.clone()),
            dim => {
                // The bits of a double sort like the number, once negative ones are turned around.
                let bits = order(dim).to_bits();
                Part::Number(if bits >> 63 == 1 { !bits } else { bits | 1 << 63 })
            }
        }
    }
}

/// The different values that some columns take together, in order.
pub fn groups(rows: &[(&str, &Row)], columns: &[String]) -> Vec<Vec<(String, Dim)>> {
    let mut found: BTreeMap<Vec<Option<Part>>, Vec<(String, Dim)>> = BTreeMap::new();
    for (_, row) in rows {
        let dims: Vec<(String, Dim)> = columns.iter().filter_map(|c| Some((c.clone(), row.dims.get(c)?.clone()))).collect();
        if dims.len() == columns.len() {
            found.entry(dims.iter().map(|(_, dim)| Some(Part::of(dim))).collect()).or_insert(dims);
        }
    }
    found.into_values().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn at_one_loop_runs_of_the_same_stack_come_first() {
        let row = |stack: &str, rule: &str, loops: u64, seed: u64| {
            Row::new("R", "1", 1.0).at("stack", stack).at("rule", rule).at("N", loops).at("seed", seed)
        };
        let looped = [row("looped", "none", 8, 3), row("looped", "linear", 1, 3)];
        let deep = [row("deep", "linear", 1, 0)];
        let is = |column: &str, value: &str| Condition {
            column: column.to_string(),
            test: Test::Is(Compare::Equal, Value::Text(value.to_string())),
        };
        let selection =
            Selection { metric: "R".to_string(), over: None, at: 0, conditions: vec![is("stack", "looped"), is("rule", "none")] };
        let seeds_at_one_loop = |rows: Vec<Row>| -> Vec<i64> {
            let tables = [Table { name: "t".to_string(), rows }];
            let rows = Rows::of(&tables);
            let found = rows.select(&["t".to_string()], &[], &selection).unwrap();
            found.iter().filter(|(_, row)| row.int("N") == Some(1)).filter_map(|(_, row)| row.int("seed")).collect()
        };
        assert_eq!(seeds_at_one_loop([looped.to_vec(), deep.to_vec()].concat()), [3]);
        assert_eq!(seeds_at_one_loop([looped[..1].to_vec(), deep.to_vec()].concat()), [0], "better than none");
    }
}

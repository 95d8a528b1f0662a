//! Tidy tables with a known truth: power laws with exact exponents, learning-rate curves whose lowest point is given.

use repro::render::tidy::{Row, Table, Tables};

pub const RATES: [f64; 6] = [5e-4, 1e-3, 2e-3, 4e-3, 8e-3, 1.6e-2];
pub const LOOPS: [i64; 4] = [1, 2, 4, 8];

fn row(metric: &str, value: f64) -> Row {
    Row { metric: metric.into(), unit: "1".into(), value, ..Row::default() }
}

fn at(mut row: Row, stack: &str, rule: &str, l: i64, n: i64, seed: i64) -> Row {
    (row.stack, row.rule) = (Some(stack.into()), Some(rule.into()));
    (row.d, row.l, row.n, row.seed) = (Some(64), Some(l), Some(n), Some(seed));
    row
}

/// Held-out losses with the lowest at `best(rule, n)`; the largest rate diverges at eight loops.
pub fn sweep(rules: &[&str], depth: i64, seeds: i64, best: impl Fn(&str, i64) -> f64) -> Table {
    let mut rows = Vec::new();
    for (rule, n) in rules.iter().flat_map(|rule| LOOPS.map(|n| (*rule, n))) {
        if n == 1 && rule != *rules.last().unwrap() {
            continue;
        }
        for (seed, lr) in (0..seeds).flat_map(|seed| RATES.map(|lr| (seed, lr))) {
            let off = (lr / best(rule, n)).log2();
            let diverged = n == 8 && lr > 1e-2;
            let loss = 3.0 - 0.02 * (n as f64).log2() + 0.05 * off * off + 0.003 * seed as f64;
            let mut add = |metric: &str, value: f64, step: Option<i64>| {
                let mut row = at(row(metric, value), "looped", rule, depth, n, seed);
                (row.lr, row.step) = (Some(lr), step);
                rows.push(row);
            };
            add("diverged", f64::from(u8::from(diverged)), None);
            add("eval_loss", if diverged { f64::NAN } else { loss }, None);
            add("tokens", 1e6, None);
            add("parameters", 12345.0, None);
            for step in (10..=100).step_by(10) {
                add("loss", loss + 3.0 / step as f64, Some(step));
            }
        }
    }
    Table { rows }
}

/// Norms and updates that follow the predicted power laws exactly, and cosines of `copies` increments.
pub fn diagnostics(seeds: i64, copies: i64) -> Table {
    let mut rows = Vec::new();
    for (stack, exponent) in [("looped", 1.0), ("deep", 0.5)] {
        for (rule, alpha) in [("none", 0.0), ("sqrt", 0.5), ("linear", 1.0)] {
            for (n, seed) in [1, 2, 4, 8, 16].into_iter().flat_map(|n| (0..seeds).map(move |seed| (n, seed))) {
                if n == 1 && (rule != "linear" || stack != "looped") {
                    continue;
                }
                for step in 0..=10 {
                    let mut add = |metric: &str, value: f64| {
                        rows.push(Row { step: Some(step), ..at(row(metric, value), stack, rule, 2, n, seed) });
                    };
                    add("R", 1.1 * (n as f64).powf(exponent - alpha) * (1.0 + 0.01 * step as f64));
                    if step > 0 {
                        add("update", 0.5 * (n as f64).powf(1.0 - alpha) / step as f64);
                    }
                }
            }
        }
        for (i, j) in (1..=copies).flat_map(|i| (i + 1..=copies).map(move |j| (i, j))) {
            let value = if stack == "looped" { 1.0 - 0.02 * (j - i) as f64 } else { 0.001 * (i - j) as f64 };
            let row = at(row("cosine", value), stack, "none", 2, copies, 0);
            rows.push(Row { step: Some(10), i: Some(i), j: Some(j), ..row });
        }
    }
    Table { rows }
}

pub fn post_training() -> Table {
    let mut rows = Vec::new();
    for (l, n, step) in [2, 4].into_iter().flat_map(|l| [2, 4, 8].into_iter().flat_map(move |n| [(l, n, 0), (l, n, 100)])) {
        let rule = if l == 2 { "linear" } else { "factorised" };
        for visit in 0..=n {
            let value = 1.0 + 9.0 * visit as f64 / n as f64;
            rows.push(Row { step: Some(step), visit: Some(visit), ..at(row("norm", value), "looped", rule, l, n, 0) });
        }
        for (i, j) in (1..=n).flat_map(|i| (i + 1..=n).map(move |j| (i, j))) {
            let value = if j == n { -0.1 } else { 0.45 };
            rows.push(Row { step: Some(step), i: Some(i), j: Some(j), ..at(row("cosine", value), "looped", rule, l, n, 0) });
        }
    }
    Table { rows }
}

pub fn theory() -> Table {
    let mut rows = Vec::new();
    for (rule, alpha) in [("none", 0.0), ("sqrt", 0.5), ("linear", 1.0)] {
        for (n, seed) in [1, 2, 4, 8].into_iter().flat_map(|n| [(n, 0), (n, 1)]) {
            let row = at(row("R", (n as f64).powf(1.0 - alpha)), "looped", rule, 1, n, seed);
            rows.push(Row { check: Some("T3".into()), model: Some("prenorm".into()), ..row });
        }
    }
    Table { rows }
}

/// The optima of the synthetic sweeps: fixed under linear scaling, moving under sqrt.
pub fn best(rule: &str, n: i64) -> f64 {
    if rule == "sqrt" { 4e-3 / (n as f64).sqrt().log2().exp2() } else { 4e-3 }
}

/// Every table of a profile.
pub fn whole() -> Tables {
    let mut depth = sweep(&["factorised"], 4, 2, best);
    depth.rows.extend(sweep(&["factorised"], 8, 2, best).rows);
    let tables = [
        ("lr-transfer", sweep(&["sqrt", "linear"], 2, 3, best)),
        ("depth-transfer", depth),
        ("init-diagnostics", diagnostics(2, 16)),
        ("post-training", post_training()),
        ("theory", theory()),
    ];
    Tables(tables.into_iter().map(|(name, table)| (name.to_string(), table)).collect())
}

/// Writes a table as the `tidy` kind does.
pub fn write(table: &Table, path: &std::path::Path) {
    use repro::paper::tidy::{Row as Full, Table as Whole};
    let full = |row: &Row| {
        let mut full = Full::new(&row.metric, "1", row.value);
        for (name, text) in [("stack", &row.stack), ("rule", &row.rule), ("check", &row.check), ("model", &row.model)] {
            if let Some(text) = text {
                full = full.at(name, text.to_string());
            }
        }
        let wholes = [("d", row.d), ("L", row.l), ("N", row.n), ("seed", row.seed), ("step", row.step)];
        for (name, value) in wholes.into_iter().chain([("visit", row.visit), ("i", row.i), ("j", row.j)]) {
            if let Some(value) = value {
                full = full.at(name, value);
            }
        }
        if let Some(lr) = row.lr { full.at("lr", lr) } else { full }
    };
    let whole = Whole { name: String::new(), rows: table.rows.iter().map(full).collect() };
    whole.write_parquet(path).unwrap();
}

//! The words a claim may use: tables with their metrics, columns. One table of what the pipeline writes; a claims file may add tables
//! of its own, and whatever a table at hand holds is known too.

use crate::paper::tidy::{DIMENSIONS, Table};
use std::collections::BTreeMap;

/// What each table of the pipeline holds. A table that a profile leaves out is known all the same.
const TABLES: &[(&str, &[&str])] = &[
    ("theory", THEORY),
    (
        "init-diagnostics",
        &["R", "update", "loss", "cosine", "cosine_flat", "diverged", "tokens", "parameters", "branch_scale", "train_flops"],
    ),
    ("lr-transfer", TRAINING),
    ("depth-transfer", TRAINING),
    ("ablations", TRAINING),
    ("post-training", &["cosine", "cosine_flat", "norm", "R"]),
    (super::PLAN, super::plan::METRICS),
];

const TRAINING: &[&str] = &[
    "eval_loss",
    "diverged",
    "loss",
    "tokens",
    "parameters",
    "branch_scale",
    "train_flops",
    "R",
    "update",
    "cosine",
    "cosine_flat",
];

/// The metrics of docs/theory.md.
const THEORY: &[&str] = &[
    "cone_mass",
    "cone_norm",
    "cone_rms",
    "lower_margin",
    "upper_margin",
    "min_gain",
    "max_gain",
    "operator_norm",
    "cone_width",
    "gain_bound",
    "gain_held",
    "gain_probability",
    "trajectory_gain",
    "branch_energy",
    "R",
    "log_R",
    "growth_per_loop",
    "overlap",
    "overlap_error",
    "residual_overlap",
    "update_per_eta",
    "update_norm",
    "bound_ratio",
    "zeta",
    "theta",
    "sharpness",
    "sharpness_low",
    "sharpness_high",
    "loss",
    "energy",
    "energy_predicted",
    "energy_ratio",
    "branch_ratio",
    "branch_bound",
    "replacement",
    "drift",
    "replacement_constant",
    "drift_constant",
    "update_scale",
    "coherence",
    "jacobian_norm",
];

/// Names, for checking and for suggestions.
#[derive(Clone, Debug, Default)]
pub struct Vocabulary {
    tables: BTreeMap<String, Vec<String>>,
}

impl Vocabulary {
    /// What the pipeline writes, and what these tables hold.
    pub fn of(tables: &[Table]) -> Vocabulary {
        let mut words = Vocabulary::default();
        for (table, metrics) in TABLES {
            words.add(table, metrics.iter().map(|metric| metric.to_string()));
        }
        for table in tables {
            words.add(&table.name, table.metrics().into_iter().map(str::to_string));
        }
        words
    }

    pub fn add(&mut self, table: &str, metrics: impl Iterator<Item = String>) {
        let have = self.tables.entry(table.to_string()).or_default();
        for metric in metrics {
            if !have.contains(&metric) {
                have.push(metric);
            }
        }
    }

    /// An error text if there is no such table.
    pub fn check_table(&self, table: &str) -> Result<(), String> {
        if self.tables.contains_key(table) {
            return Ok(());
        }
        let names: Vec<String> = self.tables.keys().cloned().collect();
        Err(format!("unknown table `{table}`{}", known(&names, table)))
    }

    /// An error text if none of these tables has such a metric.
    pub fn check_metric(&self, tables: &[String], metric: &str) -> Result<(), String> {
        let names: Vec<String> = tables.iter().filter_map(|table| self.tables.get(table)).flatten().cloned().collect();
        if names.iter().any(|name| name == metric) {
            return Ok(());
        }
        let elsewhere: Vec<&str> = self
            .tables
            .iter()
            .filter(|(_, have)| have.iter().any(|name| name == metric))
            .map(|(table, _)| table.as_str())
            .collect();
        let tables: Vec<String> = tables.iter().map(|table| format!("`{table}`")).collect();
        let hint = match elsewhere.first() {
            Some(table) => format!("; table `{table}` has it"),
            None => known(&names, metric),
        };
        Err(format!("unknown metric `{metric}` of table {}{hint}", tables.join(", ")))
    }
}

/// An error text if there is no such column.
pub fn check_column(column: &str) -> Result<(), String> {
    if DIMENSIONS.iter().any(|dimension| dimension.name == column) || column == "value" {
        return Ok(());
    }
    let names: Vec<String> = DIMENSIONS.iter().map(|dimension| dimension.name.to_string()).collect();
    Err(format!("unknown column `{column}`{}", known(&names, column)))
}

/// The end of a message about an unknown name: the nearest one there is, or else all of them.
pub fn known(names: &[String], wrong: &str) -> String {
    const MOST: usize = 24;
    let low = wrong.to_lowercase();
    let near = names
        .iter()
        .map(|name| (strsim::damerau_levenshtein(&name.to_lowercase(), &low), name))
        .filter(|(distance, name)| *distance <= 1 + name.chars().count().max(wrong.chars().count()) / 4)
        .min();
    match near {
        Some((_, name)) => format!("; did you mean `{name}`?"),
        None if names.is_empty() => "; there are none".to_string(),
        None => {
            let listed: Vec<String> = names.iter().take(MOST).map(|name| format!("`{name}`")).collect();
            let more = if names.len() > MOST { format!(" and {} more", names.len() - MOST) } else { String::new() };
            format!("; there is {}{more}", listed.join(", "))
        }
    }
}

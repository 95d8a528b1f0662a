//! Rows of measurements, in the columns of the tidy tables: one number per line of rows.jsonl.

use super::Check;
use super::stack::Model;
use crate::paper::scaling::Rule;
use serde::Serialize;

/// One measurement and what it was measured at. Absent dimensions do not appear.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Row {
    pub metric: &'static str,
    pub unit: &'static str,
    pub value: f64,
    pub check: Check,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stack: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Model>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rule: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub variant: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub d: Option<usize>,
    #[serde(rename = "L", skip_serializing_if = "Option::is_none")]
    pub depth: Option<usize>,
    #[serde(rename = "N", skip_serializing_if = "Option::is_none")]
    pub loops: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub alpha: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lambda: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub beta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub eta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seed: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub step: Option<u64>,
}

impl Row {
    /// The dimensions of a check; metric and value come with [`Row::of`].
    pub fn at(check: Check, d: usize) -> Row {
        Row {
            metric: "",
            unit: "1",
            value: f64::NAN,
            check,
            stack: None,
            model: None,
            rule: None,
            variant: None,
            d: Some(d),
            depth: None,
            loops: None,
            alpha: None,
            lambda: None,
            beta: None,
            eta: None,
            seed: None,
            step: None,
        }
    }

    /// The same place, one measurement. All of them are ratios, so their unit is 1.
    pub fn of(&self, metric: &'static str, value: f64) -> Row {
        Row { metric, value, ..self.clone() }
    }
}

/// The name of a rule in the tidy tables.
pub fn rule_name(rule: Rule) -> &'static str {
    match rule {
        Rule::None => "none",
        Rule::Sqrt => "sqrt",
        Rule::Linear => "linear",
        Rule::Factorised { .. } => "factorised",
        Rule::Power { .. } => "power",
    }
}

/// The rules that a single shared layer is measured with.
pub const LOOP_RULES: [Rule; 3] = [Rule::None, Rule::Sqrt, Rule::Linear];

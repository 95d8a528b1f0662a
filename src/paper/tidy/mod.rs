//! Tidy tables: one number per row, with what it is, its unit, and the point of the experiment it belongs to. Everything downstream of
//! a measurement (claims, figures, tables) reads these and nothing else.

mod file;
mod runs;

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub use runs::{of_model, of_run};

/// The file in which a measuring step leaves its rows, one JSON object per line.
pub const ROWS: &str = "rows.jsonl";

#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    #[error("cannot read `{path}`: {what}")]
    Read { path: PathBuf, what: String },
    #[error("cannot write `{path}`: {what}")]
    Write { path: PathBuf, what: String },
    #[error("`{path}`, line {line}: {what}")]
    BadRow { path: PathBuf, line: usize, what: String },
    #[error("`{path}` is not a tidy table: {what}")]
    NotTidy { path: PathBuf, what: String },
}

/// What the values of a dimension are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DimKind {
    Text,
    Int,
    Real,
}

/// A dimension: its column, its kind, what it means.
pub struct Dimension {
    pub name: &'static str,
    pub kind: DimKind,
    pub about: &'static str,
}

const fn dimension(name: &'static str, kind: DimKind, about: &'static str) -> Dimension {
    Dimension { name, kind, about }
}

/// Every dimension there is, in the order of the columns.
pub const DIMENSIONS: &[Dimension] = &[
    dimension("node", DimKind::Text, "the node that measured it"),
    dimension("check", DimKind::Text, "the statement of the theory, T1 to T10"),
    dimension("stack", DimKind::Text, "`looped`, or `deep` for independent copies"),
    dimension("model", DimKind::Text, "`raw` or `prenorm`, in the theory's model"),
    dimension("rule", DimKind::Text, "how residual branches are scaled"),
    dimension("variant", DimKind::Text, "settings that differ from the paper's defaults"),
    dimension("d", DimKind::Int, "width"),
    dimension("L", DimKind::Int, "blocks in the stack"),
    dimension("N", DimKind::Int, "loops, or copies of a deep stack"),
    dimension("lr", DimKind::Real, "base learning rate"),
    dimension("alpha", DimKind::Real, "exponent of a rule"),
    dimension("lambda", DimKind::Real, "constant of the factorised rule"),
    dimension("beta", DimKind::Real, "branch scale of the theory's model"),
    dimension("eta", DimKind::Real, "size of an update of the theory's model"),
    dimension("seed", DimKind::Int, "seed"),
    dimension("step", DimKind::Int, "optimiser steps done; 0 is the model as initialised"),
    dimension("visit", DimKind::Int, "visits of the stack done; 0 is the embedding"),
    dimension("i", DimKind::Int, "first visit of a pair"),
    dimension("j", DimKind::Int, "second visit of a pair"),
];

/// A coordinate.
#[derive(Clone, Debug, PartialEq)]
pub enum Dim {
    Text(String),
    Int(i64),
    Real(f64),
}

impl From<&str> for Dim {
    fn from(text: &str) -> Dim {
        Dim::Text(text.to_string())
    }
}

impl From<String> for Dim {
    fn from(text: String) -> Dim {
        Dim::Text(text)
    }
}

macro_rules! from_integer {
    ($($ty:ty),*) => {$(
        impl From<$ty> for Dim {
            fn from(value: $ty) -> Dim {
                Dim::Int(value as i64)
            }
        }
    )*};
}

from_integer!(i64, u64, usize);

impl From<f64> for Dim {
    fn from(value: f64) -> Dim {
        Dim::Real(value)
    }
}

impl std::fmt::Display for Dim {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Dim::Text(text) => f.write_str(text),
            Dim::Int(value) => write!(f, "{value}"),
            Dim::Real(value) => write!(f, "{value:?}"),
        }
    }
}

/// One measured number.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    pub metric: String,
    pub unit: String,
    pub dims: BTreeMap<String, Dim>,
    /// NaN where there is no number, as for the loss of a run that diverged.
    pub value: f64,
}

impl Row {
    pub fn new(metric: &str, unit: &str, value: f64) -> Row {
        Row { metric: metric.to_string(), unit: unit.to_string(), dims: BTreeMap::new(), value }
    }

    /// This row at a coordinate.
    pub fn at(mut self, name: &str, dim: impl Into<Dim>) -> Row {
        debug_assert!(DIMENSIONS.iter().any(|d| d.name == name), "`{name}` is no dimension");
        self.dims.insert(name.to_string(), dim.into());
        self
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.dims.get(name) {
            Some(Dim::Text(text)) => Some(text),
            _ => None,
        }
    }

    pub fn int(&self, name: &str) -> Option<i64> {
        match self.dims.get(name) {
            Some(Dim::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// An integer or real coordinate as a number.
    pub fn number(&self, name: &str) -> Option<f64> {
        match self.dims.get(name)? {
            Dim::Int(value) => Some(*value as f64),
            Dim::Real(value) => Some(*value),
            Dim::Text(_) => None,
        }
    }

    fn to_json(&self) -> Value {
        let mut object = Map::new();
        object.insert("metric".into(), self.metric.clone().into());
        object.insert("unit".into(), self.unit.clone().into());
        for dimension in DIMENSIONS {
            if let Some(dim) = self.dims.get(dimension.name) {
                let value = match dim {
                    Dim::Text(text) => text.clone().into(),
                    Dim::Int(value) => (*value).into(),
                    Dim::Real(value) => (*value).into(),
                };
                object.insert(dimension.name.into(), value);
            }
        }
        object.insert("value".into(), self.value.into());
        Value::Object(object)
    }

    fn from_json(object: Map<String, Value>) -> Result<Row, String> {
        let mut row = Row::new("", "", f64::NAN);
        for (name, value) in object {
            match (name.as_str(), value) {
                ("metric", Value::String(text)) => row.metric = text,
                ("unit", Value::String(text)) => row.unit = text,
                ("value", Value::Null) => row.value = f64::NAN,
                ("value", Value::Number(number)) => row.value = number.as_f64().unwrap_or(f64::NAN),
                (_, Value::Null) => {}
                (_, value) => {
                    let dimension = DIMENSIONS.iter().find(|dimension| dimension.name == name);
                    let kind = dimension.ok_or_else(|| format!("unknown column `{name}`"))?.kind;
                    let dim = match (kind, &value) {
                        (DimKind::Text, Value::String(text)) => Some(Dim::Text(text.clone())),
                        (DimKind::Int, Value::Number(number)) => number.as_i64().map(Dim::Int),
                        (DimKind::Real, Value::Number(number)) => number.as_f64().map(Dim::Real),
                        _ => None,
                    };
                    row.dims.insert(name.clone(), dim.ok_or_else(|| format!("`{name}` cannot be {value}"))?);
                }
            }
        }
        if row.metric.is_empty() {
            return Err("a row needs a `metric`".into());
        }
        Ok(row)
    }
}

/// Writes rows for a later `tidy` step.
pub fn write_rows(path: &Path, rows: &[Row]) -> Result<(), TidyError> {
    let mut text = String::new();
    for row in rows {
        text.push_str(&row.to_json().to_string());
        text.push('\n');
    }
    std::fs::write(path, text).map_err(|error| TidyError::Write { path: path.into(), what: error.to_string() })
}

/// Reads what [`write_rows`] wrote.
pub fn read_rows(path: &Path) -> Result<Vec<Row>, TidyError> {
    let text = std::fs::read_to_string(path).map_err(|error| TidyError::Read { path: path.into(), what: error.to_string() })?;
    let bad = |line: usize, what: String| TidyError::BadRow { path: path.into(), line: line + 1, what };
    let row = |(at, line): (usize, &str)| {
        let object = serde_json::from_str::<Map<String, Value>>(line).map_err(|error| bad(at, error.to_string()))?;
        Row::from_json(object).map_err(|what| bad(at, what))
    };
    text.lines().enumerate().map(row).collect()
}

/// All rows of one experiment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub name: String,
    pub rows: Vec<Row>,
}

impl Table {
    /// The dimensions that some row has, in the order of the columns.
    pub fn dimensions(&self) -> Vec<&'static Dimension> {
        DIMENSIONS.iter().filter(|dimension| self.rows.iter().any(|row| row.dims.contains_key(dimension.name))).collect()
    }

    pub fn metrics(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self.rows.iter().map(|row| row.metric.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        names
    }
}

//! Reads the tidy tables (one number per row, see docs/tidy.md) from Parquet. Columns it does not know are left alone; those that
//! are not there are null. Computes nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::{DataType, Float64Type, Int64Type};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;

#[derive(Debug, thiserror::Error)]
pub enum TidyError {
    #[error("`{}` cannot be opened: {source}", path.display())]
    Open { path: PathBuf, source: std::io::Error },
    #[error("`{}` is not a Parquet table: {source}", path.display())]
    Parquet { path: PathBuf, source: parquet::errors::ParquetError },
    #[error("`{}` cannot be read: {source}", path.display())]
    Arrow { path: PathBuf, source: arrow::error::ArrowError },
    #[error("`{}` is not a tidy table: it has no column `{column}`", path.display())]
    NoColumn { path: PathBuf, column: &'static str },
}

/// One number and what it is of. Names as in the paper: `l` is L, `n` is N.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub metric: Arc<str>,
    pub unit: Arc<str>,
    pub node: Option<Arc<str>>,
    pub check: Option<Arc<str>>,
    pub stack: Option<Arc<str>>,
    pub model: Option<Arc<str>>,
    pub rule: Option<Arc<str>>,
    pub variant: Option<Arc<str>>,
    pub d: Option<i64>,
    pub l: Option<i64>,
    pub n: Option<i64>,
    pub seed: Option<i64>,
    pub step: Option<i64>,
    pub visit: Option<i64>,
    pub i: Option<i64>,
    pub j: Option<i64>,
    pub lr: Option<f64>,
    pub alpha: Option<f64>,
    pub lambda: Option<f64>,
    pub beta: Option<f64>,
    pub eta: Option<f64>,
    pub value: f64,
}

#[derive(Clone, Debug, Default)]
pub struct Table {
    pub rows: Vec<Row>,
}

/// The tables a figure was given, by name. One that is not there is empty.
#[derive(Clone, Debug, Default)]
pub struct Tables(pub BTreeMap<String, Table>);

static NOTHING: Table = Table { rows: Vec::new() };

impl Tables {
    pub fn get(&self, name: &str) -> &Table {
        self.0.get(name).unwrap_or(&NOTHING)
    }

    /// Reads files named `<table>.parquet`.
    pub fn read<'p>(paths: impl IntoIterator<Item = &'p Path>) -> Result<Tables, TidyError> {
        let mut tables = BTreeMap::new();
        for path in paths {
            let name = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
            if let Entry::Vacant(place) = tables.entry(name) {
                place.insert(Table::read(path)?);
            }
        }
        Ok(Tables(tables))
    }
}

impl Row {
    pub fn is(&self, metric: &str) -> bool {
        &*self.metric == metric
    }
    pub fn rule(&self) -> &str {
        self.rule.as_deref().unwrap_or("")
    }
    pub fn stack(&self) -> &str {
        self.stack.as_deref().unwrap_or("")
    }
}

impl Table {
    pub fn read(path: &Path) -> Result<Table, TidyError> {
        let file = File::open(path).map_err(|source| TidyError::Open { path: path.into(), source })?;
        let parquet = |source| TidyError::Parquet { path: path.into(), source };
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).map_err(parquet)?.build().map_err(parquet)?;
        let mut rows = Vec::new();
        let mut words = Words::default();
        for batch in reader {
            let batch = batch.map_err(|source| TidyError::Arrow { path: path.into(), source })?;
            add_rows(&batch, path, &mut words, &mut rows)?;
        }
        Ok(Table { rows })
    }

    /// The rows of one metric.
    pub fn of<'t>(&'t self, metric: &'t str) -> impl Iterator<Item = &'t Row> {
        self.rows.iter().filter(move |row| row.is(metric))
    }

    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}

/// Each word once.
#[derive(Default)]
struct Words(BTreeMap<String, Arc<str>>);

impl Words {
    fn get(&mut self, word: &str) -> Arc<str> {
        if let Some(have) = self.0.get(word) {
            return Arc::clone(have);
        }
        let new: Arc<str> = word.into();
        self.0.insert(word.to_string(), Arc::clone(&new));
        new
    }
}

fn add_rows(batch: &RecordBatch, path: &Path, words: &mut Words, rows: &mut Vec<Row>) -> Result<(), TidyError> {
    let column = |name: &str, kind: DataType| match batch.column_by_name(name) {
        None => Ok(None),
        Some(array) => cast(array, &kind).map(Some).map_err(|source| TidyError::Arrow { path: path.into(), source }),
    };
    let start = rows.len();
    rows.resize(start + batch.num_rows(), Row::default());
    let new = &mut rows[start..];

    let value = column("value", DataType::Float64)?.ok_or(TidyError::NoColumn { path: path.into(), column: "value" })?;
    let value = value.as_primitive::<Float64Type>();
    for (at, row) in new.iter_mut().enumerate() {
        row.value = if value.is_null(at) { f64::NAN } else { value.value(at) };
    }
    let metric = column("metric", DataType::Utf8)?.ok_or(TidyError::NoColumn { path: path.into(), column: "metric" })?;
    let metric = metric.as_string::<i32>();
    for (at, row) in new.iter_mut().enumerate() {
        row.metric = words.get(metric.value(at));
    }
    type Text = fn(&mut Row) -> &mut Option<Arc<str>>;
    let texts: [(&str, Text); 6] = [
        ("node", |row| &mut row.node),
        ("check", |row| &mut row.check),
        ("stack", |row| &mut row.stack),
        ("model", |row| &mut row.model),
        ("rule", |row| &mut row.rule),
        ("variant", |row| &mut row.variant),
    ];
    if let Some(unit) = column("unit", DataType::Utf8)? {
        for (at, row) in new.iter_mut().enumerate() {
            row.unit = words.get(unit.as_string::<i32>().value(at));
        }
    }
    for (name, field) in texts {
        let Some(array) = column(name, DataType::Utf8)? else { continue };
        let array = array.as_string::<i32>();
        for (at, row) in new.iter_mut().enumerate().filter(|(at, _)| !array.is_null(*at)) {
            *field(row) = Some(words.get(array.value(at)));
        }
    }
    type Whole = fn(&mut Row) -> &mut Option<i64>;
    let wholes: [(&str, Whole); 8] = [
        ("d", |row| &mut row.d),
        ("L", |row| &mut row.l),
        ("N", |row| &mut row.n),
        ("seed", |row| &mut row.seed),
        ("step", |row| &mut row.step),
        ("visit", |row| &mut row.visit),
        ("i", |row| &mut row.i),
        ("j", |row| &mut row.j),
    ];
    for (name, field) in wholes {
        let Some(array) = column(name, DataType::Int64)? else { continue };
        let array = array.as_primitive::<Int64Type>();
        for (at, row) in new.iter_mut().enumerate().filter(|(at, _)| !array.is_null(*at)) {
            *field(row) = Some(array.value(at));
        }
    }
    type Real = fn(&mut Row) -> &mut Option<f64>;
    let reals: [(&str, Real); 5] = [
        ("lr", |row| &mut row.lr),
        ("alpha", |row| &mut row.alpha),
        ("lambda", |row| &mut row.lambda),
        ("beta", |row| &mut row.beta),
        ("eta", |row| &mut row.eta),
    ];
    for (name, field) in reals {
        let Some(array) = column(name, DataType::Float64)? else { continue };
        let array = array.as_primitive::<Float64Type>();
        for (at, row) in new.iter_mut().enumerate().filter(|(at, _)| !array.is_null(*at)) {
            *field(row) = Some(array.value(at));
        }
    }
    Ok(())
}

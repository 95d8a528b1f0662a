//! Tidy tables as Parquet and CSV. The same rows give the same bytes.

use super::{DIMENSIONS, Dim, DimKind, Row, Table, TidyError};
use arrow::array::{Array, ArrayRef, Float64Array, Int64Array, StringArray};
use arrow::datatypes::{DataType, Field, Schema};
use arrow::record_batch::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::{Compression, ZstdLevel};
use parquet::file::properties::WriterProperties;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::Arc;

impl Table {
    /// Reads a Parquet file that [`Table::write_parquet`] wrote; the table is named like the file.
    pub fn read(path: &Path) -> Result<Table, TidyError> {
        let read = |what: String| TidyError::Read { path: path.into(), what };
        let file = File::open(path).map_err(|error| read(error.to_string()))?;
        let reader = ParquetRecordBatchReaderBuilder::try_new(file).and_then(|builder| builder.build());
        let mut rows = Vec::new();
        for batch in reader.map_err(|error| read(error.to_string()))? {
            let batch = batch.map_err(|error| read(error.to_string()))?;
            rows_of_batch(&batch, &mut rows).map_err(|what| TidyError::NotTidy { path: path.into(), what })?;
        }
        let name = path.file_stem().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        Ok(Table { name, rows })
    }

    pub fn write_parquet(&self, path: &Path) -> Result<(), TidyError> {
        let write = |what: String| TidyError::Write { path: path.into(), what };
        let mut fields = vec![Field::new("metric", DataType::Utf8, false), Field::new("unit", DataType::Utf8, false)];
        let text = |column: Vec<Option<&str>>| Arc::new(StringArray::from(column)) as ArrayRef;
        let mut columns = vec![
            text(self.rows.iter().map(|row| Some(row.metric.as_str())).collect()),
            text(self.rows.iter().map(|row| Some(row.unit.as_str())).collect()),
        ];
        for dimension in self.dimensions() {
            let name = dimension.name;
            let (kind, column) = match dimension.kind {
                DimKind::Text => (DataType::Utf8, text(self.rows.iter().map(|row| row.text(name)).collect())),
                DimKind::Int => {
                    let column: Int64Array = self.rows.iter().map(|row| row.int(name)).collect();
                    (DataType::Int64, Arc::new(column) as ArrayRef)
                }
                DimKind::Real => {
                    let column: Float64Array = self.rows.iter().map(|row| row.number(name)).collect();
                    (DataType::Float64, Arc::new(column) as ArrayRef)
                }
            };
            fields.push(Field::new(name, kind, true));
            columns.push(column);
        }
        fields.push(Field::new("value", DataType::Float64, false));
        columns.push(Arc::new(self.rows.iter().map(|row| Some(row.value)).collect::<Float64Array>()));
        let schema = Arc::new(Schema::new(fields));
        let batch = RecordBatch::try_new(Arc::clone(&schema), columns).map_err(|error| write(error.to_string()))?;
        let level = ZstdLevel::try_new(3).map_err(|error| write(error.to_string()))?;
        let properties = WriterProperties::builder().set_compression(Compression::ZSTD(level)).build();
        let file = File::create(path).map_err(|error| write(error.to_string()))?;
        let mut writer = ArrowWriter::try_new(file, schema, Some(properties)).map_err(|error| write(error.to_string()))?;
        writer.write(&batch).and_then(|()| writer.close()).map_err(|error| write(error.to_string()))?;
        Ok(())
    }

    pub fn write_csv(&self, path: &Path) -> Result<(), TidyError> {
        let lines = || -> std::io::Result<()> {
            let mut out = BufWriter::new(File::create(path)?);
            let dimensions = self.dimensions();
            let names: Vec<&str> = dimensions.iter().map(|dimension| dimension.name).collect();
            writeln!(out, "{}", [&["metric", "unit"], &names[..], &["value"]].concat().join(","))?;
            for row in &self.rows {
                write!(out, "{},{}", quoted(&row.metric), quoted(&row.unit))?;
                for name in &names {
                    let dim = row.dims.get(*name).map(Dim::to_string).unwrap_or_default();
                    write!(out, ",{}", quoted(&dim))?;
                }
                let value = if row.value.is_nan() { String::new() } else { format!("{:?}", row.value) };
                writeln!(out, ",{value}")?;
            }
            out.flush()
        };
        lines().map_err(|error| TidyError::Write { path: path.into(), what: error.to_string() })
    }
}

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text.to_string() }
}

fn rows_of_batch(batch: &RecordBatch, rows: &mut Vec<Row>) -> Result<(), String> {
    let column = |name: &str| batch.column_by_name(name).ok_or_else(|| format!("column `{name}` is missing"));
    fn cast<'a, T: Array + 'static>(column: &'a ArrayRef, name: &str) -> Result<&'a T, String> {
        let found = column.data_type();
        column.as_any().downcast_ref::<T>().ok_or_else(|| format!("column `{name}` holds {found}"))
    }
    let metric = cast::<StringArray>(column("metric")?, "metric")?;
    let unit = cast::<StringArray>(column("unit")?, "unit")?;
    let value = cast::<Float64Array>(column("value")?, "value")?;
    let first = rows.len();
    rows.extend((0..batch.num_rows()).map(|at| Row::new(metric.value(at), unit.value(at), value.value(at))));
    for dimension in DIMENSIONS {
        let Some(column) = batch.column_by_name(dimension.name) else {
            continue;
        };
        let name = dimension.name;
        let dims: Vec<Option<Dim>> = match dimension.kind {
            DimKind::Text => cast::<StringArray>(column, name)?.iter().map(|text| text.map(Dim::from)).collect(),
            DimKind::Int => cast::<Int64Array>(column, name)?.iter().map(|value| value.map(Dim::Int)).collect(),
            DimKind::Real => cast::<Float64Array>(column, name)?.iter().map(|value| value.map(Dim::Real)).collect(),
        };
        for (row, dim) in rows[first..].iter_mut().zip(dims) {
            if let Some(dim) = dim {
                row.dims.insert(name.to_string(), dim);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::super::{read_rows, write_rows};
    use super::*;

    fn table() -> Table {
        let rows = vec![
            Row::new("eval_loss", "nats/token", 3.25).at("rule", "linear").at("N", 8usize).at("lr", 2e-3).at("seed", 0u64),
            Row::new("eval_loss", "nats/token", f64::NAN).at("rule", "a,\"b\"").at("N", 1usize).at("lr", 1e-3),
            Row::new("R", "1", 1.0 / 3.0).at("step", 10u64),
        ];
        Table { name: "sweep".into(), rows }
    }

    fn same(a: &Table, b: &Table) -> bool {
        a.name == b.name && format!("{:?}", a.rows) == format!("{:?}", b.rows) // NaN is not equal to itself
    }

    #[test]
    fn a_table_comes_back_from_parquet_and_from_rows() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.parquet");
        table().write_parquet(&path).unwrap();
        assert!(same(&Table::read(&path).unwrap(), &table()));
        write_rows(&dir.path().join("rows.jsonl"), &table().rows).unwrap();
        let rows = read_rows(&dir.path().join("rows.jsonl")).unwrap();
        assert!(same(&Table { name: "sweep".into(), rows }, &table()));
    }

    #[test]
    fn csv_quotes_what_needs_it_and_leaves_a_missing_number_empty() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("sweep.csv");
        table().write_csv(&path).unwrap();
        let expected = "metric,unit,rule,N,lr,seed,step,value\n\
                        eval_loss,nats/token,linear,8,0.002,0,,3.25\n\
                        eval_loss,nats/token,\"a,\"\"b\"\"\",1,0.001,,,\n\
                        R,1,,,,,10,0.3333333333333333\n";
        assert_eq!(std::fs::read_to_string(path).unwrap(), expected);
    }

    #[test]
    fn a_row_that_is_none_is_named_by_its_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.jsonl");
        let message = |text: &str| {
            std::fs::write(&path, text).unwrap();
            read_rows(&path).unwrap_err().to_string().replace(&dir.path().display().to_string(), "DIR")
        };
        let good = "{\"metric\":\"R\",\"unit\":\"1\",\"value\":1.0}\n";
        assert_eq!(message(&format!("{good}{{\"unit\":\"1\"}}")), "`DIR/rows.jsonl`, line 2: a row needs a `metric`");
        assert_eq!(message("{\"metric\":\"R\",\"n\":1}"), "`DIR/rows.jsonl`, line 1: unknown column `n`");
        assert_eq!(message("{\"metric\":\"R\",\"N\":1.5}"), "`DIR/rows.jsonl`, line 1: `N` cannot be 1.5");
    }
}

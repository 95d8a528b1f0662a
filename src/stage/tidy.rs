//! `tidy`: the rows of any number of measuring nodes as tables, in Parquet and CSV. An input `NAME` becomes the table NAME; inputs
//! `NAME.x`, `NAME.y` add to it.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_outputs;
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::engine::worker::ProgressFile;
use crate::paper::tidy::{ROWS, Table, read_rows};

/// Nothing to set: each input becomes a table of its name.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {}

pub struct Tidy;

impl Kind for Tidy {
    fn name(&self) -> &'static str {
        "tidy"
    }

    fn about(&self) -> &'static str {
        "collects the rows of measuring stages; for each input NAME outputs `NAME` (Parquet) and `NAME-csv`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let _: Params = typed(draft.params)?;
        if draft.inputs.is_empty() {
            return Err(ParamError::at(&[], "needs at least one input; each becomes a table of its name"));
        }
        let mut tables: Vec<&str> = draft.inputs.iter().map(|input| table(input)).collect();
        tables.sort_unstable();
        tables.dedup();
        let names: Vec<[String; 2]> = tables.iter().map(|name| [name.to_string(), format!("{name}-csv")]).collect();
        let files: Vec<[String; 2]> = tables.iter().map(|name| [format!("{name}.parquet"), format!("{name}.csv")]).collect();
        let pairs = names.iter().flatten().zip(files.iter().flatten()).map(|(name, file)| (name.as_str(), file.as_str()));
        let outputs = own_outputs(draft, &pairs.collect::<Vec<_>>())?;
        Ok(Checked { params: serde_json::Value::Object(Default::default()), outputs, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut shown = ProgressFile::new(task);
        let mut tables: BTreeMap<&str, Table> = BTreeMap::new();
        for (done, (name, path)) in task.inputs.iter().enumerate() {
            shown.say(done as u64, task.inputs.len() as u64, name);
            let table = tables.entry(table(name)).or_default();
            for (node, rows) in nodes(path)? {
                let mut rows = read_rows(&rows)?;
                if let Some(node) = node {
                    rows = rows.into_iter().map(|row| row.at("node", node.as_str())).collect();
                }
                table.rows.extend(rows);
            }
        }
        for (name, table) in tables {
            table.write_parquet(&task.outputs[name])?;
            table.write_csv(&task.outputs[&format!("{name}-csv")])?;
            println!("{name}: {} rows", table.rows.len());
        }
        Ok(())
    }
}

/// The table that an input belongs to.
fn table(input: &str) -> &str {
    input.split_once('.').map_or(input, |(name, _)| name)
}

/// The row files of an input: the file of one node, or the folders of many, which are named like their nodes. In the order of the names.
fn nodes(path: &Path) -> std::io::Result<Vec<(Option<String>, PathBuf)>> {
    if path.is_file() {
        return Ok(vec![(None, path.to_path_buf())]);
    }
    let mut found = Vec::new();
    for entry in std::fs::read_dir(path)? {
        let entry = entry?;
        let rows = entry.path().join(ROWS);
        let rows = if entry.path().is_dir() { rows } else { entry.path() };
        found.push((Some(entry.file_name().to_string_lossy().into_owned()), rows));
    }
    found.sort();
    Ok(found)
}

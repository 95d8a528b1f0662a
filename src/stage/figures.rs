//! `figures`: gathers files that other nodes made into one flat folder.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_outputs;
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};

/// Nothing to set: every file among the inputs is copied.
#[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {}

pub struct Figures;

impl Kind for Figures {
    fn name(&self) -> &'static str {
        "figures"
    }

    fn about(&self) -> &'static str {
        "gathers the files of all inputs in one flat folder; output `figures`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        if draft.inputs.is_empty() {
            return Err(ParamError::at(&[], "there is nothing to gather; name the figures under `inputs`"));
        }
        let outputs = own_outputs(draft, &[("figures", ".")])?;
        Ok(Checked { params: serde_json::to_value(&params).expect("parameters are plain data"), outputs, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut found: BTreeMap<String, PathBuf> = BTreeMap::new();
        for input in task.inputs.values() {
            collect(input, &mut found)?;
        }
        let folder = &task.outputs["figures"];
        fs::create_dir_all(folder)?;
        for (name, path) in &found {
            fs::write(folder.join(name), fs::read(path)?)?;
        }
        println!("{} files", found.len());
        Ok(())
    }
}

fn collect(path: &Path, found: &mut BTreeMap<String, PathBuf>) -> Result<(), Box<dyn Error + Send + Sync>> {
    if path.is_dir() {
        let mut entries = fs::read_dir(path)?.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>()?;
        entries.sort();
        return entries.iter().try_for_each(|entry| collect(entry, found));
    }
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    match found.insert(name.clone(), path.to_path_buf()) {
        Some(_) => Err(format!("two inputs hold a file `{name}`; a flat folder has room for one").into()),
        None => Ok(()),
    }
}

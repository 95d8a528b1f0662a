//! `plot`: draws one figure from the tidy tables it is given, as SVG, PNG and PDF, with its caption as JSON.

use std::error::Error;
use std::fs;
use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_outputs;
use crate::engine::config::known;
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::render::figure::{self, FIGURES, Settings};
use crate::render::tidy::Tables;

/// A figure of the tidy tables among the inputs. A table that it would like and is not given leaves a panel that says so.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Which figure: `energy`, `lr-transfer`, ...
    figure: String,
    /// For `regret`: the base learning rate; absent: the best at one loop and the reference depth.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    base_lr: Option<f64>,
}

pub struct Plot;

impl Kind for Plot {
    fn name(&self) -> &'static str {
        "plot"
    }

    fn about(&self) -> &'static str {
        "draws one figure from tidy tables (any inputs); outputs `svg`, `png`, `pdf` and `json`, its caption"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        let name = params.figure.as_str();
        if figure::find(name).is_none() {
            let names: Vec<String> = FIGURES.iter().map(|figure| figure.name.to_string()).collect();
            return Err(ParamError::at(&["figure"], format!("unknown figure `{name}`{}", known(&names, name))));
        }
        if draft.inputs.is_empty() {
            let tables = figure::find(name).map(|figure| figure.tables.join("`, `")).unwrap_or_default();
            let message = format!("a figure needs a table to draw; name one under `inputs` (`{name}` reads `{tables}`)");
            return Err(ParamError::at(&[], message));
        }
        if let Some(lr) = params.base_lr.filter(|lr| !(lr.is_finite() && *lr > 0.0)) {
            return Err(ParamError::at(&["base_lr"], format!("`base_lr` must be positive, not {lr}")));
        }
        let files = ["svg", "png", "pdf", "json"].map(|form| (form, format!("{name}.{form}")));
        let files: Vec<(&str, &str)> = files.iter().map(|(form, file)| (*form, file.as_str())).collect();
        let outputs = own_outputs(draft, &files)?;
        Ok(Checked { params: serde_json::to_value(&params).expect("parameters are plain data"), outputs, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let figure = figure::find(&params.figure).ok_or("the figure was checked and is gone")?;
        let tables = Tables::read(task.inputs.values().map(PathBuf::as_path))?;
        let files = figure.files(&tables, &Settings { base_lr: params.base_lr })?;
        fs::write(&task.outputs["svg"], files.svg)?;
        fs::write(&task.outputs["png"], files.png)?;
        fs::write(&task.outputs["pdf"], files.pdf)?;
        fs::write(&task.outputs["json"], files.json)?;
        Ok(())
    }
}

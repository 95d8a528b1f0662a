//! `report`: verdicts, figures, tables and deviations as one HTML page. What only a run knows is added to the page by `repro run`.

use std::error::Error;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_inputs, own_outputs};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::render::report::{Content, Places, page};

/// The parameters of `kind: report`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// What stands at the top of the page.
    title: String,
}

pub struct Report;

impl Kind for Report {
    fn name(&self) -> &'static str {
        "report"
    }

    fn about(&self) -> &'static str {
        "writes a page from inputs `verdicts`, `figures`, `tables` and `deviations`, each optional; output `page`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        check_inputs(draft, &[], &["verdicts", "figures", "tables", "deviations"])?;
        let params = serde_json::to_value(&params).expect("parameters are plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("page", "page.html")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let place = |name: &str| task.inputs.get(name).cloned();
        let places = Places {
            verdicts: place("verdicts"),
            figures: place("figures"),
            tables: place("tables"),
            deviations: place("deviations"),
        };
        let content = Content::read(&params.title, &places)?;
        std::fs::write(&task.outputs["page"], page(&content))?;
        let (verdicts, figures, tables) = (content.verdicts.verdicts.len(), content.figures.len(), content.tables.len());
        println!("{verdicts} verdicts, {figures} figures, {tables} tables");
        Ok(())
    }
}

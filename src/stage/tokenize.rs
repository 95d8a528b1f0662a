//! `tokenize`: turns a corpus into token shards, train and held out.

use std::error::Error;

use super::{check_inputs, own_outputs, run_data, wrong_data};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::paper::data::tokenize::{Config, Inputs, run};

pub struct Tokenize;

impl Kind for Tokenize {
    fn name(&self) -> &'static str {
        "tokenize"
    }

    fn about(&self) -> &'static str {
        "cuts token shards from inputs `corpus` and `tokenizer`; output `shards` with train/ and heldout/"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        config.check().map_err(wrong_data)?;
        check_inputs(draft, &["corpus", "tokenizer"], &[])?;
        let params = serde_json::to_value(&config).expect("a config is plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("shards", ".")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let config: Config = typed(&task.params)?;
        let inputs = Inputs { corpus: &task.inputs["corpus"], tokenizer: &task.inputs["tokenizer"] };
        let summary = run_data(task, |out, progress| run(&config, inputs, out, progress))?;
        println!("{}", serde_json::to_string(&summary)?);
        Ok(())
    }
}

//! `corpus`: writes the built-in corpus, or a user's own texts, as Parquet in FineWeb-Edu's columns.

use std::error::Error;

use super::{check_inputs, own_outputs, run_data, wrong_data};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::paper::data::corpus::{Config, From, Inputs, run};

pub struct Corpus;

impl Kind for Corpus {
    fn name(&self) -> &'static str {
        "corpus"
    }

    fn about(&self) -> &'static str {
        "writes the built-in corpus, or takes a folder of the user's texts (input `folder`), as Parquet; output `corpus`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        config.check().map_err(wrong_data)?;
        let required: &[&str] = if config.from == From::Folder { &["folder"] } else { &[] };
        check_inputs(draft, required, &[])?;
        let params = serde_json::to_value(&config).expect("a config is plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("corpus", ".")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let config: Config = typed(&task.params)?;
        let inputs = Inputs { folder: task.inputs.get("folder").map(|path| path.as_path()) };
        let summary = run_data(task, |out, progress| run(&config, inputs, out, progress))?;
        println!("{}", serde_json::to_string(&summary)?);
        Ok(())
    }
}

//! `tokenizer`: learns a byte-level BPE from the corpus, or takes over a user's tokenizer.json or tiktoken file.

use std::error::Error;

use super::{check_inputs, own_outputs, run_data, wrong_data};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::paper::data::tokenizer::{Config, From, Inputs, run};

pub struct Tokenizer;

impl Kind for Tokenizer {
    fn name(&self) -> &'static str {
        "tokenizer"
    }

    fn about(&self) -> &'static str {
        "learns a tokenizer from input `corpus`, or takes over input `file`; output `tokenizer`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        config.check().map_err(wrong_data)?;
        check_inputs(draft, if config.from == From::Train { &["corpus"] } else { &["file"] }, &[])?;
        let params = serde_json::to_value(&config).expect("a config is plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("tokenizer", ".")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let config: Config = typed(&task.params)?;
        let input = |name: &str| task.inputs.get(name).map(|path| path.as_path());
        let inputs = Inputs { corpus: input("corpus"), file: input("file") };
        let facts = run_data(task, |out, progress| run(&config, inputs, out, progress))?;
        println!("{}", serde_json::to_string(&facts)?);
        Ok(())
    }
}

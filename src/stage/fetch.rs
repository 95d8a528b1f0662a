//! `fetch`: brings files from the network or the dataset hub. Unfinished downloads wait in the node's scratch folder for the next attempt.

use std::error::Error;

use super::{check_inputs, own_outputs, run_data, wrong_data};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::paper::data::fetch::{Config, Network, run};

pub struct Fetch;

impl Kind for Fetch {
    fn name(&self) -> &'static str {
        "fetch"
    }

    fn about(&self) -> &'static str {
        "fetches files over HTTP(S) or from the dataset hub (`hf://datasets/...`), resumably and checked; output `files`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        config.check().map_err(wrong_data)?;
        check_inputs(draft, &[], &[])?;
        let params = serde_json::to_value(&config).expect("a config is plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("files", ".")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let config: Config = typed(&task.params)?;
        std::fs::create_dir_all(&task.scratch)?;
        let network = Network { partial: Some(task.scratch.clone()), ..Network::from_environment() };
        let summary = run_data(task, |out, progress| run(&config, &network, out, progress))?;
        println!("{}", serde_json::to_string(&summary)?);
        Ok(())
    }
}

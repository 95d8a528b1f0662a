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
        "fetches files over HTTP(S) or from the dataset hub (`hf://datasets/...`), as `files` or input `manifest` lists them; output `files`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        check_inputs(draft, &[], &["manifest"])?;
        match (draft.inputs.contains(&"manifest"), config.files.is_empty()) {
            (true, true) => {}
            (true, false) => return Err(ParamError::at(&["files"], "give `files` or the input `manifest`, not both")),
            (false, _) => config.check().map_err(wrong_data)?,
        }
        let params = serde_json::to_value(&config).expect("a config is plain data");
        Ok(Checked { params, outputs: own_outputs(draft, &[("files", ".")])?, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let mut config: Config = typed(&task.params)?;
        if let Some(path) = task.inputs.get("manifest") {
            let manifest: Config = serde_yaml::from_str(&std::fs::read_to_string(path)?)
                .map_err(|error| format!("the manifest cannot be read: {error}"))?;
            config = Config {
                files: manifest.files,
                max_files: if config.max_files > 0 { config.max_files } else { manifest.max_files },
                max_bytes: if config.max_bytes > 0 { config.max_bytes } else { manifest.max_bytes },
            };
        }
        std::fs::create_dir_all(&task.scratch)?;
        let network = Network { partial: Some(task.scratch.clone()), ..Network::from_environment() };
        let summary = run_data(task, |out, progress| run(&config, &network, out, progress))?;
        println!("{}", serde_json::to_string(&summary)?);
        Ok(())
    }
}

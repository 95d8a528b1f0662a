//! `probe`: looks at the residual stream of a trained model on held-out text, and of the same model as it was initialised.

use std::error::Error;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{check_inputs, own_outputs, train};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::engine::worker::ProgressFile;
use crate::on_device;
use crate::paper::checkpoint::Checkpoint;
use crate::paper::config::{DataKind, DeviceChoice, RawData};
use crate::paper::data::shards::Split;
use crate::paper::device;
use crate::paper::model::Model;
use crate::paper::probes::{ProbeReport, at_rest};
use crate::paper::sources;
use crate::paper::tidy::{self, ROWS};

/// How much held-out text the probes see.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Params {
    /// Held-out sequences, from the start of the split.
    #[serde(default = "sequences")]
    sequences: usize,
    #[serde(default)]
    device: DeviceChoice,
}

fn sequences() -> usize {
    64
}

pub struct Probe;

impl Kind for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn about(&self) -> &'static str {
        "measures norms and increments of a trained model (`checkpoint`) on held-out text (`tokens`); outputs `rows`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        check_inputs(draft, &["checkpoint", "tokens"], &[])?;
        if params.sequences == 0 {
            return Err(ParamError::at(&["sequences"], "`sequences` is 0; at least one sequence is needed"));
        }
        let device = device::choose(params.device).map_err(|error| ParamError::at(&["device"], error.to_string()))?;
        Ok(Checked {
            params: serde_json::to_value(&params).expect("parameters are plain data"),
            outputs: own_outputs(draft, &[("rows", ROWS)])?,
            numerics: train::numerics(device),
        })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let kind = device::choose(params.device)?;
        let checkpoint = Checkpoint::read(&task.inputs["checkpoint"])?;
        let identity = checkpoint.state.identity.clone();
        let path = task.inputs["tokens"].join(Split::Heldout.folder());
        let data = RawData { kind: DataKind::Parquet, path: Some(path), part: None };
        let model = identity.model.check()?;
        let scaling = identity.scaling.check(&model, &identity.init, &identity.optimiser)?;
        let rows = identity.batch.micro_sequences.unwrap_or(identity.batch.sequences);
        let batches = sources::held_out(&data, model.vocabulary, params.sequences, identity.batch.seq_len, rows, identity.seed)?;
        let mut shown = ProgressFile::new(task);
        let reports = device::with_threads(Some(task.threads), || -> Result<Vec<ProbeReport>, Box<dyn Error + Send + Sync>> {
            on_device!(kind, dev => {
                shown.say(0, 2, "as initialised");
                let fresh = at_rest(&Model::new(&dev, model, &scaling, identity.seed)?, 0, &batches)?;
                shown.say(1, 2, "as trained");
                let trained = at_rest(&checkpoint.model(&dev)?, checkpoint.state.step, &batches)?;
                Ok(vec![fresh, trained])
            })
        })??;
        let rows: Vec<tidy::Row> = reports.iter().flat_map(|report| tidy::of_model(&identity, report)).collect();
        tidy::write_rows(&task.outputs["rows"], &rows)?;
        Ok(())
    }
}

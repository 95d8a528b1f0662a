//! `theory`: measures one statement of the paper's theory on the model it is proved for. The stage's `seed` picks the draws.

use std::error::Error;
use std::sync::Mutex;

use super::{check_inputs, own_outputs};
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Task, typed};
use crate::engine::worker::ProgressFile;
use crate::paper::theory::{Config, measure};
use crate::paper::tidy::{self, ROWS};

pub struct Theory;

impl Kind for Theory {
    fn name(&self) -> &'static str {
        "theory"
    }

    fn about(&self) -> &'static str {
        "measures a statement of the paper's theory (T1 to T10) by Monte-Carlo; output `rows`"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Config)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let config: Config = typed(draft.params)?;
        check_inputs(draft, &[], &[])?;
        let config = config.check().map_err(|error| ParamError::at(&[error.field], error.to_string()))?;
        // Plain f64 arithmetic without fused or reordered operations; only logarithms and cosines are the platform's.
        Ok(Checked {
            params: serde_json::to_value(&config).expect("a config is plain data"),
            outputs: own_outputs(draft, &[("rows", ROWS)])?,
            numerics: concat!(env!("REPRO_ARCH"), "-f64"),
        })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let config: Config = typed(&task.params)?;
        let shown = Mutex::new(ProgressFile::new(task));
        let total = config.draws as u64;
        let done = |draws: usize| {
            if let Ok(mut shown) = shown.lock() {
                shown.say(draws as u64, total, "draws");
            }
        };
        let pool = rayon::ThreadPoolBuilder::new().num_threads(task.threads).build()?;
        let rows = pool.install(|| measure(&config, task.seed.unwrap_or(0), done));
        tidy::write_rows(&task.outputs["rows"], &rows)?;
        println!("{} rows of {} draws", rows.len(), config.draws);
        Ok(())
    }
}

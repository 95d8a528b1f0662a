//! `verify`: judges the claims by the tidy tables. `repro verify` does the same without a node, from whatever there is.

use std::collections::BTreeMap;
use std::error::Error;
use std::path::Path;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::own_outputs;
use crate::engine::config::Project;
use crate::engine::digest;
use crate::engine::graph::Graph;
use crate::engine::kind::{Checked, Draft, Kind, ParamError, Registry, Task, typed};
use crate::paper::claims::{self, ClaimsError, Judgement, PLAN, Vocabulary, plan};
use crate::paper::tidy::Table;

/// Which claims. Every input but `pipeline`, `stages` and `claims` is a tidy table.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The claims file, in the input `stages`. Not needed where the file is an input of its own, `claims`.
    #[serde(default)]
    pub claims: Option<String>,
    /// The profile whose training runs are the paper's own: claims about the configuration are checked against it.
    #[serde(default = "paper")]
    pub paper_profile: String,
}

fn paper() -> String {
    "paper".into()
}

pub struct Verify;

/// Inputs that are not tables.
pub const FILES: [&str; 3] = ["pipeline", "stages", "claims"];

impl Kind for Verify {
    fn name(&self) -> &'static str {
        "verify"
    }

    fn about(&self) -> &'static str {
        "judges a claims file by tidy tables, which are its inputs; outputs `verdicts` (JSON) and `text` (Markdown)"
    }

    fn schema(&self) -> schemars::Schema {
        schemars::schema_for!(Params)
    }

    fn check(&self, draft: &Draft) -> Result<Checked, ParamError> {
        let params: Params = typed(draft.params)?;
        let has = |name: &str| draft.inputs.contains(&name);
        match (has("claims"), has("stages"), &params.claims) {
            (true, _, None) | (false, true, Some(_)) => {}
            (true, _, Some(_)) => {
                return Err(ParamError::at(&["claims"], "the claims file is the input `claims`; leave this out, or that"));
            }
            (false, _, _) => {
                let message = "an input `claims` is needed, or an input `stages` with `claims: FILE` naming a file in it";
                return Err(ParamError::at(&[], message));
            }
        }
        let outputs = own_outputs(draft, &[("verdicts", "verdicts.json"), ("text", "verdicts.md")])?;
        Ok(Checked { params: serde_json::to_value(&params).expect("parameters are plain data"), outputs, numerics: "any" })
    }

    fn run(&self, task: &Task) -> Result<(), Box<dyn Error + Send + Sync>> {
        let params: Params = typed(&task.params)?;
        let mut tables = Vec::new();
        let mut digests = BTreeMap::new();
        for (name, path) in task.inputs.iter().filter(|(name, _)| !FILES.contains(&name.as_str())) {
            let table = Table::read(path)?;
            digests.insert(name.clone(), digest::of_file(path)?.hex());
            tables.push(Table { name: name.clone(), rows: table.rows });
        }
        if task.inputs.contains_key("pipeline") && task.inputs.contains_key("stages") {
            tables.extend(plan_table(&Project::load(&task.work)?, &params.paper_profile));
        }
        let file = match (&params.claims, task.inputs.get("stages"), task.inputs.get("claims")) {
            (Some(name), Some(stages), _) => stages.join(name),
            (_, _, Some(file)) => file.clone(),
            _ => unreachable!("`check` asks for one of the two"),
        };
        let name = file.strip_prefix(&task.work).unwrap_or(&file).display().to_string();
        let verdicts = Verdicts::of(&name, &file, &tables, &digests)?;
        std::fs::write(&task.outputs["verdicts"], verdicts.json())?;
        std::fs::write(&task.outputs["text"], claims::text::markdown(&verdicts.scale, &verdicts.verdicts))?;
        println!("{}", claims::text::summary(&verdicts.verdicts));
        Ok(())
    }
}

/// What `verdicts.json` holds.
#[derive(Serialize)]
pub struct Verdicts {
    /// The largest training run behind the verdicts, in words.
    pub scale: String,
    pub verdicts: Vec<Judgement>,
}

#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    #[error("{name}: cannot be read: {cause}")]
    Read { name: String, cause: std::io::Error },
    #[error(transparent)]
    Claims(#[from] ClaimsError),
}

impl Verdicts {
    pub fn of(name: &str, file: &Path, tables: &[Table], digests: &BTreeMap<String, String>) -> Result<Verdicts, VerifyError> {
        let text = std::fs::read_to_string(file).map_err(|cause| VerifyError::Read { name: name.to_string(), cause })?;
        let file = claims::parse(name, &text, Vocabulary::of(tables))?;
        let verdicts = claims::judge(&file, tables, digests)?;
        let scale = verdicts.iter().find(|judgement| judgement.tables.iter().any(|table| table == "lr-transfer"));
        let scale = scale.map_or_else(|| "no training runs".to_string(), |judgement| judgement.scale.clone());
        Ok(Verdicts { scale, verdicts })
    }

    fn json(&self) -> String {
        format!("{}\n", serde_json::to_string_pretty(self).expect("verdicts are plain data"))
    }
}

/// The training runs of a profile, each with its configuration. None if there is no such profile, or it cannot be built.
pub fn plan_table(project: &Project, profile: &str) -> Option<Table> {
    static KINDS: Registry = super::REGISTRY;
    if !project.profiles().contains(&profile) {
        return None;
    }
    let graph = Graph::build(project, profile, &[], KINDS).ok()?;
    // The paper's sweeps; diagnostics and ablations train too, but not the paper's runs.
    let wanted = ["lr-transfer", "depth-transfer"];
    let mut rows = Vec::new();
    for node in graph.nodes.iter().filter(|node| wanted.contains(&graph.stages[node.stage].name.as_str())) {
        rows.extend(plan::rows(&node.id, node.seed, &node.params).into_iter().flatten());
    }
    Some(Table { name: PLAN.into(), rows })
}

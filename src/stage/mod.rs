//! The bridge: one file per stage kind; the only room that sees both the pipeline and the paper. A new kind is a file here and a line below.

mod command;
mod corpus;
mod fetch;
mod figures;
mod plot;
mod probe;
mod report;
mod tables;
mod theory;
mod tidy;
mod tokenize;
mod tokenizer;
pub mod train;
pub mod verify;

use std::path::Path;

use crate::engine::kind::{Draft, Output, ParamError, Registry, Task};
use crate::engine::worker::ProgressFile;
use crate::paper::data;

/// Every stage kind there is.
pub const REGISTRY: Registry = Registry(&[
    &command::Command,
    &corpus::Corpus,
    &fetch::Fetch,
    &figures::Figures,
    &plot::Plot,
    &probe::Probe,
    &report::Report,
    &tables::Tables,
    &theory::Theory,
    &tidy::Tidy,
    &tokenize::Tokenize,
    &tokenizer::Tokenizer,
    &train::Train,
    &verify::Verify,
]);

/// Checks the inputs of a kind that knows which it reads.
fn check_inputs(draft: &Draft, required: &[&str], optional: &[&str]) -> Result<(), ParamError> {
    if let Some(missing) = required.iter().find(|name| !draft.inputs.contains(name)) {
        return Err(ParamError::at(&[], format!("an input `{missing}` is needed; name it under `inputs`")));
    }
    let known: Vec<String> = required.iter().chain(optional).map(|name| name.to_string()).collect();
    if let Some(stranger) = draft.inputs.iter().find(|name| !known.iter().any(|have| have == *name)) {
        let known = crate::engine::config::known(&known, stranger);
        return Err(ParamError::at(&[], format!("an input `{stranger}` is not read by this kind{known}")));
    }
    Ok(())
}

/// The outputs of a kind that names them itself. `.` is a folder that is published whole.
fn own_outputs(draft: &Draft, list: &[(&str, &str)]) -> Result<Vec<Output>, ParamError> {
    if !draft.outputs.is_empty() {
        let names: Vec<String> = list.iter().map(|(name, _)| format!("`{name}`")).collect();
        let message = format!("this kind names its outputs itself ({}); leave `outputs` out", names.join(", "));
        return Err(ParamError::at(&[], message));
    }
    let output = |(name, path): &(&str, &str)| Output { name: name.to_string(), path: path.to_string(), directory: *path == "." };
    Ok(list.iter().map(output).collect())
}

/// What is wrong with the parameters of a data step, and in which field.
fn wrong_data(error: data::Error) -> ParamError {
    let field = match &error {
        data::Error::OutOfRange { field, .. } => Some(*field),
        _ => None,
    };
    ParamError::at(field.as_slice(), error.to_string())
}

/// Runs a data step on as many threads as the node was given, and passes on its progress.
fn run_data<T: Send>(
    task: &Task,
    step: impl FnOnce(&Path, data::OnProgress<'_>) -> Result<T, data::Error> + Send,
) -> Result<T, Box<dyn std::error::Error + Send + Sync>> {
    let out = task.outputs.values().next().expect("a data step has one output").clone();
    let mut shown = ProgressFile::new(task);
    let mut progress = move |progress: data::Progress| {
        shown.say(progress.done, progress.total.unwrap_or(0), progress.what);
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(task.threads).build()?;
    Ok(pool.install(|| step(&out, &mut progress))?)
}

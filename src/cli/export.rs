//! `repro export`: a checkpoint in a format other programs read.

use super::train::whose_fault;
use super::{CliError, Exit, Global};
use crate::paper::checkpoint::Checkpoint;
use crate::paper::export::{self, ExportError};
use clap::{Args, ValueEnum};
use dfdx::prelude::Cpu;
use std::path::PathBuf;

/// Write a checkpoint as a model other programs can load.
#[derive(Args)]
pub struct ExportArgs {
    /// A `checkpoint.safetensors`.
    checkpoint: PathBuf,
    /// Folder to make.
    #[arg(long, value_name = "DIR")]
    out: PathBuf,
    /// What to write.
    #[arg(long, value_enum, default_value = "hf")]
    format: Format,
}

#[derive(Clone, Copy, ValueEnum)]
enum Format {
    /// A Hugging Face `LlamaForCausalLM`: loops unrolled, branch scale folded into the weights.
    Hf,
}

pub fn run(global: &Global, args: &ExportArgs) -> Result<Exit, CliError> {
    let checkpoint = Checkpoint::read(&args.checkpoint).map_err(|e| whose_fault(e.into()))?;
    let model = checkpoint.model(&Cpu::default()).map_err(|e| whose_fault(e.into()))?;
    let positions = checkpoint.state.identity.batch.seq_len;
    match args.format {
        Format::Hf => export::hugging_face(&model, positions, &args.out).map_err(|error| match error {
            ExportError::Occupied { .. } => CliError::wrong_input(error),
            _ => CliError::failed(error),
        })?,
    }
    let layers = model.config.depth * model.config.loops;
    if global.json {
        println!("{}", serde_json::json!({ "format": "hf", "layers": layers, "out": args.out }));
    } else {
        println!("wrote `{}`: LlamaForCausalLM of {layers} layers", args.out.display());
    }
    Ok(Exit::Ok)
}

//! `repro eval`: the loss of a checkpoint on given tokens.

use super::train::{parse_device, whose_fault};
use super::{CliError, Exit, Global};
use crate::on_device;
use crate::paper::checkpoint::Checkpoint;
use crate::paper::config::DeviceChoice;
use crate::paper::tensor_file::{self, Entry};
use crate::paper::trainer::TrainError;
use crate::paper::{device, evaluate, sources};
use clap::Args;
use serde::Serialize;
use std::path::PathBuf;

/// Measure the cross-entropy of a checkpoint on token ids.
#[derive(Args)]
pub struct EvalArgs {
    /// A `checkpoint.safetensors`.
    checkpoint: PathBuf,
    /// Token ids: numbers in a text file, or Parquet with a list column `input_ids`.
    #[arg(long, value_name = "FILE")]
    ids: PathBuf,
    /// Tokens per sequence; as in training if absent.
    #[arg(long, value_name = "T")]
    seq_len: Option<usize>,
    /// Also write the logits of every position.
    #[arg(long, value_name = "OUT.safetensors")]
    logits: Option<PathBuf>,
    /// Device to run on.
    #[arg(long, value_name = "auto|cpu|cuda", default_value = "auto", value_parser = parse_device)]
    device: DeviceChoice,
    /// Threads of the CPU; one per core if absent.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
enum EvalError {
    #[error("`{path}` holds {found} token ids; a loss needs at least 2")]
    TooFew { path: PathBuf, found: usize },
    #[error("`--seq-len` is 0; it must be at least 1")]
    NoLength,
    #[error("cannot write `{path}`")]
    Write {
        path: PathBuf,
        #[source]
        cause: std::io::Error,
    },
}

#[derive(Serialize)]
struct Report {
    loss: f64,
    perplexity: f64,
    tokens: usize,
    seq_len: usize,
    /// Steps the checkpoint was trained for.
    step: u64,
    token_losses: Vec<f32>,
}

pub fn run(global: &Global, args: &EvalArgs) -> Result<Exit, CliError> {
    let checkpoint = Checkpoint::read(&args.checkpoint).map_err(|e| whose_fault(e.into()))?;
    let ids = sources::read_ids(&args.ids).map_err(|e| whose_fault(e.into()))?;
    if ids.len() < 2 {
        return Err(CliError::wrong_input(EvalError::TooFew { path: args.ids.clone(), found: ids.len() }));
    }
    let seq_len = args.seq_len.unwrap_or(checkpoint.state.identity.batch.seq_len);
    if seq_len == 0 {
        return Err(CliError::wrong_input(EvalError::NoLength));
    }
    let batches = evaluate::batches(&ids, seq_len);
    let kind = device::choose(args.device).map_err(|e| whose_fault(e.into()))?;
    let measured = device::with_threads(args.threads, || -> Result<_, TrainError> {
        on_device!(kind, dev => {
            let model = checkpoint.model(&dev)?;
            let losses = evaluate::token_losses(&model, &batches)?;
            let logits = args.logits.as_ref().map(|_| evaluate::logits(&model, &batches)).transpose()?;
            Ok((losses, logits))
        })
    });
    let (losses, logits) = measured.map_err(|e| whose_fault(e.into()))?.map_err(whose_fault)?;
    if let (Some(path), Some(logits)) = (&args.logits, logits) {
        let columns = logits.len() / losses.len();
        let values = Box::new(move || logits.clone());
        let entry = Entry { name: "logits".to_owned(), shape: vec![losses.len(), columns], values };
        tensor_file::write(path, None, vec![entry])
            .map_err(|cause| CliError::failed(EvalError::Write { path: path.clone(), cause }))?;
    }
    let loss = evaluate::mean(&losses);
    let step = checkpoint.state.step;
    if global.json {
        let report = Report { loss, perplexity: loss.exp(), tokens: losses.len(), seq_len, step, token_losses: losses };
        println!("{}", serde_json::to_string(&report).expect("a report is plain numbers"));
    } else {
        println!("loss {loss:.6} nats per token over {} tokens (step {step}, sequences of {seq_len})", losses.len());
    }
    Ok(Exit::Ok)
}

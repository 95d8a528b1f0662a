//! `repro generate`: text from a checkpoint.

use super::train::whose_fault;
use super::{CliError, Exit, Global};
use crate::paper::checkpoint::Checkpoint;
use crate::paper::generate::{Sampling, generate};
use crate::paper::{device, trainer::TrainError};
use clap::Args;
use dfdx::prelude::Cpu;
use std::path::PathBuf;

/// Sample a continuation of a prompt from a checkpoint.
#[derive(Args)]
pub struct GenerateArgs {
    /// A `checkpoint.safetensors`.
    checkpoint: PathBuf,
    /// Text to continue.
    #[arg(long, default_value = "\n")]
    prompt: String,
    /// A `tokenizer.json`; without one, tokens are the bytes of the text.
    #[arg(long, value_name = "FILE")]
    tokenizer: Option<PathBuf>,
    /// Tokens to sample.
    #[arg(long, value_name = "N", default_value_t = 200)]
    tokens: usize,
    /// 0 takes the likeliest token always.
    #[arg(long, default_value_t = 0.8)]
    temperature: f64,
    /// Sample among the K likeliest only.
    #[arg(long, value_name = "K")]
    top_k: Option<usize>,
    /// Another seed gives another text.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Threads of the CPU; one per core if absent.
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

#[derive(Debug, thiserror::Error)]
enum GenerateError {
    #[error("cannot read tokenizer `{path}`: {what}")]
    Tokenizer { path: PathBuf, what: String },
    #[error("`--prompt` holds no token; give at least one character")]
    EmptyPrompt,
    #[error("`--temperature` is {temperature}; it must be a number and not negative")]
    Temperature { temperature: f64 },
    #[error("the checkpoint has a vocabulary of {vocabulary}, so its tokens are not bytes; pass `--tokenizer FILE`")]
    NotBytes { vocabulary: usize },
}

/// Text to ids and back.
enum Codec {
    Bytes,
    Trained(Box<tokenizers::Tokenizer>),
}

impl Codec {
    fn encode(&self, text: &str) -> Result<Vec<u32>, String> {
        match self {
            Self::Bytes => Ok(text.bytes().map(u32::from).collect()),
            Self::Trained(t) => Ok(t.encode_fast(text, false).map_err(|e| e.to_string())?.get_ids().to_vec()),
        }
    }

    fn decode(&self, ids: &[u32]) -> Result<String, String> {
        match self {
            Self::Bytes => Ok(String::from_utf8_lossy(&ids.iter().map(|&id| id as u8).collect::<Vec<u8>>()).into_owned()),
            Self::Trained(t) => t.decode(ids, false).map_err(|e| e.to_string()),
        }
    }
}

pub fn run(global: &Global, args: &GenerateArgs) -> Result<Exit, CliError> {
    let temperature = args.temperature;
    if !(temperature >= 0.0 && temperature.is_finite()) {
        return Err(CliError::wrong_input(GenerateError::Temperature { temperature }));
    }
    let checkpoint = Checkpoint::read(&args.checkpoint).map_err(|e| whose_fault(e.into()))?;
    let identity = &checkpoint.state.identity;
    let tokenizer =
        |what: String| CliError::wrong_input(GenerateError::Tokenizer { path: args.tokenizer.clone().unwrap_or_default(), what });
    let codec = match &args.tokenizer {
        None if identity.model.vocabulary != 256 => {
            let vocabulary = identity.model.vocabulary;
            return Err(CliError::wrong_input(GenerateError::NotBytes { vocabulary }));
        }
        None => Codec::Bytes,
        Some(path) => {
            let loaded = tokenizers::Tokenizer::from_file(path).map_err(|e| tokenizer(e.to_string()))?;
            Codec::Trained(Box::new(loaded))
        }
    };
    let prompt = codec.encode(&args.prompt).map_err(tokenizer)?;
    if prompt.is_empty() {
        return Err(CliError::wrong_input(GenerateError::EmptyPrompt));
    }
    let sampling = Sampling { temperature, top_k: args.top_k, seed: args.seed, context: identity.batch.seq_len };
    let sampled = device::with_threads(args.threads, || -> Result<Vec<u32>, TrainError> {
        let model = checkpoint.model(&Cpu::default())?;
        Ok(generate(&model, &prompt, args.tokens, sampling, |_| ())?)
    });
    let ids = sampled.map_err(|e| whose_fault(e.into()))?.map_err(whose_fault)?;
    let text = codec.decode(&ids).map_err(tokenizer)?;
    if global.json {
        println!("{}", serde_json::json!({ "prompt": args.prompt, "text": text, "ids": ids }));
    } else {
        println!("{}{text}", args.prompt);
    }
    Ok(Exit::Ok)
}

//! Arguments in, exit code out: one file per command.

pub mod eval;
pub mod export;
pub mod generate;
pub mod train;

use clap::{Parser, Subcommand};
use std::error::Error;
use std::process::ExitCode;

/// Reproduce "On the Residual Scaling of Looped Transformers".
#[derive(Parser)]
#[command(version, about)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Train(train::TrainArgs),
    Eval(eval::EvalArgs),
    Export(export::ExportArgs),
    Generate(generate::GenerateArgs),
}

/// A command that did not do what it was asked, and whose fault that is.
#[derive(Debug)]
pub enum Failure {
    /// Exit code 2: what the user gave cannot work.
    WrongInput(Box<dyn Error + Send + Sync>),
    /// Exit code 1: it could have worked.
    Failed(Box<dyn Error + Send + Sync>),
}

impl Failure {
    pub fn wrong_input(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::WrongInput(error.into())
    }

    pub fn failed(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::Failed(error.into())
    }

    fn parts(&self) -> (&(dyn Error + Send + Sync), u8) {
        match self {
            Self::WrongInput(error) => (error.as_ref(), 2),
            Self::Failed(error) => (error.as_ref(), 1),
        }
    }
}

pub fn main(cli: Cli) -> ExitCode {
    let done = match cli.command {
        Command::Train(args) => train::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Export(args) => export::run(&args),
        Command::Generate(args) => generate::run(&args),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            let (error, code) = failure.parts();
            eprintln!("error: {error}");
            let mut cause = error.source();
            while let Some(error) = cause {
                eprintln!("  because: {error}");
                cause = error.source();
            }
            ExitCode::from(code)
        }
    }
}

//! The command line: what may be typed, which command answers, and with which exit code.

mod accept;
mod bench;
mod cache;
mod context;
mod cost;
mod curve;
mod dag;
mod data;
mod diff;
mod doctor;
mod eval;
mod export;
mod facts;
mod generate;
mod human;
mod log;
mod plan;
mod progress;
mod report;
mod run;
mod schema;
mod show;
mod status;
mod style;
mod train;
mod ui;
mod verify;
mod why;

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser, Subcommand};

use crate::stage::REGISTRY;

/// How a process ends. Documented in `repro --help`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    Ok = 0,
    Failed = 1,
    Wrong = 2,
    Remains = 3,
    Interrupted = 130,
}

/// Anything a command can fail with, and how the process then ends.
#[derive(Debug, thiserror::Error)]
pub enum CliError {
    #[error(transparent)]
    Config(#[from] crate::engine::config::ConfigError),
    #[error(transparent)]
    Plan(#[from] crate::engine::plan::PlanError),
    #[error(transparent)]
    Store(#[from] crate::engine::store::StoreError),
    #[error(transparent)]
    Target(#[from] crate::engine::target::TargetError),
    #[error("{0}")]
    Wrong(String),
    /// What the user gave cannot work.
    #[error(transparent)]
    WrongInput(Box<dyn std::error::Error + Send + Sync>),
    /// It could have worked.
    #[error(transparent)]
    Failed(Box<dyn std::error::Error + Send + Sync>),
    #[error("{what}")]
    Io { what: String, source: std::io::Error },
}

impl From<crate::paper::data::Error> for CliError {
    fn from(error: crate::paper::data::Error) -> CliError {
        if error.is_wrong_input() { CliError::wrong_input(error) } else { CliError::failed(error) }
    }
}

impl CliError {
    fn wrong_input(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CliError {
        CliError::WrongInput(error.into())
    }

    fn failed(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> CliError {
        CliError::Failed(error.into())
    }

    fn exit(&self) -> Exit {
        use crate::engine::plan::PlanError;
        match self {
            CliError::Plan(PlanError::Store(_)) | CliError::Store(_) | CliError::Io { .. } | CliError::Failed(_) => Exit::Failed,
            CliError::Config(_) | CliError::Plan(_) | CliError::Target(_) | CliError::Wrong(_) | CliError::WrongInput(_) => {
                Exit::Wrong
            }
        }
    }
}

const EXIT_CODES: &str = "\
Exit codes:
  0    all is well
  1    a stage failed, or the store cannot be used
  2    wrong input: the command line, a YAML file, a missing input
  3    work remains (plan, run --dry-run)
  130  interrupted; the same command goes on where this one stopped

Start with `repro doctor`, then `repro plan`, then `repro run all`.";

/// Reproduce "On the Residual Scaling of Looped Transformers": run its pipeline, judge its claims.
///
/// Every node is cached by the content of all that determines it: nothing runs twice, nothing stale is kept, and the
/// reason for every rerun is said.
#[derive(Parser)]
#[command(name = "repro", version, after_help = EXIT_CODES, max_term_width = 110, disable_help_subcommand = true)]
struct Cli {
    #[command(flatten)]
    global: Global,
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Args, Clone)]
pub struct Global {
    /// Work in this project instead of the one around the current directory
    #[arg(short = 'C', long = "directory", value_name = "DIR", global = true)]
    directory: Option<PathBuf>,
    /// Keep results here instead of in `.repro`; several projects may share one store
    #[arg(long, value_name = "DIR", global = true, env = "REPRO_STORE")]
    store: Option<PathBuf>,
    /// Write JSON for programs to read
    #[arg(long, global = true)]
    json: bool,
}

/// Which nodes there are.
#[derive(clap::Args, Clone, Default)]
pub struct Which {
    /// The profile: how large a run is meant to be [default: the pipeline's own, `quick` unless it says otherwise]
    #[arg(short, long, value_name = "NAME", env = "REPRO_PROFILE")]
    profile: Option<String>,
    /// Set a variable of the pipeline, such as `--set steps=100`
    #[arg(long = "set", value_name = "NAME=VALUE")]
    sets: Vec<String>,
}

#[derive(Subcommand)]
enum Command {
    /// Run what is not done yet
    Run(run::Args),
    /// Say what would run and why; exit code 3 if anything would
    Plan(plan::Args),
    /// Show how every stage stands
    Status(status::Args),
    /// Judge every claim by the results there are
    Verify(verify::Args),
    /// Say why a node would run again, or why it would not
    Why(why::Args),
    /// Draw the graph of stages
    Dag(dag::Args),
    /// Write the report, with how every node stands
    Report(report::Args),
    /// Show the report live in a browser while a run goes on; serves this machine only and changes nothing
    Ui(ui::Args),
    /// Compare verdicts, metrics and figures of two profiles, runs or checkouts
    Diff(diff::Args),
    /// Print what a node's last attempt wrote
    Log(log::Args),
    /// Show where a node's result comes from: key, inputs, outputs, time, machine
    Show(show::Args),
    /// Take a node's present outputs for its changed key, after a change known not to matter
    Accept(accept::Args),
    /// Free what no current result needs
    Gc(cache::GcArgs),
    /// Look after the store
    #[command(subcommand)]
    Cache(cache::CacheCommand),
    /// Train one model as a YAML file describes, outside the pipeline
    Train(train::TrainArgs),
    /// Measure a checkpoint's loss on given tokens
    Eval(eval::EvalArgs),
    /// Turn a checkpoint into a Hugging Face model
    Export(export::ExportArgs),
    /// Let a checkpoint write
    Generate(generate::GenerateArgs),
    /// Measure how fast this machine trains
    Bench(bench::Args),
    /// Look at documents and tokens
    Data(data::Args),
    /// Look at the machine and at what is installed
    Doctor(doctor::Args),
    /// Print the JSON Schema of pipeline.yaml or of a stage file, for editors
    Schema(schema::Args),
    /// Print completions for a shell
    Completions { shell: clap_complete::Shell },
    #[command(hide = true)]
    Worker,
    #[command(hide = true)]
    Reaper,
}

/// The whole program.
pub fn main() -> ExitCode {
    // Workers are started for every node: they skip the parser.
    let first = std::env::args_os().nth(1);
    match first.as_deref().and_then(|word| word.to_str()) {
        Some("worker") => return ExitCode::from(crate::engine::worker::work(REGISTRY)),
        Some("reaper") => {
            crate::engine::process::reap();
            return ExitCode::SUCCESS;
        }
        _ => {}
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { Exit::Wrong as u8 } else { 0 });
        }
    };
    let result = match cli.command {
        Command::Run(args) => run::run(&cli.global, &args),
        Command::Plan(args) => plan::run(&cli.global, &args),
        Command::Status(args) => status::run(&cli.global, &args),
        Command::Verify(args) => verify::run(&cli.global, &args),
        Command::Why(args) => why::run(&cli.global, &args),
        Command::Dag(args) => dag::run(&cli.global, &args),
        Command::Report(args) => report::run(&cli.global, &args),
        Command::Ui(args) => ui::run(&cli.global, &args),
        Command::Diff(args) => diff::run(&cli.global, &args),
        Command::Log(args) => log::run(&cli.global, &args),
        Command::Show(args) => show::run(&cli.global, &args),
        Command::Accept(args) => accept::run(&cli.global, &args),
        Command::Gc(args) => cache::gc(&cli.global, &args),
        Command::Cache(command) => cache::run(&cli.global, &command),
        Command::Train(args) => train::run(&cli.global, &args),
        Command::Eval(args) => eval::run(&cli.global, &args),
        Command::Export(args) => export::run(&cli.global, &args),
        Command::Generate(args) => generate::run(&cli.global, &args),
        Command::Bench(args) => bench::run(&cli.global, &args),
        Command::Data(args) => data::run(&cli.global, &args),
        Command::Doctor(args) => doctor::run(&cli.global, &args),
        Command::Schema(args) => schema::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "repro", &mut script);
            print(&String::from_utf8_lossy(&script));
            Ok(Exit::Ok)
        }
        Command::Worker | Command::Reaper => Ok(Exit::Wrong),
    };
    let exit = result.unwrap_or_else(|error| {
        let mut text = format!("error: {error}");
        let mut cause = std::error::Error::source(&error);
        while let Some(error) = cause {
            text.push_str(&format!(": {error}"));
            cause = error.source();
        }
        let _ = writeln!(std::io::stderr(), "{text}");
        error.exit()
    });
    ExitCode::from(exit as u8)
}

/// Writes to standard output; a reader that went away (`| head`) is no error.
pub fn print(text: &str) {
    let mut out = std::io::stdout().lock();
    if out.write_all(text.as_bytes()).and_then(|()| out.flush()).is_err() {
        std::process::exit(Exit::Ok as i32);
    }
}

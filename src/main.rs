//! Arguments in, exit code out.

use clap::Parser;
use repro::cli;

fn main() -> std::process::ExitCode {
    cli::main(cli::Cli::parse())
}

//! Arguments in, exit code out.

use clap::Parser;
use std::io::Write;
use std::process::ExitCode;

#[derive(Parser)]
#[command(version, about)]
enum Cli {
    Data(repro::cli::data::Args),
}

fn main() -> ExitCode {
    let Cli::Data(args) = Cli::parse();
    match repro::cli::data::run(&args) {
        Ok(text) => {
            // A reader that closes the pipe has seen enough.
            let _ = std::io::stdout().write_all(text.as_bytes());
            ExitCode::SUCCESS
        }
        Err(error) => {
            let mut told = error.to_string();
            let mut cause = std::error::Error::source(&error);
            while let Some(error) = cause {
                told += &format!(": {error}");
                cause = error.source();
            }
            eprintln!("error: {told}");
            ExitCode::from(if error.is_wrong_input() { 2 } else { 1 })
        }
    }
}

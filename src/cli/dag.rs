//! `repro dag`: the graph of stages, a grid collapsed to one box with counts.

use super::context::Context;
use super::{CliError, Exit, Global, Which, facts, print};
use crate::engine::store::Access;

/// Draw the graph of stages.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// How to draw it
    #[arg(short, long, value_enum, default_value = "text")]
    format: Format,
}

#[derive(Clone, Copy, PartialEq, clap::ValueEnum)]
enum Format {
    /// For the terminal
    Text,
    /// For Markdown
    Mermaid,
    /// For Graphviz
    Dot,
    /// A picture
    Svg,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let dag = facts::Facts::of(&context).dag;
    if global.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&dag).expect("plain data")));
        return Ok(Exit::Ok);
    }
    print(&match args.format {
        Format::Text => dag.text(),
        Format::Mermaid => dag.mermaid(),
        Format::Dot => dag.dot(),
        Format::Svg => dag.svg(),
    });
    Ok(Exit::Ok)
}

//! `repro dag`: the graph of stages, a grid collapsed to one box with counts.

use super::context::Context;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::render::dag::{Box, Dag};

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
    let graph = &context.graph;
    let nodes: Vec<usize> = (0..graph.nodes.len()).collect();
    let mut planner = Planner::new(&context.root, graph, &context.store);
    planner.wanted = nodes.iter().copied().collect();
    // A missing input is the business of `plan`; the drawing does without the counts then.
    let plan = planner.plan(&nodes).unwrap_or_default();
    let mut done = vec![0; graph.stages.len()];
    for (at, judged) in &plan {
        done[graph.nodes[*at].stage] += usize::from(matches!(judged.standing, Standing::Cached | Standing::Restore(_)));
    }
    let boxes = graph
        .stages
        .iter()
        .enumerate()
        .map(|(index, stage)| Box {
            name: stage.name.clone(),
            kind: stage.kind.name().to_string(),
            nodes: stage.nodes.len(),
            done: done[index],
            upstream: stage.upstream.clone(),
        })
        .collect();
    let dag = Dag { boxes };
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

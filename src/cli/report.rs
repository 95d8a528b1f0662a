//! `repro report`, and what `repro run` does at its end: completes the report's page with the facts of the run.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::context::Context;
use super::facts::Facts;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::events::Summary;
use crate::engine::graph::{Node, Origin};
use crate::engine::store::Access;
use crate::engine::store::publish::folder;
use crate::render::report::{Content, Places, complete, page};

/// Write the report, with how every node stands.
///
/// `repro run` does so at its end. This command does it at any time, with whatever results there are.
#[derive(clap::Args)]
pub struct Args {
    #[command(flatten)]
    which: Which,
    /// Write the page here [default: `index.html` in the folder of the report's stage below `out/`]
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let node = report_node(&context)?;
    let content = content(&context, node)?;
    let facts = Facts::of(&context).json(&context);
    let whole = complete(&page(&content), &facts).expect("a page has a place for facts");
    let target = args.output.clone().unwrap_or_else(|| context.root.join(index(&context, node)));
    write(&target, &whole)
        .map_err(|source| CliError::Io { what: format!("`{}` cannot be written", target.display()), source })?;
    let shown = target.strip_prefix(&context.root).unwrap_or(&target).display().to_string();
    print(&if global.json { format!("{}\n", json!({"report": shown})) } else { format!("{shown}\n") });
    Ok(Exit::Ok)
}

/// The node that writes the report of this profile.
pub fn report_node(context: &Context) -> Result<&Node, CliError> {
    let graph = &context.graph;
    let stage = graph.stages.iter().find(|stage| stage.kind.name() == "report");
    stage.and_then(|stage| graph.nodes.get(stage.nodes.start)).ok_or_else(|| {
        CliError::Wrong(format!(
            "profile `{}` has no stage of kind `report`; add one to pipeline.yaml, as in docs/report.md",
            graph.profile
        ))
    })
}

fn index(context: &Context, node: &Node) -> String {
    format!("{}/index.html", folder(&context.graph.profile, &node.id))
}

/// Where the report's inputs lie now: in the project, or published below `out/`.
pub fn places(context: &Context, node: &Node) -> Places {
    let place = |name: &str| {
        let input = node.inputs.iter().find(|input| input.name == name)?;
        let path = match &input.origin {
            Origin::Path(path) => context.root.join(path),
            Origin::Nodes(list) => {
                let [from] = list.as_slice() else { return None };
                let upstream = &context.graph.nodes[from.node];
                let output = &upstream.outputs[from.output];
                let base = context.root.join(folder(&context.graph.profile, &upstream.id));
                if output.path == "." { base } else { base.join(&output.path) }
            }
        };
        path.exists().then_some(path)
    };
    Places { verdicts: place("verdicts"), figures: place("figures"), tables: place("tables"), deviations: place("deviations") }
}

/// What the report would say of the results there are now.
pub fn content(context: &Context, node: &Node) -> Result<Content, CliError> {
    let title = node.params.get("title").and_then(Value::as_str).unwrap_or_default();
    Content::read(title, &places(context, node)).map_err(CliError::failed)
}

/// Writes `index.html` beside the page that the report's node made, if the run changed anything or it is not there.
pub fn complete_after_run(context: &Context, summary: &Summary) {
    let Ok(node) = report_node(context) else { return };
    let index = context.root.join(index(context, node));
    let bare = index.with_file_name("page.html");
    let idle = summary.ran + summary.restored + summary.failed == 0;
    if !bare.is_file() || (idle && index.is_file()) {
        return;
    }
    let written = std::fs::read_to_string(&bare).and_then(|text| {
        let facts = Facts::of(context).json(context);
        let whole = complete(&text, &facts).ok_or_else(|| io::Error::other("page.html has no place for facts"))?;
        write(&index, &whole)
    });
    if let Err(error) = written {
        eprintln!("warning: `{}` could not be written: {error}; the results are not affected", index.display());
    }
}

/// Whether some profile has a page that was never completed, or whose completed page is gone.
pub fn incomplete(root: &Path) -> bool {
    let profiles = std::fs::read_dir(root.join("out")).into_iter().flatten().flatten();
    profiles
        .map(|profile| profile.path().join("report"))
        .any(|folder| folder.join("page.html").is_file() && !folder.join("index.html").is_file())
}

/// Under another name first: a reader never meets half a page.
fn write(target: &Path, text: &str) -> io::Result<()> {
    if let Some(parent) = target.parent() {
        std::fs::create_dir_all(parent)?;
    }
    let mut temporary = target.as_os_str().to_owned();
    temporary.push(format!(".{}.part", std::process::id()));
    let temporary = PathBuf::from(temporary);
    std::fs::write(&temporary, text).and_then(|()| std::fs::rename(&temporary, target)).inspect_err(|_| {
        let _ = std::fs::remove_file(&temporary);
    })
}

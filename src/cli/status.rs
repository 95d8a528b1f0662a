//! `repro status`: how every stage stands, in a line each.

use serde_json::json;

use super::context::Context;
use super::human;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::engine::target::{closure, select};
use crate::engine::why::Why;

/// Show how every stage stands.
#[derive(clap::Args)]
pub struct Args {
    /// Stages, nodes or patterns [default: all]
    targets: Vec<String>,
    #[command(flatten)]
    which: Which,
}

#[derive(Default)]
struct Row {
    name: String,
    done: usize,
    stale: usize,
    failed: usize,
    waiting: usize,
    seconds: f64,
    first_failure: Option<(String, String)>,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let graph = &context.graph;
    let nodes = closure(graph, &select(graph, &args.targets)?);
    let mut planner = Planner::new(&context.root, graph, &context.store);
    planner.wanted = nodes.iter().copied().collect();
    let plan = planner.plan(&nodes)?;
    let mut rows: Vec<Row> = graph.stages.iter().map(|stage| Row { name: stage.name.clone(), ..Row::default() }).collect();
    for (at, judged) in &plan {
        let row = &mut rows[graph.nodes[*at].stage];
        match &judged.standing {
            Standing::Cached | Standing::Restore(_) => {
                row.done += 1;
                let done = judged.key.as_ref().and_then(|key| context.store.journal.done(&key.digest));
                row.seconds += done.map_or(0.0, |done| done.seconds);
            }
            Standing::Run(Why::FailedBefore { what }) => {
                row.failed += 1;
                row.first_failure.get_or_insert_with(|| (graph.nodes[*at].id.clone(), what.clone()));
            }
            Standing::Run(_) => row.stale += 1,
            Standing::Waits(_) => row.waiting += 1,
        }
    }
    rows.retain(|row| row.done + row.stale + row.failed + row.waiting > 0);
    print(&if global.json { as_json(&graph.profile, &rows) } else { as_text(&graph.profile, &rows) });
    Ok(Exit::Ok)
}

fn as_json(profile: &str, rows: &[Row]) -> String {
    let stages: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({"stage": row.name, "done": row.done, "stale": row.stale, "failed": row.failed, "waiting": row.waiting,
                   "seconds": row.seconds})
        })
        .collect();
    format!("{}\n", serde_json::to_string_pretty(&json!({"profile": profile, "stages": stages})).expect("plain data"))
}

fn as_text(profile: &str, rows: &[Row]) -> String {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(0).max(5);
    let mut out = format!("{:width$}  {:>6} {:>6} {:>6} {:>6}  took\n", "stage", "done", "to run", "failed", "waits");
    for row in rows {
        let cell = |count: usize| if count == 0 { "·".to_string() } else { count.to_string() };
        out.push_str(&format!(
            "{:width$}  {:>6} {:>6} {:>6} {:>6}  {}\n",
            row.name,
            cell(row.done),
            cell(row.stale),
            cell(row.failed),
            cell(row.waiting),
            if row.done > 0 { human::duration(row.seconds) } else { String::new() }
        ));
    }
    for (node, what) in rows.iter().filter_map(|row| row.first_failure.as_ref()) {
        out.push_str(&format!("{node} failed: {what}; see `repro log {node}`\n"));
    }
    let done: usize = rows.iter().map(|row| row.done).sum();
    let total: usize = rows.iter().map(|row| row.done + row.stale + row.failed + row.waiting).sum();
    out.push_str(&format!("profile {profile}: {done} of {}\n", human::count(total, "node")));
    out
}

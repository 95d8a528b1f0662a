//! `repro plan`: what would run, why, and what waits for what. Runs nothing and writes nothing.

use std::collections::BTreeMap;

use serde_json::json;

use super::context::Context;
use super::cost::Costs;
use super::human;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::graph::Graph;
use crate::engine::plan::{Judged, Planner, Standing};
use crate::engine::store::Access;
use crate::engine::target::{closure, select};

/// Say what would run and why; exit code 3 if anything would.
#[derive(clap::Args)]
pub struct Args {
    /// Stages, nodes or patterns [default: all]
    targets: Vec<String>,
    #[command(flatten)]
    which: Which,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    show(global, &args.which, &args.targets, false)
}

/// The plan for some targets, shared with `run --dry-run`.
pub fn show(global: &Global, which: &Which, targets: &[String], force: bool) -> Result<Exit, CliError> {
    let context = Context::open(global, which, Access::Read)?;
    let targets = select(&context.graph, targets)?;
    let nodes = closure(&context.graph, &targets);
    let mut planner = Planner::new(&context.root, &context.graph, &context.store);
    planner.wanted = targets.iter().copied().collect();
    if force {
        planner.forced = planner.wanted.clone();
    }
    let plan = match planner.plan(&nodes) {
        Ok(plan) => plan,
        Err(error) => {
            // What it would cost depends on sizes only, and is worth knowing before its data are fetched.
            if !global.json {
                print(&Costs::of_this_machine().as_text(&context.graph, &nodes));
            }
            return Err(error.into());
        }
    };
    let remains = plan.iter().any(|(_, judged)| judged.standing != Standing::Cached);
    if global.json {
        print(&as_json(&context.graph, &plan, &Costs::of_this_machine()));
    } else {
        let costs = Costs::of_this_machine();
        print(&as_text(&context.graph, &plan));
        print(&costs.as_text(&context.graph, &to_run(&plan)));
    }
    Ok(if remains { Exit::Remains } else { Exit::Ok })
}

fn word(standing: &Standing) -> &'static str {
    match standing {
        Standing::Cached => "cached",
        Standing::Restore(_) => "restore",
        Standing::Run(_) => "will run",
        Standing::Waits(_) => "may run",
    }
}

fn detail(graph: &Graph, standing: &Standing) -> String {
    match standing {
        Standing::Cached => String::new(),
        Standing::Restore(why) => why.clone(),
        Standing::Run(why) => why.to_string(),
        Standing::Waits(on) => format!("waits on {}", graph.nodes[*on].id),
    }
}

/// The nodes that are not done.
fn to_run(plan: &[(usize, Judged)]) -> Vec<usize> {
    plan.iter()
        .filter(|(_, judged)| matches!(judged.standing, Standing::Run(_) | Standing::Waits(_)))
        .map(|(at, _)| *at)
        .collect()
}

fn as_json(graph: &Graph, plan: &[(usize, Judged)], costs: &Costs) -> String {
    let nodes: Vec<_> = plan
        .iter()
        .map(|(at, judged)| {
            let node = &graph.nodes[*at];
            json!({
                "node": node.id,
                "stage": graph.stages[node.stage].name,
                "standing": word(&judged.standing).replace(' ', "_"),
                "why": detail(graph, &judged.standing),
                "key": judged.key.as_ref().map(|key| key.digest.hex()),
                "cost": costs.node(graph, *at),
            })
        })
        .collect();
    let whole = json!({"stages": costs.stages(graph, &to_run(plan)), "basis": costs.basis()});
    format!(
        "{}\n",
        serde_json::to_string_pretty(&json!({"profile": graph.profile, "nodes": nodes, "cost": whole})).expect("plain data")
    )
}

/// Reasons shown for each stage and standing; a sweep of a thousand nodes does not need a thousand lines.
const MOST_LINES: usize = 6;

fn as_text(graph: &Graph, plan: &[(usize, Judged)]) -> String {
    let mut out = String::new();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for (index, stage) in graph.stages.iter().enumerate() {
        let of_stage: Vec<&(usize, Judged)> = plan.iter().filter(|(at, _)| graph.nodes[*at].stage == index).collect();
        for wanted in ["will run", "may run", "restore", "cached"] {
            let nodes: Vec<_> = of_stage.iter().filter(|(_, judged)| word(&judged.standing) == wanted).collect();
            if nodes.is_empty() {
                continue;
            }
            *counts.entry(wanted).or_default() += nodes.len();
            if wanted == "cached" {
                continue;
            }
            for (at, judged) in nodes.iter().take(MOST_LINES) {
                out.push_str(&format!("{wanted:<8}  {}: {}\n", graph.nodes[*at].id, detail(graph, &judged.standing)));
            }
            if nodes.len() > MOST_LINES {
                out.push_str(&format!("{wanted:<8}  {}/...: {} more\n", stage.name, nodes.len() - MOST_LINES));
            }
        }
    }
    let parts: Vec<String> = ["will run", "may run", "restore", "cached"]
        .iter()
        .filter_map(|word| counts.get(word).map(|count| format!("{count} {word}")))
        .collect();
    out.push_str(&format!("{} in profile {}: {}\n", human::count(plan.len(), "node"), graph.profile, parts.join(", ")));
    out
}

//! `repro accept`: takes a node's present outputs for its changed key. Recorded, with the differences it bridges.

use serde_json::json;

use super::context::Context;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::attempt::now_ms;
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::engine::store::journal::{Done, Head};
use crate::engine::store::{StoreError, hostname};
use crate::engine::target::{closure, select};
use crate::engine::why::differences;

/// Take a node's present outputs for its changed key, after a change known not to matter.
///
/// Nothing runs. The record says that it was accepted, by which differences and why; `repro show` prints it.
#[derive(clap::Args)]
pub struct Args {
    /// Stages, nodes or patterns
    #[arg(required = true)]
    targets: Vec<String>,
    #[command(flatten)]
    which: Which,
    /// Why the change does not matter; kept in the record
    #[arg(short, long, value_name = "TEXT")]
    reason: Option<String>,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Run)?;
    let (graph, store) = (&context.graph, &context.store);
    let targets = select(graph, &args.targets)?;
    let mut accepted = Vec::new();
    let mut refused = Vec::new();
    for at in targets {
        let node = &graph.nodes[at];
        // Planned anew for each: accepting one may settle what the next one reads.
        let planner = Planner::new(&context.root, graph, store);
        let plan = planner.plan(&closure(graph, &[at]))?;
        let (_, judged) = plan.last().expect("the node is part of its own closure");
        let key = match (&judged.standing, &judged.key) {
            (Standing::Run(_), Some(key)) => key,
            (Standing::Waits(on), _) => {
                refused.push(format!("{}: waits on {}; accept or run that first", node.id, graph.nodes[*on].id));
                continue;
            }
            _ => {
                refused.push(format!("{}: is up to date already", node.id));
                continue;
            }
        };
        let old = store.journal.last(&graph.profile, &node.id).and_then(|last| Some((last.key, store.journal.done(&last.key)?)));
        let Some((old_key, old)) = old else {
            refused.push(format!("{}: has no earlier result to accept; run it", node.id));
            continue;
        };
        if let Err(what) = store.holds(&old.outputs)? {
            refused.push(format!("{}: {what}; run it", node.id));
            continue;
        }
        let declared: Vec<(&str, &str)> = node.outputs.iter().map(|out| (out.name.as_str(), out.path.as_str())).collect();
        let stored: Vec<(&str, &str)> = old.outputs.iter().map(|out| (out.name.as_str(), out.path.as_str())).collect();
        if declared != stored {
            refused.push(format!("{}: its declared outputs changed; run it", node.id));
            continue;
        }
        let old_parts = store.journal.body_of(&old_key).unwrap_or_default();
        let bridged = differences(old_parts.split('\n').next().unwrap_or_default(), &key.parts);
        let provenance = json!({"host": hostname(), "repro": env!("CARGO_PKG_VERSION"),
            "accepted": {"from": old_key.hex(), "reason": args.reason, "differences": bridged}});
        let head = Head::Done(Done {
            key: key.digest,
            profile: graph.profile.clone(),
            node: node.id.clone(),
            at_ms: now_ms(),
            accepted_from: Some(old_key),
            ..(*old).clone()
        });
        let written = store.journal.append(&head, &format!("{}\n{provenance}", key.parts));
        written.map_err(|cause| StoreError::Write { path: store.folder.clone(), cause })?;
        accepted.push((node.id.clone(), bridged));
    }
    store.index.save();
    if global.json {
        let list: Vec<_> = accepted.iter().map(|(node, bridged)| json!({"node": node, "differences": bridged})).collect();
        print(&format!(
            "{}\n",
            serde_json::to_string_pretty(&json!({"accepted": list, "refused": refused})).expect("plain data")
        ));
    } else {
        let mut out = String::new();
        for (node, bridged) in &accepted {
            let parts: Vec<String> = bridged.iter().map(|part| format!("{} {} -> {}", part.part, part.old, part.new)).collect();
            out += &format!("{node}: accepted as it is, in spite of {}\n", parts.join("; "));
        }
        for line in &refused {
            out += &format!("{line}\n");
        }
        print(&out);
    }
    Ok(if accepted.is_empty() { Exit::Wrong } else { Exit::Ok })
}

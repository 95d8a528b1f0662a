//! `repro why`: the exact reason a node would run again, or the record that makes it unnecessary.

use serde_json::json;

use super::context::Context;
use super::human;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::key::Key;
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::engine::target::{closure, select_one};
use crate::engine::why::{Difference, code_listing, differences};

/// Say why a node would run again, or why it would not.
#[derive(clap::Args)]
pub struct Args {
    /// A node's id
    node: String,
    #[command(flatten)]
    which: Which,
    /// Show every part of the key that differs, not only the first
    #[arg(short, long)]
    all: bool,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let at = select_one(&context.graph, &args.node)?;
    let nodes = closure(&context.graph, &[at]);
    let mut planner = Planner::new(&context.root, &context.graph, &context.store);
    planner.wanted.insert(at);
    let plan = planner.plan(&nodes)?;
    let (_, judged) = plan.last().expect("the node is part of its own closure");
    let node = &context.graph.nodes[at];
    let parts = judged.key.as_ref().map(|key| changed_parts(&context, at, key)).unwrap_or_default();
    if global.json {
        let standing = match &judged.standing {
            Standing::Cached => json!({"standing": "cached"}),
            Standing::Restore(why) => json!({"standing": "restore", "why": why}),
            Standing::Run(why) => json!({"standing": "will_run", "why": why}),
            Standing::Waits(on) => json!({"standing": "may_run", "waits_on": context.graph.nodes[*on].id}),
        };
        let key = judged.key.as_ref().map(|key| key.digest.hex());
        let all = json!({"node": node.id, "key": key, "now": standing, "differences": parts});
        print(&format!("{}\n", serde_json::to_string_pretty(&all).expect("plain data")));
        return Ok(Exit::Ok);
    }
    let mut out = match &judged.standing {
        Standing::Cached => {
            let key = judged.key.as_ref().expect("a cached node has a key");
            let done = context.store.journal.done(&key.digest).expect("a cached node has a record");
            let mut text = format!("{}: cached, key {}\n", node.id, key.digest.short());
            text += &format!("  made by {} in profile {}, {}\n", done.node, done.profile, human::moment(done.at_ms));
            if let Some(from) = done.accepted_from {
                text += &format!("  accepted by hand from key {}\n", from.short());
            }
            text
        }
        Standing::Restore(why) => format!("{}: to be restored from the store, {why}\n", node.id),
        Standing::Run(why) => format!("{}: will run, {why}\n", node.id),
        Standing::Waits(on) => {
            let on = &context.graph.nodes[*on].id;
            format!("{}: may run, waits on {on}; see `repro why {on}`\n", node.id)
        }
    };
    let shown = if args.all { parts.len() } else { 1 };
    for part in parts.iter().take(shown) {
        out += &format!("  {}\n    was {}\n    is  {}\n", part.part, part.old, part.new);
    }
    if parts.len() > shown {
        out += &format!("  and {} more; `--all` shows them\n", parts.len() - shown);
    }
    print(&out);
    Ok(Exit::Ok)
}

/// What differs from the last time this node ran, code by its files.
fn changed_parts(context: &Context, at: usize, key: &Key) -> Vec<Difference> {
    let journal = &context.store.journal;
    let node = &context.graph.nodes[at];
    let Some(last) = journal.last(&context.graph.profile, &node.id).filter(|last| last.key != key.digest) else {
        return Vec::new();
    };
    let old = last.body.map(|body| journal.body(&body)).unwrap_or_default();
    let old = old.split('\n').next().unwrap_or_default();
    let mut parts = Vec::new();
    for part in differences(old, &key.parts) {
        let listing = (part.part == "code")
            .then(|| serde_json::from_str::<serde_json::Value>(old).ok())
            .flatten()
            .and_then(|old| journal.code(old.get("code")?.as_str()?));
        match listing {
            Some(listing) => parts.extend(differences(&listing, &code_listing(context.graph.stages[node.stage].kind.code()))),
            None => parts.push(part),
        }
    }
    parts
}

//! `repro show`: a node's provenance.

use serde_json::{Value, json};

use super::context::Context;
use super::human;
use super::{CliError, Exit, Global, Which, curve, print};
use crate::engine::plan::Planner;
use crate::engine::store::Access;
use crate::engine::store::publish::folder;
use crate::engine::target::{closure, select_one};

/// Show where a node's result comes from: key, inputs, outputs, time, machine.
#[derive(clap::Args)]
pub struct Args {
    /// A node's id
    node: String,
    #[command(flatten)]
    which: Which,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let at = select_one(&context.graph, &args.node)?;
    let planner = Planner::new(&context.root, &context.graph, &context.store);
    let plan = planner.plan(&closure(&context.graph, &[at]))?;
    let (_, judged) = plan.last().expect("the node is part of its own closure");
    let node = &context.graph.nodes[at];
    let journal = &context.store.journal;
    let current = judged.key.as_ref().map(|key| key.digest);
    // The record of the present key, or else the last one there is, marked as stale.
    let last = journal.last(&context.graph.profile, &node.id).filter(|last| last.failed.is_none()).map(|last| last.key);
    let Some(done) = current.and_then(|key| journal.done(&key)).or_else(|| last.and_then(|key| journal.done(&key))) else {
        return Err(CliError::Wrong(format!(
            "`{}` is not done in profile `{}`; `repro run {}` makes it",
            node.id, context.graph.profile, node.id
        )));
    };
    let stale = current != Some(done.key);
    let body = journal.body_of(&done.key).unwrap_or_default();
    let mut lines = body.split('\n');
    let mut parse = || lines.next().and_then(|line| serde_json::from_str::<Value>(line).ok()).unwrap_or(Value::Null);
    let (parts, provenance) = (parse(), parse());
    if global.json {
        let all = json!({"node": node.id, "profile": context.graph.profile, "stale": stale, "record": done.as_ref(),
                         "key_parts": parts, "provenance": provenance});
        print(&format!("{}\n", serde_json::to_string_pretty(&all).expect("plain data")));
        return Ok(Exit::Ok);
    }
    let mut out = format!("{}{}\n", node.id, if stale { " (stale: this is of an earlier key)" } else { "" });
    out += &format!("  key      {}\n", done.key.hex());
    out += &format!(
        "  made     {} by {} in profile {}, took {}\n",
        human::moment(done.at_ms),
        done.node,
        done.profile,
        human::duration(done.seconds)
    );
    if let Some(from) = done.accepted_from {
        out += &format!(
            "  accepted by hand from key {}: {}\n",
            from.short(),
            provenance["accepted"]["reason"].as_str().unwrap_or("no reason given")
        );
    }
    for field in ["host", "repro", "rustc", "target", "threads", "attempt"] {
        if let Some(value) = provenance.get(field).filter(|value| !value.is_null()) {
            out += &format!("  {field:<8} {}\n", value.as_str().map_or_else(|| value.to_string(), str::to_string));
        }
    }
    for (part, title) in [("kind", "kind"), ("code", "code"), ("seed", "seed"), ("numerics", "numerics")] {
        if let Some(value) = parts.get(part).filter(|value| !value.is_null()) {
            out += &format!("  {title:<8} {}\n", value.as_str().map_or_else(|| value.to_string(), str::to_string));
        }
    }
    out += &format!("  params   {}\n", parts.get("params").unwrap_or(&Value::Null));
    for (name, mounts) in parts.get("inputs").and_then(Value::as_object).into_iter().flatten() {
        for (mount, digest) in mounts.as_object().into_iter().flatten() {
            let digest = digest.as_str().unwrap_or_default();
            out += &format!("  input    {name}: {mount} {}\n", digest.get(..12).unwrap_or(digest));
        }
    }
    for stored in &done.outputs {
        let size: u64 = stored.files.iter().map(|item| item.size).sum();
        let place = folder(&context.graph.profile, &node.id);
        out += &format!("  output   {}: {place}/{} {} {}", stored.name, stored.path, stored.digest.short(), human::bytes(size));
        out += &if stored.directory { format!(" in {}\n", human::count(stored.files.len(), "file")) } else { "\n".into() };
    }
    if let Some(item) = done.outputs.iter().find(|stored| stored.path == curve::METRICS).and_then(|stored| stored.files.first()) {
        out += &curve::line(&context.store.objects.path(item), 40).map(|line| format!("  loss     {line}\n")).unwrap_or_default();
    }
    print(&out);
    Ok(Exit::Ok)
}

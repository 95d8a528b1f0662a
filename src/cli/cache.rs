//! `repro gc` and `repro cache`: the store, looked after.

use std::collections::HashSet;

use serde_json::json;

use super::context::{Context, open_store, root};
use super::human;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::config::Project;
use crate::engine::plan::Planner;
use crate::engine::store::{Access, StoreError, gc};

/// Free what no current result needs.
///
/// Kept: what the nodes of every profile stand at now, and every node's last result. Everything else goes: older results,
/// scratch of unfinished nodes, quarantine, what killed runs left behind.
#[derive(clap::Args)]
pub struct GcArgs {
    /// Say what would go, and leave it
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// Keep every finished result, however old; only what has no record goes
    #[arg(long)]
    keep_all: bool,
}

#[derive(clap::Subcommand)]
pub enum CacheCommand {
    /// Check every object by its bytes; damaged ones go to quarantine and are made again by the next run
    Verify,
    /// Say where the store is and what it holds
    Info,
}

pub fn gc(global: &Global, args: &GcArgs) -> Result<Exit, CliError> {
    let root = root(global)?;
    let project = Project::load(&root)?;
    let access = if args.dry_run { Access::Read } else { Access::Alone };
    let store = open_store(global, &root, access)?;
    let mut keep: HashSet<_> = store.journal.current_keys().into_iter().map(|(_, _, key)| key).collect();
    if args.keep_all {
        keep.extend(store.journal.all_done().iter().map(|done| done.key));
    }
    drop(store);
    // What every profile stands at now, even if it was last made under another name.
    for profile in project.profiles() {
        let which = Which { profile: Some(profile.to_string()), ..Which::default() };
        let context = Context::open(global, &which, Access::Read)?;
        let nodes: Vec<usize> = (0..context.graph.nodes.len()).collect();
        let planner = Planner::new(&context.root, &context.graph, &context.store);
        // A profile whose inputs are not there now has nothing more to say.
        if let Ok(plan) = planner.plan(&nodes) {
            keep.extend(plan.into_iter().filter_map(|(_, judged)| judged.key.map(|key| key.digest)));
        }
    }
    let store = open_store(global, &root, access)?;
    let write = |cause| StoreError::Write { path: store.folder.clone(), cause };
    let freed = gc::collect(&store, &keep, args.dry_run).map_err(write)?;
    if !args.dry_run {
        gc::sweep(&store);
    }
    if global.json {
        print(&format!("{}\n", serde_json::to_string_pretty(&freed).expect("plain data")));
    } else {
        print(&format!(
            "{} {} ({}) and {}; {} kept\n",
            if args.dry_run { "would free" } else { "freed" },
            human::count(freed.objects, "object"),
            human::bytes(freed.bytes),
            human::count(freed.records, "record"),
            human::count(freed.kept_objects, "object"),
        ));
    }
    Ok(Exit::Ok)
}

pub fn run(global: &Global, command: &CacheCommand) -> Result<Exit, CliError> {
    let root = root(global)?;
    match command {
        CacheCommand::Verify => verify(global, &root),
        CacheCommand::Info => info(global, &root),
    }
}

fn verify(global: &Global, root: &std::path::Path) -> Result<Exit, CliError> {
    let store = open_store(global, root, Access::Run)?;
    let verified = gc::verify(&store).map_err(|cause| StoreError::Read { path: store.folder.clone(), cause })?;
    let damaged_records = store.journal.damaged();
    let bad = verified.missing.len() + verified.damaged.len();
    if global.json {
        let all = json!({"good": verified.good, "bytes": verified.bytes, "missing": verified.missing,
                         "damaged": verified.damaged, "damaged_records": damaged_records});
        print(&format!("{}\n", serde_json::to_string_pretty(&all).expect("plain data")));
    } else {
        let mut out = format!("{} good ({})\n", human::count(verified.good, "object"), human::bytes(verified.bytes));
        for name in &verified.missing {
            out += &format!("missing  {name}\n");
        }
        for name in &verified.damaged {
            out += &format!("damaged  {name}, moved to quarantine\n");
        }
        if damaged_records > 0 {
            out += &format!("{} in the journal could not be read\n", human::count(damaged_records, "record"));
        }
        if bad > 0 {
            out += "the next run makes them again\n";
        }
        print(&out);
    }
    Ok(if bad > 0 { Exit::Failed } else { Exit::Ok })
}

fn info(global: &Global, root: &std::path::Path) -> Result<Exit, CliError> {
    let store = open_store(global, root, Access::Read)?;
    let objects = store.objects.all().unwrap_or_default();
    let bytes: u64 = objects.iter().map(|(_, size)| size).sum();
    let records = store.journal.all_done().len();
    if global.json {
        let all = json!({"store": store.folder, "objects": objects.len(), "bytes": bytes, "results": records});
        print(&format!("{}\n", serde_json::to_string_pretty(&all).expect("plain data")));
    } else {
        let (objects, records) = (human::count(objects.len(), "object"), human::count(records, "result"));
        print(&format!("{}: {records}, {objects}, {}\n", store.folder.display(), human::bytes(bytes)));
    }
    Ok(Exit::Ok)
}

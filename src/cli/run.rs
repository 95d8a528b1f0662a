//! `repro run`: brings the targets up to date.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::context::{Context, root, store_folder};
use super::progress::{Human, Lines, summary_line};
use super::{CliError, Exit, Global, Which, plan, report};
use crate::engine::events::{Sink, Summary};
use crate::engine::plan::Planner;
use crate::engine::resources::{Resources, cores, parse_bytes};
use crate::engine::run::{Interrupts, Options, run as run_nodes};
use crate::engine::settled::{Answer, Question};
use crate::engine::store::{Access, gc};
use crate::engine::target::{closure, select};
use crate::engine::trail::Trailing;

/// Run what is not done yet.
///
/// A target is a stage (`lr-transfer`), a node (`lr-transfer/L12-N8-linear-lr2e-3`), a pattern (`'lr-transfer/*-N8-*'`) or
/// `all`. What the targets read is brought up to date first. Killed or interrupted, the same command goes on.
#[derive(clap::Args)]
pub struct Args {
    /// Stages, nodes or patterns [default: all]
    targets: Vec<String>,
    #[command(flatten)]
    which: Which,
    /// Run the named targets even if they are cached; what they read stays cached
    #[arg(short, long)]
    force: bool,
    /// Say what would run and why, and run nothing; exit code 3 if work remains
    #[arg(short = 'n', long)]
    dry_run: bool,
    /// The most nodes at once [default: the number of cores]
    #[arg(short, long, value_name = "N")]
    jobs: Option<usize>,
    /// CPU threads to hand out in all [default: the number of cores]
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
    /// Memory to hand out in all, such as `16GiB` [default: what is available]
    #[arg(long, value_name = "SIZE")]
    memory: Option<String>,
    /// After a failure, go on with all that does not depend on it
    #[arg(short, long)]
    keep_going: bool,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let begin = std::time::Instant::now();
    if args.dry_run {
        return plan::show(global, &args.which, &args.targets, args.force);
    }
    let question = question(global, args)?;
    if let Some(answer) =
        question.as_ref().and_then(Question::answer).filter(|_| !root(global).is_ok_and(|root| report::incomplete(&root)))
    {
        let (nodes, saved_seconds) = (answer.nodes as usize, answer.saved_seconds);
        let summary = Summary { cached: nodes, seconds: begin.elapsed().as_secs_f64(), saved_seconds, ..Summary::default() };
        eprintln!("{}", summary_line(&summary, nodes));
        return Ok(Exit::Ok);
    }
    // The process ends right after this: taking the graph and the journal apart again would only cost time.
    let context = std::mem::ManuallyDrop::new(Context::open(global, &args.which, Access::Run)?);
    let targets = select(&context.graph, &args.targets)?;
    let nodes = closure(&context.graph, &targets);
    let mut planner = Planner::new(&context.root, &context.graph, &context.store);
    planner.wanted = targets.iter().copied().collect();
    if args.force {
        planner.forced = planner.wanted.clone();
    }
    let options = options(args)?;
    gc::sweep(&context.store);
    let interrupts = Arc::new(Interrupts::default());
    watch_signals(&interrupts);
    let human;
    let lines;
    let sink: &dyn Sink = if global.json {
        lines = Lines;
        &lines
    } else {
        human = Human::new(&context.graph, &context.store, &nodes, options.jobs);
        &human
    };
    let trailing = Trailing::new(sink, &context.store.folder, &context.graph.profile, options.jobs);
    let summary = run_nodes(&planner, &nodes, &options, &interrupts, &trailing)?;
    report::complete_after_run(&context, &summary);
    if let Some(question) = question.filter(|_| summary.cached == nodes.len()) {
        let answer = Answer { nodes: nodes.len() as u64, saved_seconds: summary.saved_seconds };
        question.remember(&context.project, &planner, &nodes, answer);
    }
    Ok(match (summary.interrupted, summary.failed) {
        (true, _) => Exit::Interrupted,
        (false, 0) => Exit::Ok,
        (false, _) => Exit::Failed,
    })
}

/// Whether the same was asked before and nothing changed since. Not for `--force`, nor for programs, which want every event.
fn question(global: &Global, args: &Args) -> Result<Option<Question>, CliError> {
    if args.force || global.json {
        return Ok(None);
    }
    let root = root(global)?;
    let mut words = vec![format!("{:?}", args.which.profile)];
    words.extend(args.which.sets.iter().map(|set| format!("set {set}")));
    words.extend(args.targets.iter().map(|target| format!("target {target}")));
    Ok(Question::new(&root, &store_folder(global, &root), &words))
}

fn options(args: &Args) -> Result<Options, CliError> {
    let mut limits = Resources::of_machine();
    if let Some(threads) = args.threads {
        limits.threads = threads.max(1);
    }
    if let Some(memory) = &args.memory {
        limits.memory_bytes =
            parse_bytes(&memory.as_str().into()).map_err(|message| CliError::Wrong(format!("`--memory`: {message}")))?;
    }
    if args.jobs == Some(0) {
        return Err(CliError::Wrong("`--jobs 0` would never run anything; give 1 or more".into()));
    }
    // `-j 8` on two cores means that eight nodes may run at once, so it hands out as many threads.
    let jobs = args.jobs.unwrap_or_else(cores);
    if args.threads.is_none() {
        limits.threads = limits.threads.max(jobs);
    }
    Ok(Options { jobs, keep_going: args.keep_going, limits })
}

fn watch_signals(interrupts: &Arc<Interrupts>) {
    use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
    let interrupts = interrupts.clone();
    if let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM, SIGHUP]) {
        std::thread::spawn(move || {
            for _ in signals.forever() {
                interrupts.0.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

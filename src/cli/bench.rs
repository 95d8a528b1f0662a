//! `repro bench`: how fast this machine trains, and where a step's time goes. Leaves the speed for `repro plan`.

use super::context::Context;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::store::Access;
use crate::engine::target::select_one;
use crate::paper::bench::{self, Case, Report, Wish};
use crate::paper::config::RunConfig;
use crate::paper::speed::{Measurement, Speed};
use crate::stage::train;

/// Measure training: tokens/s, GFLOP/s, the part of this machine's own matrix-product peak, memory.
///
/// Without a case or a node, all three cases one after another. `repro plan` uses what was measured.
#[derive(clap::Args)]
pub struct Args {
    /// A training node of the pipeline, such as `lr-transfer/N4-linear-lr1e-3-s0`; random tokens take the place of its data
    #[arg(conflicts_with = "case")]
    node: Option<String>,
    /// The sizes of docs/benchmarks.md
    #[arg(long, value_name = "small|medium|large", value_parser = parse_case)]
    case: Option<Case>,
    /// Threads [default: one per core]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1024))]
    threads: Option<u16>,
    /// Steps to time, after two that are not [default: a few seconds of them]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    steps: Option<u32>,
    /// Also show where a step's time goes
    #[arg(long)]
    breakdown: bool,
    /// Do not keep the speed for `repro plan`
    #[arg(long)]
    forget: bool,
    #[command(flatten)]
    which: Which,
}

fn parse_case(text: &str) -> Result<Case, String> {
    Case::ALL.into_iter().find(|case| case.name() == text).ok_or_else(|| "choose `small`, `medium` or `large`".to_owned())
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let wish =
        Wish { threads: args.threads.map(usize::from), steps: args.steps.map(|steps| steps as usize), breakdown: args.breakdown };
    let runs: Vec<(String, RunConfig)> = match (&args.node, args.case) {
        (Some(node), _) => vec![of_node(global, args, node)?],
        (None, Some(case)) => vec![(case.name().to_owned(), case.config())],
        (None, None) => Case::ALL.into_iter().map(|case| (case.name().to_owned(), case.config())).collect(),
    };
    for (name, config) in runs {
        let width = config.model.width;
        let report = bench::measure(name, config, &wish).map_err(CliError::failed)?;
        if !args.forget {
            let new = Measurement { width, threads: report.threads, gflops: report.gflops };
            let io = |source| CliError::Io { what: "the measured speed cannot be kept; pass `--forget`".into(), source };
            Speed::load().remember(new).map_err(io)?;
        }
        if global.json {
            print(&format!("{}\n", serde_json::to_string(&report).expect("plain numbers and names")));
        } else {
            print(&as_text(&report));
        }
    }
    Ok(Exit::Ok)
}

fn of_node(global: &Global, args: &Args, target: &str) -> Result<(String, RunConfig), CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let node = &context.graph.nodes[select_one(&context.graph, target)?];
    let stage = &context.graph.stages[node.stage];
    let config = train::config_of(&node.params).ok_or_else(|| {
        CliError::Wrong(format!("`{}` does not train (stage `{}`); name a node of a stage of kind `train`", node.id, stage.name))
    })?;
    Ok((node.id.clone(), config))
}

fn as_text(report: &Report) -> String {
    let mut out = format!(
        "{}: {:.0} tokens/s on {} ({}), {:.1} ms a step of {} tokens (median of {}, {:.1} to {:.1})\n",
        report.name,
        report.tokens_per_s,
        super::human::count(report.threads, "thread"),
        report.simd,
        report.step_s * 1e3,
        report.tokens_per_step,
        report.steps,
        report.fastest_step_s * 1e3,
        report.slowest_step_s * 1e3,
    );
    out.push_str(&format!(
        "  {:.1} GFLOP/s, {:.0}% of the {:.1} of a plain matrix product here{}; {:.0} MB at the peak\n",
        report.gflops,
        report.fraction_of_peak * 100.0,
        report.gemm_peak_gflops,
        report.amx_peak_gflops.map(|peak| format!(" ({peak:.1} on AMX tiles)")).unwrap_or_default(),
        report.peak_rss_mb,
    ));
    for share in report.breakdown.iter().flatten() {
        out.push_str(&format!("  {:<9}  {:<34} {:>9.2} ms  {:>5.1}%\n", share.phase, share.part, share.ms, share.share * 100.0));
    }
    out
}

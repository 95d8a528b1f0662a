//! `repro status`: how every stage stands, in a line each; what runs now; and, for named targets, each node with its loss.

use serde_json::json;

use super::context::Context;
use super::curve;
use super::facts::{Facts, State};
use super::human;
use super::style::{Style, Tone, bar, fit, sparkline};
use super::{CliError, Exit, Global, Which, print};
use crate::engine::attempt::now_ms;
use crate::engine::plan::{Planner, Standing};
use crate::engine::store::Access;
use crate::engine::store::publish::folder;
use crate::engine::target::{closure, select};

/// Show how every stage stands.
#[derive(clap::Args)]
pub struct Args {
    /// Stages, nodes or patterns; named ones are listed node by node [default: all, by stage]
    targets: Vec<String>,
    #[command(flatten)]
    which: Which,
}

/// More nodes than this are counted, not listed.
const LISTED: usize = 60;
const WIDTH: usize = 80;

#[derive(Default)]
struct Row {
    name: String,
    done: usize,
    stale: usize,
    failed: usize,
    waiting: usize,
    running: usize,
    seconds: f64,
    first_failure: Option<(String, String)>,
}

impl Row {
    fn nodes(&self) -> usize {
        self.done + self.stale + self.failed + self.waiting + self.running
    }
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let graph = &context.graph;
    let chosen = select(graph, &args.targets)?;
    let nodes = closure(graph, &chosen);
    let mut planner = Planner::new(&context.root, graph, &context.store);
    planner.wanted = nodes.iter().copied().collect();
    // A missing input among these is an error here; elsewhere in the graph it is not our question.
    planner.read_inputs(&nodes)?;
    let facts = Facts::of_nodes(&context, &planner, &nodes);
    let mut rows: Vec<Row> = graph.stages.iter().map(|stage| Row { name: stage.name.clone(), ..Row::default() }).collect();
    for at in &nodes {
        let row = &mut rows[graph.nodes[*at].stage];
        match &facts.states[*at] {
            State::Ran | State::Cached => {
                row.done += 1;
                row.seconds += facts.seconds(&context, *at).unwrap_or(0.0);
            }
            State::Running => row.running += 1,
            State::Failed(what) => {
                row.failed += 1;
                row.first_failure.get_or_insert_with(|| (graph.nodes[*at].id.clone(), what.clone()));
            }
            State::Stale => row.stale += 1,
            // Blocked by a failure: whether its key is known does not matter to those who wait.
            State::Blocked if matches!(facts.standing(*at), Some(Standing::Run(_))) => row.stale += 1,
            State::Blocked | State::Waits => row.waiting += 1,
        }
    }
    rows.retain(|row| row.nodes() > 0);
    if global.json {
        print(&as_json(&graph.profile, &rows));
        return Ok(Exit::Ok);
    }
    let style = Style::of_stdout();
    let mut out = as_text(&rows, style);
    if !args.targets.is_empty() && !args.targets.iter().any(|target| target == "all") {
        out += &listed(&context, &facts, &chosen, style);
    }
    out += &running(&facts, style);
    for (node, what) in rows.iter().filter_map(|row| row.first_failure.as_ref()) {
        out += &format!("{}; see `repro log {node}`\n", style.paint(Tone::Bad, &format!("{node} failed: {what}")));
    }
    if let Some(eta) = facts.eta(&context) {
        out += &format!("about {} to go\n", human::duration(eta));
    }
    let done: usize = rows.iter().map(|row| row.done).sum();
    let total: usize = rows.iter().map(Row::nodes).sum();
    out += &format!("profile {}: {done} of {}\n", graph.profile, human::count(total, "node"));
    print(&out);
    Ok(Exit::Ok)
}

fn as_json(profile: &str, rows: &[Row]) -> String {
    let stages: Vec<_> = rows
        .iter()
        .map(|row| {
            json!({"stage": row.name, "done": row.done, "stale": row.stale, "failed": row.failed, "waiting": row.waiting,
                   "running": row.running, "seconds": row.seconds})
        })
        .collect();
    format!("{}\n", serde_json::to_string_pretty(&json!({"profile": profile, "stages": stages})).expect("plain data"))
}

/// A bar for each stage: `█` done, `▶` running, `✗` failed, `·` to come.
fn as_text(rows: &[Row], style: Style) -> String {
    let width = rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0).clamp(5, 23);
    let head = format!("{:width$}  {:14} {:>9} {:>6} {:>6} {:>6}  took", "stage", "", "done", "to run", "waits", "failed");
    let mut out = format!("{}\n", style.paint(Tone::Quiet, &head));
    for row in rows {
        let cell = |count: usize| if count == 0 { "·".to_string() } else { count.to_string() };
        let drawn = bar(&[(row.done, '█'), (row.failed, '✗'), (row.running, '▶')], row.nodes(), 14);
        let tone = match row {
            row if row.failed > 0 => Tone::Bad,
            row if row.running > 0 => Tone::Busy,
            row if row.done == row.nodes() => Tone::Good,
            _ => Tone::Open,
        };
        let failed = format!("{:>6}", cell(row.failed));
        let line = format!(
            "{:width$}  {} {:>9} {:>6} {:>6} {}  {}",
            fit(&row.name, width),
            style.paint(tone, &drawn),
            format!("{}/{}", row.done, row.nodes()),
            cell(row.stale),
            cell(row.waiting),
            if row.failed > 0 { style.paint(Tone::Bad, &failed) } else { failed },
            if row.done > 0 { human::duration(row.seconds) } else { String::new() }
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Each chosen node in a line: how it stands, what it took, and the loss of a training run as a curve.
fn listed(context: &Context, facts: &Facts, chosen: &[usize], style: Style) -> String {
    let graph = &context.graph;
    let width = chosen.iter().take(LISTED).map(|at| graph.nodes[*at].id.chars().count()).max().unwrap_or(0).min(34);
    let mut out = String::from("\n");
    for at in chosen.iter().take(LISTED) {
        let (node, state) = (&graph.nodes[*at], &facts.states[*at]);
        let (sign, tone) = match state {
            State::Ran | State::Cached => ("✓", Tone::Good),
            State::Running => ("▶", Tone::Busy),
            State::Failed(_) => ("✗", Tone::Bad),
            State::Blocked | State::Stale | State::Waits => ("·", Tone::Quiet),
        };
        let took = facts.seconds(context, *at).filter(|_| state.done()).map(human::duration).unwrap_or_default();
        let metrics = context.root.join(folder(&graph.profile, &node.id)).join(curve::METRICS);
        let told = facts.trail.as_ref().and_then(|trail| trail.running.get(&node.id)).map(|run| run.losses.clone());
        let losses = if state.done() { curve::losses(&metrics) } else { told.unwrap_or_default() };
        let last = losses.last().map(|loss| format!("loss {loss:.3}")).unwrap_or_default();
        let word = if state.done() {
            "done"
        } else if *state == State::Stale {
            "to run"
        } else {
            state.word()
        };
        let line = format!(
            "{} {:width$} {word:<8}{took:>10}  {last:<10} {}",
            style.paint(tone, sign),
            fit(&node.id, width),
            sparkline(&losses, WIDTH.saturating_sub(width + 34))
        );
        out.push_str(line.trim_end());
        out.push('\n');
    }
    if chosen.len() > LISTED {
        out += &format!("  and {} more\n", chosen.len() - LISTED);
    }
    out.push('\n');
    out
}

/// What other processes run now, each with its progress and the loss so far.
fn running(facts: &Facts, style: Style) -> String {
    let mut out = String::new();
    for (node, run) in facts.trail.iter().filter(|trail| trail.lives).flat_map(|trail| &trail.running) {
        let progress = &run.progress;
        let steps = if progress.total > 0 { format!("{}/{}", progress.done, progress.total) } else { String::new() };
        let took = human::duration(now_ms().saturating_sub(run.since_ms) as f64 / 1e3);
        let line = format!(
            "▶ {:<34} {steps:>11} {:<12} {took:>8} {}",
            fit(node, 34),
            fit(&progress.note, 12),
            sparkline(&run.losses, 9)
        );
        out += &format!("{}\n", style.paint(Tone::Busy, line.trim_end()));
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_fits_in_eighty_columns() {
        let row = Row {
            name: "a-stage-with-quite-a-long-name".into(),
            done: 1900,
            stale: 98,
            failed: 1,
            running: 1,
            seconds: 7860.0,
            ..Row::default()
        };
        let text = as_text(&[row], Style::plain());
        assert_eq!(
            text,
            "stage                                        done to run  waits failed  took\n\
             a-stage-with-quite-a-l…  █████████████✗ 1900/2000     98      ·      1  2 h 11 m\n"
        );
        assert!(text.lines().all(|line| line.chars().count() <= WIDTH), "{text}");
    }
}

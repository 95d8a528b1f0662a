//! Shows a run: live lines on a terminal, plain lines in a log, JSON lines for programs.

use std::collections::{BTreeMap, HashMap};
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use super::human;
use super::print;
use crate::engine::events::{Event, Progress, Sink, Summary};
use crate::engine::graph::Graph;
use crate::engine::store::Store;

/// Every event as a line of JSON on standard output.
pub struct Lines;

impl Sink for Lines {
    fn event(&self, event: &Event) {
        print(&format!("{}\n", serde_json::to_string(event).expect("an event is plain data")));
    }
}

/// For people. Nothing is drawn before something runs, so a run with nothing to do says one line.
pub struct Human {
    state: Mutex<State>,
}

struct State {
    /// Live lines, if standard error is a terminal.
    live: Option<Live>,
    stages: BTreeMap<String, Tally>,
    order: Vec<String>,
    jobs: usize,
    total: usize,
    finished: usize,
    /// What each running node last said, for the lines of its stage.
    notes: BTreeMap<String, (String, Progress, Instant)>,
}

struct Live {
    multi: MultiProgress,
    bars: HashMap<String, ProgressBar>,
}

#[derive(Default)]
struct Tally {
    nodes: usize,
    cached: usize,
    done: usize,
    failed: usize,
    blocked: usize,
    running: usize,
    /// Seconds that nodes of this stage took, in this run and before.
    measured: (f64, usize),
}

impl Tally {
    fn finished(&self) -> usize {
        self.cached + self.done + self.failed + self.blocked
    }
    fn mean_seconds(&self) -> Option<f64> {
        (self.measured.1 > 0).then(|| self.measured.0 / self.measured.1 as f64)
    }
    fn line(&self) -> String {
        let mut parts = Vec::new();
        for (count, word) in [
            (self.running, "running"),
            (self.done, "done"),
            (self.cached, "cached"),
            (self.failed, "failed"),
            (self.blocked, "blocked"),
        ] {
            if count > 0 {
                parts.push(format!("{count} {word}"));
            }
        }
        parts.join(", ")
    }
}

impl Human {
    pub fn new(graph: &Graph, store: &Store, nodes: &[usize], jobs: usize) -> Human {
        let mut stages: BTreeMap<String, Tally> = BTreeMap::new();
        let mut order: Vec<String> = Vec::new();
        for at in nodes {
            let name = &graph.stages[graph.nodes[*at].stage].name;
            if order.last() != Some(name) {
                order.push(name.clone());
                stages.insert(name.clone(), Tally::default());
            }
            stages.get_mut(name).expect("inserted above").nodes += 1;
        }
        let live = (std::io::stderr().is_terminal() && std::env::var_os("TERM").is_none_or(|term| term != "dumb"))
            .then(|| Live { multi: MultiProgress::new(), bars: HashMap::new() });
        if live.is_some() {
            for done in store.journal.all_done() {
                let stage = done.node.split('/').next().unwrap_or_default();
                if let Some(tally) = stages.get_mut(stage).filter(|_| done.profile == graph.profile) {
                    tally.measured.0 += done.seconds;
                    tally.measured.1 += 1;
                }
            }
        }
        let state = State { live, stages, order, jobs, total: nodes.len(), finished: 0, notes: BTreeMap::new() };
        Human { state: Mutex::new(state) }
    }
}

impl Sink for Human {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock().expect("no thread panics while it holds the display");
        state.event(event);
    }
}

impl State {
    fn event(&mut self, event: &Event) {
        match event {
            Event::RunStarted { .. } | Event::NodeWorking { .. } => {}
            Event::NodeCached { stage, .. } => {
                self.tally(stage).cached += 1;
                self.finished += 1;
                self.draw(stage, false);
            }
            Event::NodeRestored { node, stage, why, .. } => {
                self.tally(stage).cached += 1;
                self.finished += 1;
                self.say(node, &format!("restored, {why}"));
                self.draw(stage, false);
            }
            Event::NodeStarted { node, stage, why, attempt, .. } => {
                self.tally(stage).running += 1;
                let again = if *attempt > 1 { format!(" (attempt {attempt})") } else { String::new() };
                self.say(node, &format!("running, {why}{again}"));
                self.notes.insert(node.to_string(), (stage.to_string(), Progress::default(), Instant::now()));
                self.draw(stage, true);
            }
            Event::NodeProgress { node, stage, progress } => {
                if let Some(note) = self.notes.get_mut(*node) {
                    note.1 = (*progress).clone();
                }
                self.draw(stage, true);
            }
            Event::NodeWaits { node, holder, .. } => self.say(node, &format!("waiting for {holder}")),
            Event::NodeDone { node, stage, seconds, .. } => {
                let tally = self.tally(stage);
                tally.running -= 1;
                tally.done += 1;
                tally.measured.0 += seconds;
                tally.measured.1 += 1;
                self.finished += 1;
                self.notes.remove(*node);
                self.say(node, &format!("done in {}", human::duration(*seconds)));
                self.draw(stage, true);
            }
            Event::NodeRetried { node, stage, what, .. } => {
                self.tally(stage).running -= 1;
                self.notes.remove(*node);
                self.say(node, &format!("{what}; trying again"));
                self.draw(stage, true);
            }
            Event::NodeFailed { node, stage, what, log, tail } => {
                let tally = self.tally(stage);
                tally.running = tally.running.saturating_sub(1);
                tally.failed += 1;
                self.finished += 1;
                self.notes.remove(*node);
                let mut text = format!("FAILED: {what}");
                for line in tail {
                    text.push_str(&format!("\n    | {line}"));
                }
                if let Some(log) = log {
                    text.push_str(&format!("\n    log: {log}"));
                }
                self.say(node, &text);
                self.draw(stage, true);
            }
            Event::NodeBlocked { stage, .. } => {
                self.tally(stage).blocked += 1;
                self.finished += 1;
            }
            Event::Warning { what } => self.line(&format!("warning: {what}")),
            Event::RunFinished { summary } => {
                if let Some(live) = self.live.take() {
                    live.bars.values().for_each(ProgressBar::finish_and_clear);
                    let _ = live.multi.clear();
                }
                eprint_line(&summary_line(summary, self.total));
            }
        }
    }

    fn tally(&mut self, stage: &str) -> &mut Tally {
        self.stages.get_mut(stage).expect("every stage of the run is tallied")
    }

    fn say(&mut self, node: &str, what: &str) {
        let width = self.total.to_string().len();
        self.line(&format!("[{:>width$}/{}] {node}: {what}", self.finished, self.total));
    }

    fn line(&mut self, text: &str) {
        match &self.live {
            Some(live) if !live.bars.is_empty() => {
                let _ = live.multi.println(text);
            }
            _ => eprint_line(text),
        }
    }

    /// Draws a stage's line. `begin` makes the lines if there are none yet.
    fn draw(&mut self, stage: &str, begin: bool) {
        let Some(live) = &mut self.live else { return };
        if live.bars.is_empty() {
            if !begin {
                return;
            }
            let width = self.order.iter().map(|name| name.chars().count()).max().unwrap_or(0);
            for name in &self.order {
                let template = "{prefix} {bar:24.cyan/blue} {pos:>5}/{len} {wide_msg}";
                let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
                let bar =
                    live.multi.add(ProgressBar::new(self.stages[name].nodes as u64).with_style(style.progress_chars("━╸─")));
                bar.set_prefix(format!("{name:width$}"));
                live.bars.insert(name.clone(), bar);
            }
            let order = self.order.clone();
            for name in order {
                self.draw(&name, true);
            }
            return;
        }
        let tally = &self.stages[stage];
        let bar = &live.bars[stage];
        let mut message = tally.line();
        let left = tally.nodes - tally.finished();
        if let (Some(mean), true) = (tally.mean_seconds(), left > 0) {
            let waves = left as f64 / self.jobs.clamp(1, left) as f64;
            message.push_str(&format!(", ETA {}", human::duration(mean * waves)));
        }
        if let Some((node, (_, progress, since))) = self.notes.iter().find(|(_, (of, ..))| of == stage) {
            let point = node.split_once('/').map_or("", |(_, point)| point);
            if progress.total > 0 {
                message.push_str(&format!(" | {point} {}/{} {}", progress.done, progress.total, progress.note));
            } else if since.elapsed() > Duration::from_secs(2) {
                message.push_str(&format!(" | {point} {}", human::duration(since.elapsed().as_secs_f64())));
            }
        }
        bar.set_position(tally.finished() as u64);
        bar.set_message(message);
    }
}

fn eprint_line(text: &str) {
    let _ = writeln!(std::io::stderr(), "{text}");
}

/// `200 nodes: 57 ran, 143 cached in 12 s; 2 h 11 m saved`
pub fn summary_line(summary: &Summary, total: usize) -> String {
    let mut parts = Vec::new();
    for (count, word) in [
        (summary.ran, "ran"),
        (summary.cached, "cached"),
        (summary.restored, "restored"),
        (summary.failed, "failed"),
        (summary.blocked, "blocked by failures"),
        (summary.left, "not reached"),
    ] {
        if count > 0 {
            parts.push(format!("{count} {word}"));
        }
    }
    let mut line = format!("{}: {} in {}", human::count(total, "node"), parts.join(", "), human::duration(summary.seconds));
    if summary.saved_seconds >= 0.0995 {
        line.push_str(&format!("; {} saved", human::duration(summary.saved_seconds)));
    }
    if summary.interrupted {
        line.push_str("; interrupted, the same command goes on from here");
    } else if summary.left > 0 {
        line.push_str("; stopped at the first failure, `--keep-going` runs the rest");
    }
    line
}

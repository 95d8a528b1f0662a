//! What the live page is told: looks at the store and the trail of the run, at most once in a while, whoever asks how often.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant, SystemTime};

use serde_json::{Value, json};

use crate::cli::context::Context;
use crate::cli::facts::Facts;
use crate::cli::report;
use crate::cli::{CliError, Global, Which};
use crate::engine::attempt::{log_path, now_ms};
use crate::engine::digest::Digest;
use crate::engine::store::Access;
use crate::render::report::{complete, main_part, page};

/// How long a look is good for.
const FRESH: Duration = Duration::from_millis(700);
const TAIL_BYTES: u64 = 1500;
const LOG_BYTES: u64 = 64 * 1024;

pub struct Watch {
    global: Global,
    which: Which,
    state: Mutex<Looked>,
}

struct Looked {
    context: Context,
    /// The YAML files as they were when the graph was built.
    sources: Vec<Option<(SystemTime, u64)>>,
    facts: Facts,
    content: String,
    at: Instant,
}

impl Watch {
    pub fn new(global: Global, which: Which, context: Context) -> Watch {
        let (sources, facts, content) = (sources(&context), Facts::of(&context), content_version(&context));
        Watch { global, which, state: Mutex::new(Looked { context, sources, facts, content, at: Instant::now() }) }
    }

    fn look(&self) -> MutexGuard<'_, Looked> {
        // A look that panicked left what the look before it saw.
        let mut state = self.state.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if state.at.elapsed() < FRESH {
            return state;
        }
        if sources(&state.context) != state.sources {
            // A file that is being edited may not be valid just now: the graph that was stands until it is.
            if let Ok(context) = Context::open(&self.global, &self.which, Access::Read)
                && report::report_node(&context).is_ok()
            {
                state.sources = sources(&context);
                state.context = context;
            }
        } else {
            let _ = state.context.store.journal.refresh();
        }
        state.facts = Facts::of(&state.context);
        state.content = content_version(&state.context);
        state.at = Instant::now();
        state
    }

    pub fn page(&self) -> Result<String, CliError> {
        let facts = self.facts_value();
        let state = self.look();
        let content = report::content(&state.context, report::report_node(&state.context)?)?;
        Ok(complete(&page(&content), &facts).expect("a page has a place for facts"))
    }

    pub fn content(&self) -> Result<String, CliError> {
        let state = self.look();
        let content = report::content(&state.context, report::report_node(&state.context)?)?;
        Ok(main_part(&content).into_string())
    }

    pub fn facts(&self) -> String {
        self.facts_value().to_string()
    }

    fn facts_value(&self) -> Value {
        let state = self.look();
        let mut facts = state.facts.json(&state.context);
        facts["live"] = json!(true);
        facts["content"] = json!(state.content);
        facts
    }

    /// What changes from second to second, small enough to be sent every second.
    pub fn live(&self) -> String {
        let state = self.look();
        let states: String = state.facts.states.iter().map(|state| state.letter()).collect();
        let trail = state.facts.trail.as_ref().filter(|trail| trail.lives);
        let mut running = Vec::new();
        for (node, run) in trail.iter().flat_map(|trail| &trail.running) {
            running.push(json!({
                "node": node, "seconds": seconds_since(run.since_ms), "done": run.progress.done, "total": run.progress.total,
                "note": run.progress.note, "losses": run.losses.iter().map(|loss| json!(loss)).collect::<Vec<_>>(),
                "tail": run.log.as_deref().map(|log| tail(log, TAIL_BYTES)).unwrap_or_default(),
            }));
        }
        json!({
            "going": trail.is_some(), "elapsed": trail.map(|trail| seconds_since(trail.began_ms)),
            "eta": state.facts.eta(&state.context), "version": state.facts.version(&state.context.graph),
            "content": state.content, "states": states, "running": running, "dag": state.facts.dag.svg_for_page(),
        })
        .to_string()
    }

    /// The end of a node's log: of the attempt that runs, or of the last one.
    pub fn log(&self, node: &str) -> Option<String> {
        let state = self.look();
        let graph = &state.context.graph;
        let id = &graph.nodes[*graph.by_id.get(node)?].id;
        let running = state.facts.trail.as_ref().and_then(|trail| trail.running.get(id)).and_then(|run| run.log.clone());
        let path = running.filter(|log| log.is_file()).unwrap_or_else(|| log_path(&state.context.store, &graph.profile, id));
        path.is_file().then(|| tail(&path, LOG_BYTES))
    }
}

fn seconds_since(ms: u64) -> f64 {
    now_ms().saturating_sub(ms) as f64 / 1e3
}

fn sources(context: &Context) -> Vec<Option<(SystemTime, u64)>> {
    context.project.sources.iter().map(|source| stamp(&context.root.join(&source.name))).collect()
}

fn stamp(path: &Path) -> Option<(SystemTime, u64)> {
    let meta = std::fs::metadata(path).ok()?;
    Some((meta.modified().ok()?, meta.len()))
}

/// Differs when a file that the report is made of differs.
fn content_version(context: &Context) -> String {
    let Ok(node) = report::report_node(context) else { return String::new() };
    let places = report::places(context, node);
    let mut text = String::new();
    let mut note = |path: &Path| text.push_str(&format!("{}{:?};", path.display(), stamp(path)));
    for place in [places.verdicts, places.figures, places.tables, places.deviations].into_iter().flatten() {
        let mut files: Vec<PathBuf> =
            std::fs::read_dir(&place).into_iter().flatten().flatten().map(|entry| entry.path()).collect();
        files.sort();
        note(&place);
        files.iter().for_each(|file| note(file));
    }
    Digest::of(text.as_bytes()).short()
}

/// The last lines of a file, at most so many bytes.
fn tail(path: &Path, bytes: u64) -> String {
    use std::io::{Read as _, Seek as _, SeekFrom};
    let Ok(mut file) = std::fs::File::open(path) else { return String::new() };
    let length = file.metadata().map_or(0, |meta| meta.len());
    let mut text = Vec::new();
    let start = length.saturating_sub(bytes);
    if file.seek(SeekFrom::Start(start)).is_err() || file.take(bytes).read_to_end(&mut text).is_err() {
        return String::new();
    }
    let text = String::from_utf8_lossy(&text).into_owned();
    match text.split_once('\n') {
        Some((_, rest)) if start > 0 => rest.to_string(),
        _ => text,
    }
}

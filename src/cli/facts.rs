//! What is known of a profile's nodes beyond their results: how they stand, keys, parameters, times, machines. The report, `ui`, `dag` and `status` show it.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::context::Context;
use super::human;
use crate::engine::attempt::now_ms;
use crate::engine::digest::Digest;
use crate::engine::graph::{Graph, Origin};
use crate::engine::plan::{Judged, Planner, Standing};
use crate::engine::store::hostname;
use crate::engine::trail::Trail;
use crate::engine::why::Why;
use crate::render::dag::{Box, Dag};

/// How a node stands, for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// Done by the last run that did anything.
    Ran,
    /// Done before it.
    Cached,
    Running,
    Failed(String),
    Blocked,
    /// To be run.
    Stale,
    /// May have to run: that depends on what it reads.
    Waits,
}

impl State {
    pub fn word(&self) -> &'static str {
        match self {
            State::Ran => "ran",
            State::Cached => "cached",
            State::Running => "running",
            State::Failed(_) => "failed",
            State::Blocked => "blocked",
            State::Stale => "stale",
            State::Waits => "waits",
        }
    }
    /// One letter a node, for a page that asks every second.
    pub fn letter(&self) -> char {
        match self {
            State::Running => 'n',
            other => other.word().chars().next().expect("a word has letters"),
        }
    }
    pub fn done(&self) -> bool {
        matches!(self, State::Ran | State::Cached)
    }
}

/// What is known of all nodes of a profile.
pub struct Facts {
    pub states: Vec<State>,
    pub judged: Vec<Option<Judged>>,
    pub dag: Dag,
    pub trail: Option<Trail>,
}

impl Facts {
    /// Looks at every node. A missing input is the business of `plan`: nodes that cannot be judged for it count as waiting.
    pub fn of(context: &Context) -> Facts {
        let planner = Planner::new(&context.root, &context.graph, &context.store);
        let all: Vec<usize> = (0..context.graph.nodes.len()).collect();
        Facts::of_nodes(context, &planner, &all)
    }

    /// Looks at these nodes, a closed set; the others count as waiting.
    pub fn of_nodes(context: &Context, planner: &Planner, nodes: &[usize]) -> Facts {
        let graph = &context.graph;
        let mut judged: Vec<Option<Judged>> = vec![None; graph.nodes.len()];
        for (at, verdict) in planner.plan(nodes).unwrap_or_default() {
            judged[at] = Some(verdict);
        }
        let trail = Trail::latest(&context.store.folder, &graph.profile);
        let empty = Trail::default();
        let told = trail.as_ref().unwrap_or(&empty);
        let states: Vec<State> = (0..graph.nodes.len()).map(|at| state(&graph.nodes[at].id, judged[at].as_ref(), told)).collect();
        let dag = draw(graph, &states);
        Facts { states, judged, dag, trail }
    }

    pub fn standing(&self, at: usize) -> Option<&Standing> {
        self.judged[at].as_ref().map(|judged| &judged.standing)
    }

    /// What a node that is done took.
    pub fn seconds(&self, context: &Context, at: usize) -> Option<f64> {
        let key = self.judged[at].as_ref()?.key.as_ref()?;
        context.store.journal.done(&key.digest).map(|done| done.seconds)
    }

    /// The facts as the page's script reads them: see src/render/report/run.js.
    pub fn json(&self, context: &Context) -> Value {
        let graph = &context.graph;
        let journal = &context.store.journal;
        let mut stages = Vec::new();
        let mut nodes = Vec::with_capacity(graph.nodes.len());
        for (index, stage) in graph.stages.iter().enumerate() {
            let params: Vec<&Value> = graph.nodes[stage.nodes.clone()].iter().map(|node| &node.params).collect();
            let shared = shared(&params);
            for at in stage.nodes.clone() {
                let node = &graph.nodes[at];
                let mut reads: Vec<usize> = node.reads().map(|from| from.node).collect();
                reads.sort_unstable();
                reads.dedup();
                let mut fields = Map::new();
                fields.insert("id".into(), json!(node.id));
                fields.insert("st".into(), json!(index));
                fields.insert("s".into(), json!(self.states[at].word()));
                if let State::Failed(what) = &self.states[at] {
                    fields.insert("what".into(), json!(what));
                }
                fields.insert("r".into(), json!(reads));
                fields.insert("x".into(), without(&node.params, &shared));
                if let Some(seed) = node.seed {
                    fields.insert("seed".into(), json!(seed));
                }
                if node.numerics != "any" {
                    fields.insert("num".into(), json!(node.numerics));
                }
                let key = self.judged[at].as_ref().and_then(|judged| judged.key.as_ref()).map(|key| key.digest);
                fields.insert("k".into(), json!(key.map(|key| key.hex()).unwrap_or_default()));
                if let Some(done) = key.and_then(|key| journal.done(&key)) {
                    fields.insert("t".into(), json!((done.seconds * 1e4).round() / 1e4));
                    fields.insert("at".into(), json!(done.at_ms));
                    add_provenance(&journal.body_of(&done.key).unwrap_or_default(), &mut fields);
                }
                nodes.push(Value::Object(fields));
            }
            stages.push(json!({"name": stage.name, "kind": stage.kind.name(), "about": stage.description,
                               "code": stage.kind.code().digest, "from": stage.nodes.start, "to": stage.nodes.end,
                               "shared": shared}));
        }
        let default = context.project.default_profile() == graph.profile;
        let flag = if default { String::new() } else { format!(" --profile {}", graph.profile) };
        let run = self
            .trail
            .as_ref()
            .and_then(|trail| trail.summary.as_ref())
            .map(|summary| json!({"seconds": summary.seconds, "text": run_text(summary)}));
        json!({
            "profile": graph.profile, "profile_flag": flag, "repro": env!("CARGO_PKG_VERSION"), "rustc": env!("REPRO_RUSTC"),
            "target": env!("REPRO_TARGET"), "host": hostname(), "made": human::moment(now_ms()),
            "going": self.trail.as_ref().is_some_and(|trail| trail.lives), "run": run, "version": self.version(graph),
            "stages": stages, "tables": tables(graph), "nodes": nodes, "dag": self.dag.svg_for_page(),
        })
    }

    /// Differs when nodes, keys or results differ.
    pub fn version(&self, graph: &Graph) -> String {
        let mut text = String::new();
        for (node, judged) in graph.nodes.iter().zip(&self.judged) {
            let key = judged.as_ref().and_then(|judged| judged.key.as_ref());
            text.push_str(&node.id);
            text.push_str(&key.map(|key| key.digest.hex()).unwrap_or_default());
            text.push(if judged.as_ref().is_some_and(|judged| judged.outputs.is_some()) { '1' } else { '0' });
        }
        Digest::of(text.as_bytes()).short()
    }

    /// Seconds until the run that goes on is done, from what its stages took before. `None` where nothing is known.
    pub fn eta(&self, context: &Context) -> Option<f64> {
        let trail = self.trail.as_ref().filter(|trail| trail.lives)?;
        let graph = &context.graph;
        let means = mean_seconds(context);
        let mut work = 0.0;
        let mut known = false;
        for (at, state) in self.states.iter().enumerate() {
            let mean = means.get(&graph.stages[graph.nodes[at].stage].name).copied();
            let left = match state {
                State::Running => {
                    let Some(running) = trail.running.get(&graph.nodes[at].id) else { continue };
                    let elapsed = now_ms().saturating_sub(running.since_ms) as f64 / 1e3;
                    let (done, total) = (running.progress.done as f64, running.progress.total as f64);
                    if total > 0.0 && done > 0.0 {
                        Some(elapsed * (total - done).max(0.0) / done)
                    } else {
                        mean.map(|mean| (mean - elapsed).max(0.0))
                    }
                }
                State::Stale | State::Waits => mean,
                _ => continue,
            };
            known |= left.is_some();
            work += left.unwrap_or(0.0);
        }
        known.then(|| work / trail.jobs.max(1) as f64)
    }
}

/// Which stages measured what a tidy table holds: its input `table`, or `table.part`, reads them.
fn tables(graph: &Graph) -> BTreeMap<String, BTreeSet<usize>> {
    let mut found: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for node in graph.nodes.iter().filter(|node| graph.stages[node.stage].kind.name() == "tidy") {
        for input in &node.inputs {
            if let Origin::Nodes(list) = &input.origin {
                let table = input.name.split('.').next().unwrap_or_default().to_string();
                found.entry(table).or_default().extend(list.iter().map(|from| graph.nodes[from.node].stage));
            }
        }
    }
    found
}

/// What a node of each stage took on average, in this profile.
pub fn mean_seconds(context: &Context) -> BTreeMap<String, f64> {
    let mut sums: BTreeMap<String, (f64, usize)> = BTreeMap::new();
    for done in context.store.journal.all_done() {
        if done.profile == context.graph.profile {
            let sum = sums.entry(done.node.split('/').next().unwrap_or_default().to_string()).or_default();
            sum.0 += done.seconds;
            sum.1 += 1;
        }
    }
    sums.into_iter().map(|(stage, (seconds, count))| (stage, seconds / count as f64)).collect()
}

fn state(id: &str, judged: Option<&Judged>, trail: &Trail) -> State {
    if trail.running.contains_key(id) {
        return State::Running;
    }
    match judged.map(|judged| &judged.standing) {
        Some(Standing::Cached | Standing::Restore(_)) if trail.ran.contains(id) => State::Ran,
        Some(Standing::Cached | Standing::Restore(_)) => State::Cached,
        Some(Standing::Run(Why::FailedBefore { what })) => State::Failed(what.clone()),
        _ if trail.blocked.contains(id) => State::Blocked,
        Some(Standing::Run(_)) => State::Stale,
        Some(Standing::Waits(_)) | None => State::Waits,
    }
}

fn draw(graph: &Graph, states: &[State]) -> Dag {
    let boxes = graph.stages.iter().map(|stage| {
        let of = &states[stage.nodes.clone()];
        Box {
            name: stage.name.clone(),
            kind: stage.kind.name().to_string(),
            nodes: stage.nodes.len(),
            done: of.iter().filter(|state| state.done()).count(),
            failed: of.iter().filter(|state| matches!(state, State::Failed(_))).count(),
            running: of.iter().filter(|state| **state == State::Running).count(),
            upstream: stage.upstream.clone(),
        }
    });
    Dag { boxes: boxes.collect() }
}

fn run_text(summary: &crate::engine::events::Summary) -> String {
    let parts = [
        (summary.ran, "ran"),
        (summary.cached, "cached"),
        (summary.restored, "restored"),
        (summary.failed, "failed"),
        (summary.blocked, "blocked"),
        (summary.left, "not reached"),
    ];
    let parts: Vec<String> =
        parts.iter().filter(|(count, _)| *count > 0).map(|(count, word)| format!("{count} {word}")).collect();
    parts.join(", ")
}

/// Machine and tools from the second line of a record, where they differ from this program's own.
fn add_provenance(body: &str, fields: &mut Map<String, Value>) {
    let Some(Ok(provenance)) = body.split('\n').nth(1).map(serde_json::from_str::<Value>) else { return };
    fields.insert("h".into(), provenance["host"].clone());
    fields.insert("th".into(), provenance["threads"].clone());
    let text = |field: &str| provenance[field].as_str().unwrap_or_default().to_string();
    let (repro, rustc, target) = (text("repro"), text("rustc"), text("target"));
    if repro != env!("CARGO_PKG_VERSION") || rustc != env!("REPRO_RUSTC") || target != env!("REPRO_TARGET") {
        fields.insert("env".into(), json!(format!("repro {repro}, {rustc}, {target}")));
    }
}

/// The part that all parameters have in common.
fn shared(all: &[&Value]) -> Value {
    let Some(Value::Object(first)) = all.first() else { return json!({}) };
    let mut out = Map::new();
    for (name, value) in first {
        let others: Vec<&Value> = all.iter().filter_map(|params| params.get(name)).collect();
        if others.len() < all.len() {
            continue;
        }
        if others.iter().all(|other| *other == value) {
            out.insert(name.clone(), value.clone());
        } else if others.iter().all(|other| other.is_object()) {
            out.insert(name.clone(), shared(&others));
        }
    }
    Value::Object(out)
}

/// Parameters less the part they share.
fn without(params: &Value, shared: &Value) -> Value {
    let (Value::Object(params), Value::Object(shared)) = (params, shared) else { return params.clone() };
    let mut out = Map::new();
    for (name, value) in params {
        match shared.get(name) {
            Some(same) if same == value => {}
            Some(part) => {
                out.insert(name.clone(), without(value, part));
            }
            None => {
                out.insert(name.clone(), value.clone());
            }
        }
    }
    Value::Object(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shared_and_own_parameters_make_up_the_whole() {
        let one = json!({"steps": 3, "model": {"width": 8, "loops": 1}, "lr": 0.1});
        let two = json!({"steps": 3, "model": {"width": 8, "loops": 2}, "lr": 0.2, "extra": null});
        let common = shared(&[&one, &two]);
        assert_eq!(common, json!({"steps": 3, "model": {"width": 8}}));
        assert_eq!(without(&two, &common), json!({"model": {"loops": 2}, "lr": 0.2, "extra": null}));
        assert_eq!(without(&one, &shared(&[&one])), json!({}));
    }
}

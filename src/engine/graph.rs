//! Turns a project and a profile into nodes: overrides, grids, templates, references between stages. Everything past this file sees checked values only.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use serde_json::Value;

use super::config::grid::{self, Point};
use super::config::ids;
use super::config::locate::Seg;
use super::config::raw::{Entries, RawFrom, RawInput, RawOverride, RawProfile, RawResources, RawStage, Tree};
use super::config::template::{Scope, fill, fill_string};
use super::config::{ConfigError, Project, Source, StageSource, check_inside, known};
use super::kind::{Draft, Kind, Output, Registry, Threads};
use super::resources::{Resources, parse_bytes, parse_seconds};

/// A stage of the chosen profile.
pub struct Stage {
    pub name: String,
    pub description: String,
    pub kind: &'static dyn Kind,
    /// Its nodes, an unbroken range of [`Graph::nodes`].
    pub nodes: std::ops::Range<usize>,
    pub axes: Vec<String>,
    /// The stages it reads from or waits for.
    pub upstream: Vec<usize>,
}

/// One unit of work, cached on its own.
pub struct Node {
    /// `stage` or `stage/point`.
    pub id: String,
    pub stage: usize,
    pub point: Point,
    pub params: Value,
    pub inputs: Vec<Input>,
    pub outputs: Vec<Output>,
    pub seed: Option<u64>,
    pub numerics: &'static str,
    pub resources: Resources,
    pub timeout: Option<Duration>,
    pub retries: u32,
    /// Stages that have to be finished first, though nothing of theirs is read.
    pub needs: Arc<[usize]>,
}

/// A named input of a node.
pub struct Input {
    pub name: String,
    /// Where it lies in the working directory.
    pub mount: String,
    pub origin: Origin,
}

pub enum Origin {
    /// A file or directory of the project.
    Path(String),
    /// Outputs of other nodes, each with where it lies in the working directory.
    Nodes(Vec<Upstream>),
}

pub struct Upstream {
    pub node: usize,
    pub output: usize,
    pub mount: String,
}

impl Node {
    /// The nodes this one reads from.
    pub fn reads(&self) -> impl Iterator<Item = &Upstream> {
        self.inputs.iter().flat_map(|input| match &input.origin {
            Origin::Nodes(list) => list.as_slice(),
            Origin::Path(_) => &[],
        })
    }
    /// The last part of the id: the point, or the stage where there is no grid.
    pub fn point_id(&self) -> &str {
        self.id.split_once('/').map_or(self.id.as_str(), |(_, point)| point)
    }
}

/// All nodes of a profile. A node's index is larger than those of the nodes it reads.
pub struct Graph {
    pub profile: String,
    pub stages: Vec<Stage>,
    pub nodes: Vec<Node>,
    pub by_id: HashMap<String, usize>,
}

impl Graph {
    pub fn build(project: &Project, profile: &str, sets: &[(String, Value)], registry: Registry) -> Result<Graph, ConfigError> {
        let resolved = resolve_profile(project, profile, sets)?;
        let wanted: Vec<&StageSource> = project
            .stages
            .iter()
            .filter(|stage| !resolved.stages.get(&stage.name).is_some_and(|change| change.skip))
            .map(|stage| {
                let file = resolved.stages.get(&stage.name).and_then(|change| change.file.as_ref());
                file.and_then(|file| project.variants.get(file)).unwrap_or(stage)
            })
            .collect();
        let order = order_stages(project, &wanted)?;
        let mut graph = Graph { profile: profile.to_string(), stages: Vec::new(), nodes: Vec::new(), by_id: HashMap::new() };
        let mut index_of: HashMap<&str, usize> = HashMap::new();
        for at in order {
            let stage = wanted[at];
            let builder = Builder { source: &project.sources[stage.source], stage, registry, vars: &resolved.vars };
            builder.add_to(&mut graph, resolved.stages.get(&stage.name), &index_of)?;
            index_of.insert(&stage.name, graph.stages.len() - 1);
        }
        Ok(graph)
    }
}

/// A profile with everything it extends folded in.
fn resolve_profile(project: &Project, name: &str, sets: &[(String, Value)]) -> Result<RawProfile, ConfigError> {
    let profiles = &project.pipeline.profiles;
    let source = &project.sources[0];
    let names: Vec<String> = project.profiles().iter().map(|name| name.to_string()).collect();
    let mut chain: Vec<&str> = Vec::new();
    let mut at = name;
    loop {
        let Some(profile) = profiles.get(at) else {
            if profiles.is_empty() && at == project.default_profile() {
                break;
            }
            let message = format!("unknown profile `{at}`{}", known(&names, at));
            return Err(match chain.last() {
                Some(from) => source.error(&["profiles".into(), (*from).into(), "extends".into()], false, message),
                None => ConfigError { file: source.name.clone(), place: None, message },
            });
        };
        if chain.contains(&at) {
            let message = format!("profile `{at}` extends itself: {} -> {at}", chain.join(" -> "));
            return Err(source.error(&["profiles".into(), at.into()], true, message));
        }
        chain.push(at);
        match &profile.extends {
            Some(next) => at = next,
            None => break,
        }
    }
    let mut whole = RawProfile { vars: project.pipeline.vars.clone(), ..RawProfile::default() };
    for name in chain.iter().rev() {
        let profile = profiles.get(name).expect("the chain was walked through `profiles`");
        for (var, value) in profile.vars.iter() {
            if project.pipeline.vars.get(var).is_none() {
                let message = format!("unknown variable `{var}`{}", known(&var_names(project), var));
                return Err(source.error(&["profiles".into(), (*name).into(), "vars".into(), var.into()], true, message));
            }
            whole.vars.set(var, value.clone());
        }
        for (stage, change) in profile.stages.iter() {
            if !project.stages.iter().any(|have| have.name == stage) {
                let stages: Vec<String> = project.stages.iter().map(|have| have.name.clone()).collect();
                let message = format!("unknown stage `{stage}`{}", known(&stages, stage));
                return Err(source.error(&["profiles".into(), (*name).into(), "stages".into(), stage.into()], true, message));
            }
            let folded = match whole.stages.get(stage) {
                Some(below) => fold(below, change),
                None => change.clone(),
            };
            whole.stages.set(stage, folded);
        }
    }
    for (var, value) in sets {
        if project.pipeline.vars.get(var).is_none() {
            let message = format!("`--set` names an unknown variable `{var}`{}", known(&var_names(project), var));
            return Err(ConfigError { file: source.name.clone(), place: None, message });
        }
        whole.vars.set(var, Tree(value.clone()));
    }
    Ok(whole)
}

fn var_names(project: &Project) -> Vec<String> {
    project.pipeline.vars.keys().map(str::to_string).collect()
}

fn fold(below: &RawOverride, above: &RawOverride) -> RawOverride {
    let mut grid = below.grid.clone();
    for (axis, values) in above.grid.iter() {
        grid.set(axis, values.clone());
    }
    let with = match (&below.with, &above.with) {
        (Some(Tree(below)), Some(Tree(above))) => Some(Tree(merged(below, above))),
        (below, above) => above.clone().or_else(|| below.clone()),
    };
    RawOverride {
        file: above.file.clone().or_else(|| below.file.clone()),
        grid,
        with,
        resources: above.resources.clone().or_else(|| below.resources.clone()),
        timeout: above.timeout.clone().or_else(|| below.timeout.clone()),
        retries: above.retries.or(below.retries),
        skip: above.skip || below.skip,
    }
}

/// Mappings are merged key by key; anything else is replaced.
fn merged(below: &Value, above: &Value) -> Value {
    match (below, above) {
        (Value::Object(below), Value::Object(above)) => {
            let mut whole = below.clone();
            for (key, value) in above {
                let value = whole.get(key).map_or_else(|| value.clone(), |have| merged(have, value));
                whole.insert(key.clone(), value);
            }
            whole.into()
        }
        (_, above) => above.clone(),
    }
}

fn upstream_names(raw: &RawStage) -> Vec<(&str, Vec<Seg>)> {
    let mut names: Vec<(&str, Vec<Seg>)> =
        raw.needs.iter().enumerate().map(|(at, name)| (name.as_str(), vec!["needs".into(), Seg::Index(at)])).collect();
    for (input, origin) in raw.inputs.iter() {
        if let RawInput::From(from) = origin {
            names.push((&from.from, vec!["inputs".into(), input.into(), "from".into()]));
        }
    }
    names
}

/// Stages in an order in which each comes after those it reads, and otherwise as written.
fn order_stages(project: &Project, wanted: &[&StageSource]) -> Result<Vec<usize>, ConfigError> {
    let index: HashMap<&str, usize> = wanted.iter().enumerate().map(|(at, stage)| (stage.name.as_str(), at)).collect();
    let mut edges: Vec<(u32, u32)> = Vec::new();
    for (at, stage) in wanted.iter().enumerate() {
        for (name, path) in upstream_names(&stage.raw) {
            let Some(from) = index.get(name) else {
                let skipped = project.stages.iter().any(|stage| stage.name == name);
                let names: Vec<String> = wanted.iter().map(|stage| stage.name.clone()).collect();
                let message = if skipped {
                    format!("stage `{name}` is skipped in this profile, but `{}` needs it", stage.name)
                } else {
                    format!("unknown stage `{name}`{}", known(&names, name))
                };
                let path: Vec<Seg> = stage.prefix.iter().cloned().chain(path).collect();
                return Err(project.sources[stage.source].error(&path, false, message));
            };
            edges.push((*from as u32, at as u32));
        }
    }
    let mut missing = vec![0usize; wanted.len()];
    let mut next: Vec<Vec<usize>> = vec![Vec::new(); wanted.len()];
    for (from, to) in &edges {
        missing[*to as usize] += 1;
        next[*from as usize].push(*to as usize);
    }
    let mut ready: BTreeSet<usize> = (0..wanted.len()).filter(|at| missing[*at] == 0).collect();
    let mut order = Vec::with_capacity(wanted.len());
    while let Some(at) = ready.pop_first() {
        order.push(at);
        for to in &next[at] {
            missing[*to] -= 1;
            if missing[*to] == 0 {
                ready.insert(*to);
            }
        }
    }
    if order.len() == wanted.len() {
        return Ok(order);
    }
    let graph = petgraph::graph::DiGraph::<(), (), u32>::from_edges(edges.iter().copied());
    let cycle = petgraph::algo::tarjan_scc(&graph)
        .into_iter()
        .find(|part| part.len() > 1 || edges.contains(&(part[0].index() as u32, part[0].index() as u32)))
        .expect("stages that cannot be ordered hold a cycle");
    // Tarjan lists a component in reverse; walking it backwards reads as `a -> b -> a`.
    let mut names: Vec<&str> = cycle.iter().rev().map(|at| wanted[at.index()].name.as_str()).collect();
    let first = names.iter().enumerate().min_by_key(|(_, name)| **name).map_or(0, |(at, _)| at);
    names.rotate_left(first);
    let stage = wanted[index[names[0]]];
    let message = format!("stages wait for each other: {} -> {}", names.join(" -> "), names[0]);
    Err(project.sources[stage.source].error(&stage.prefix, true, message))
}

/// The names a template may use: grid axes first, then variables, then the paths of inputs and outputs.
struct Names<'a> {
    point: &'a Point,
    vars: &'a Entries<Tree>,
    inputs: &'a [Input],
    outputs: &'a [Output],
}

impl Scope for Names<'_> {
    fn get(&self, name: &str) -> Option<Value> {
        if let Some((_, value)) = self.point.iter().find(|(axis, _)| axis == name) {
            return Some(value.clone());
        }
        if let Some(input) = name.strip_prefix("inputs.") {
            return self.inputs.iter().find(|have| have.name == input).map(|have| have.mount.clone().into());
        }
        if let Some(output) = name.strip_prefix("outputs.") {
            return self.outputs.iter().find(|have| have.name == output).map(|have| have.path.clone().into());
        }
        self.vars.get(name).map(|Tree(value)| value.clone())
    }
    fn names(&self) -> Vec<String> {
        let axes = self.point.iter().map(|(axis, _)| axis.clone());
        let inputs = self.inputs.iter().map(|input| format!("inputs.{}", input.name));
        let outputs = self.outputs.iter().map(|output| format!("outputs.{}", output.name));
        axes.chain(self.vars.keys().map(str::to_string)).chain(inputs).chain(outputs).collect()
    }
}

struct Builder<'a> {
    source: &'a Source,
    stage: &'a StageSource,
    registry: Registry,
    vars: &'a Entries<Tree>,
}

impl Builder<'_> {
    fn wrong(&self, path: &[Seg], at_key: bool, message: impl std::fmt::Display) -> ConfigError {
        let path: Vec<Seg> = self.stage.prefix.iter().chain(path).cloned().collect();
        self.source.error(&path, at_key, message)
    }

    fn at(&self, field: &str, message: impl std::fmt::Display) -> ConfigError {
        self.wrong(&[field.into()], false, message)
    }

    fn add_to(
        &self,
        graph: &mut Graph,
        change: Option<&RawOverride>,
        index_of: &HashMap<&str, usize>,
    ) -> Result<(), ConfigError> {
        let raw = &self.stage.raw;
        let default = RawOverride::default();
        let change = change.unwrap_or(&default);
        let Some(kind_name) = &raw.kind else {
            return Err(self.wrong(&[], false, format!("stage `{}` has no `kind`", self.stage.name)));
        };
        let kind = self
            .registry
            .get(kind_name)
            .ok_or_else(|| self.at("kind", format!("unknown kind `{kind_name}`{}", known(&self.registry.names(), kind_name))))?;

        let points = self.points(raw, change)?;
        let with = match (&raw.with, &change.with) {
            (Some(Tree(own)), Some(Tree(above))) => merged(own, above),
            (own, above) => above.clone().or_else(|| own.clone()).map_or(Value::Null, |Tree(value)| value),
        };
        let needs: Arc<[usize]> = raw.needs.iter().map(|name| index_of[name.as_str()]).collect();
        let timeout = change.timeout.as_ref().or(raw.timeout.as_ref());
        let timeout = timeout.map(|text| parse_seconds(text).map_err(|message| self.at("timeout", message))).transpose()?;
        let stage_index = graph.stages.len();
        let start = graph.nodes.len();
        let axes: Vec<String> = points
            .iter()
            .max_by_key(|point| point.len())
            .map_or_else(Vec::new, |point| point.iter().map(|(axis, _)| axis.clone()).collect());
        for point in points {
            let mut names = Names { point: &point, vars: self.vars, inputs: &[], outputs: &[] };
            let outputs = self.outputs(raw, &names)?;
            let inputs = self.inputs(raw, &names, graph, index_of)?;
            names.inputs = &inputs;
            names.outputs = &outputs;
            let params = fill(&with, &names).map_err(|error| self.at("with", error))?;
            let draft =
                Draft { params: &params, inputs: inputs.iter().map(|input| input.name.as_str()).collect(), outputs: &outputs };
            let checked = kind.check(&draft).map_err(|error| {
                let path: Vec<Seg> = std::iter::once("with".into()).chain(error.path.iter().cloned()).collect();
                self.wrong(&path, error.at_key, &error.message)
            })?;
            self.check_paths(&inputs, &checked.outputs)?;
            let id = self.node_id(raw, &names)?;
            let seed = match &raw.seed {
                None => None,
                Some(Tree(value)) => {
                    let value = fill(value, &names).map_err(|error| self.at("seed", error))?;
                    Some(value.as_u64().ok_or_else(|| self.at("seed", "`seed` must be a whole number, 0 or more"))?)
                }
            };
            let wished = match kind.threads(&checked.params) {
                Threads::One => 1,
                Threads::All => super::resources::cores(),
            };
            let resources = self.resources(change.resources.as_ref().or(raw.resources.as_ref()), &names, wished)?;
            let node = Node {
                id,
                stage: stage_index,
                params: checked.params,
                inputs,
                outputs: checked.outputs,
                seed,
                numerics: checked.numerics,
                resources,
                timeout: timeout.map(Duration::from_secs_f64),
                retries: change.retries.or(raw.retries).unwrap_or(0),
                needs: needs.clone(),
                point,
            };
            if graph.by_id.insert(node.id.clone(), graph.nodes.len()).is_some() {
                return Err(self.at("id", format!("two nodes are called `{}`; let `id` name every axis that differs", node.id)));
            }
            graph.nodes.push(node);
        }
        let mut upstream: Vec<usize> = upstream_names(raw).iter().map(|(name, _)| index_of[name]).collect();
        upstream.sort_unstable();
        upstream.dedup();
        graph.stages.push(Stage {
            name: self.stage.name.clone(),
            description: raw.description.clone().unwrap_or_default(),
            kind,
            nodes: start..graph.nodes.len(),
            axes,
            upstream,
        });
        Ok(())
    }

    fn points(&self, raw: &RawStage, change: &RawOverride) -> Result<Vec<Point>, ConfigError> {
        let mut whole = raw.grid.clone();
        for (axis, values) in change.grid.iter() {
            whole.set(axis, values.clone());
        }
        if whole.is_empty() {
            return Ok(vec![Point::new()]);
        }
        let names = Names { point: &Point::new(), vars: self.vars, inputs: &[], outputs: &[] };
        let filled: Vec<(String, Value)> = whole
            .iter()
            .map(|(axis, Tree(value))| {
                let value = fill(value, &names).map_err(|error| self.wrong(&["grid".into(), axis.into()], false, error))?;
                Ok((axis.to_string(), value))
            })
            .collect::<Result<_, ConfigError>>()?;
        if filled.iter().all(|(_, value)| value.as_array().is_some_and(Vec::is_empty)) {
            return Ok(vec![Point::new()]);
        }
        grid::expand(&filled).map_err(|error| {
            let path: Vec<Seg> = std::iter::once("grid".into()).chain(error.path()).collect();
            self.wrong(&path, false, error)
        })
    }

    fn node_id(&self, raw: &RawStage, names: &Names) -> Result<String, ConfigError> {
        if names.point.is_empty() {
            return Ok(self.stage.name.clone());
        }
        let point = match &raw.id {
            Some(template) => ids::safe(&fill_string(template, names).map_err(|error| self.at("id", error))?),
            None => ids::point_id(names.point.iter().map(|(axis, value)| (axis.as_str(), value))),
        };
        if point.is_empty() {
            return Err(self.at("id", "a node's id came out empty"));
        }
        Ok(format!("{}/{point}", self.stage.name))
    }

    fn outputs(&self, raw: &RawStage, names: &Names) -> Result<Vec<Output>, ConfigError> {
        let mut outputs = Vec::with_capacity(raw.outputs.0.len());
        for (name, template) in raw.outputs.iter() {
            let at = |message: String| self.wrong(&["outputs".into(), name.into()], false, message);
            let path = fill_string(template, names).map_err(|error| at(error.to_string()))?;
            check_inside(&path).map_err(at)?;
            let directory = path.ends_with('/');
            outputs.push(Output { name: name.to_string(), path: tidy(&path), directory });
        }
        Ok(outputs)
    }

    fn inputs(
        &self,
        raw: &RawStage,
        names: &Names,
        graph: &Graph,
        index_of: &HashMap<&str, usize>,
    ) -> Result<Vec<Input>, ConfigError> {
        let mut inputs = Vec::with_capacity(raw.inputs.0.len());
        for (name, origin) in raw.inputs.iter() {
            let at = |message: String| self.wrong(&["inputs".into(), name.into()], false, message);
            inputs.push(match origin {
                RawInput::Path(template) => {
                    let path = fill_string(template, names).map_err(|error| at(error.to_string()))?;
                    check_inside(&path).map_err(at)?;
                    let path = tidy(&path);
                    if path == "." || path.starts_with("out/") || path.starts_with(".repro") || path == "out" {
                        return Err(at(format!(
                            "`{path}` is not a source of the project; read a stage's output with `from: stage`"
                        )));
                    }
                    Input { name: name.to_string(), mount: path.clone(), origin: Origin::Path(path) }
                }
                RawInput::From(from) => self.upstream(name, from, names, graph, &graph.stages[index_of[from.from.as_str()]])?,
            });
        }
        Ok(inputs)
    }

    fn upstream(&self, name: &str, from: &RawFrom, names: &Names, graph: &Graph, stage: &Stage) -> Result<Input, ConfigError> {
        let wrong = |field: &str, message: String| self.wrong(&["inputs".into(), name.into(), field.into()], false, message);
        let first = &graph.nodes[stage.nodes.start];
        let wanted = from.output.as_ref().map(|name| fill_string(name, names)).transpose();
        let output = match &wanted.map_err(|error| wrong("output", error.to_string()))? {
            Some(wanted) => first.outputs.iter().position(|have| have.name == *wanted).ok_or_else(|| {
                let names: Vec<String> = first.outputs.iter().map(|have| have.name.clone()).collect();
                wrong("output", format!("stage `{}` has no output `{wanted}`{}", stage.name, known(&names, wanted)))
            })?,
            None if first.outputs.len() == 1 => 0,
            None => {
                let names: Vec<String> = first.outputs.iter().map(|have| format!("`{}`", have.name)).collect();
                let message = format!("stage `{}` has several outputs; name one with `output`: {}", stage.name, names.join(", "));
                return Err(wrong("from", message));
            }
        };
        let mut filter: Vec<(&str, Vec<Value>)> = Vec::new();
        for (axis, Tree(value)) in from.filter.iter() {
            if !stage.axes.iter().any(|have| have == axis) {
                let message = format!("stage `{}` has no axis `{axis}`{}", stage.name, known(&stage.axes, axis));
                return Err(self.wrong(&["inputs".into(), name.into(), "where".into(), axis.into()], true, message));
            }
            let value = fill(value, names).map_err(|error| wrong("where", error.to_string()))?;
            filter.push((axis, value.as_array().cloned().unwrap_or_else(|| vec![value])));
        }
        let chosen = stage.nodes.clone().filter(|at| {
            filter.iter().all(|(axis, values)| {
                graph.nodes[*at].point.iter().any(|(have, value)| have == axis && values.iter().any(|wanted| same(wanted, value)))
            })
        });
        // Where every axis is pinned to one value the input is that node's output itself, otherwise a folder of points.
        let single = stage.axes.iter().all(|axis| filter.iter().any(|(have, values)| have == axis && values.len() == 1));
        let folder = format!("in/{name}");
        let list: Vec<Upstream> = chosen
            .map(|node| {
                let path = &graph.nodes[node].outputs[output].path;
                let leaf = path.rsplit('/').next().unwrap_or(path);
                let leaf = if leaf == "." { "" } else { leaf };
                let parts =
                    if single { [folder.as_str(), "", leaf] } else { [folder.as_str(), graph.nodes[node].point_id(), leaf] };
                let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
                Upstream { node, output, mount: parts.join("/") }
            })
            .collect();
        if list.is_empty() {
            let wanted: Vec<String> = filter
                .iter()
                .map(|(axis, values)| format!("{axis}={}", values.iter().filter_map(ids::text_of).collect::<Vec<_>>().join("|")))
                .collect();
            return Err(wrong("where", format!("no node of stage `{}` has {}", stage.name, wanted.join(", "))));
        }
        let mount = if single { list[0].mount.clone() } else { folder };
        Ok(Input { name: name.to_string(), mount, origin: Origin::Nodes(list) })
    }

    /// `wished`: the threads the kind wishes for, taken where none are given or `auto` is.
    fn resources(&self, raw: Option<&RawResources>, names: &Names, wished: usize) -> Result<Resources, ConfigError> {
        let mut whole = Resources { threads: wished, memory_bytes: 0, gpus: 0 };
        let Some(raw) = raw else { return Ok(whole) };
        let at = |field: &str, message: String| self.wrong(&["resources".into(), field.into()], false, message);
        let count = |field: &'static str, tree: &Option<Tree>| -> Result<Option<usize>, ConfigError> {
            let Some(Tree(value)) = tree else { return Ok(None) };
            let value = fill(value, names).map_err(|error| at(field, error.to_string()))?;
            if field == "threads" && value == "auto" {
                return Ok(None);
            }
            value.as_u64().map(|count| Some(count as usize)).ok_or_else(|| at(field, format!("`{field}` must be a whole number")))
        };
        whole.threads = count("threads", &raw.threads)?.unwrap_or(wished).max(1);
        whole.gpus = count("gpus", &raw.gpus)?.unwrap_or(0);
        if let Some(Tree(value)) = &raw.memory {
            let value = fill(value, names).map_err(|error| at("memory", error.to_string()))?;
            whole.memory_bytes = parse_bytes(&value).map_err(|message| at("memory", message))?;
        }
        Ok(whole)
    }

    /// Nothing may lie at the same place twice, nor inside another output.
    fn check_paths(&self, inputs: &[Input], outputs: &[Output]) -> Result<(), ConfigError> {
        for (at, output) in outputs.iter().enumerate() {
            for other in &outputs[..at] {
                if within(&output.path, &other.path) || within(&other.path, &output.path) {
                    let message = format!("outputs `{}` and `{}` overlap at `{}`", other.name, output.name, output.path);
                    return Err(self.wrong(&["outputs".into(), output.name.as_str().into()], false, message));
                }
            }
            // `.` is the folder of a kind that writes a whole tree; no input lies in it.
            if output.path == "." {
                continue;
            }
            if let Some(input) =
                inputs.iter().find(|input| within(&input.mount, &output.path) || within(&output.path, &input.mount))
            {
                let message = format!("output `{}` overlaps input `{}` at `{}`", output.name, input.name, output.path);
                return Err(self.wrong(&["outputs".into(), output.name.as_str().into()], false, message));
            }
        }
        for (at, input) in inputs.iter().enumerate() {
            if let Some(other) =
                inputs[..at].iter().find(|other| within(&input.mount, &other.mount) || within(&other.mount, &input.mount))
            {
                let message = format!("inputs `{}` and `{}` overlap at `{}`", other.name, input.name, input.mount);
                return Err(self.wrong(&["inputs".into(), input.name.as_str().into()], false, message));
            }
        }
        Ok(())
    }
}

fn same(left: &Value, right: &Value) -> bool {
    left == right || ids::text_of(left).is_some_and(|text| Some(text) == ids::text_of(right))
}

fn tidy(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.is_empty() { ".".to_string() } else { parts.join("/") }
}

/// Whether `inner` is `outer` or lies below it.
fn within(inner: &str, outer: &str) -> bool {
    outer == "." || inner == outer || inner.strip_prefix(outer).is_some_and(|rest| rest.starts_with('/'))
}

//! Targets on the command line: stages, node ids, globs, `all`. And what has to be looked at for them.

use std::collections::HashSet;

use globset::GlobBuilder;

use super::config::known;
use super::graph::Graph;

#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum TargetError {
    #[error("unknown target `{target}` in profile `{profile}`{}", known(names, target))]
    Unknown { target: String, profile: String, names: Vec<String> },
    #[error("nothing in profile `{profile}` matches `{target}`; `repro status` lists what there is")]
    NoMatch { target: String, profile: String },
    #[error("`{target}` is not a valid pattern: {cause}")]
    BadGlob { target: String, cause: String },
    #[error("`{target}` names {count} nodes; name one, such as `{example}`")]
    NotOne { target: String, count: usize, example: String },
}

/// The nodes that the targets name, in order. No target means all.
pub fn select(graph: &Graph, targets: &[String]) -> Result<Vec<usize>, TargetError> {
    if targets.is_empty() {
        return Ok((0..graph.nodes.len()).collect());
    }
    let mut chosen = HashSet::new();
    for target in targets {
        if target == "all" {
            return Ok((0..graph.nodes.len()).collect());
        } else if let Some(node) = graph.by_id.get(target) {
            chosen.insert(*node);
        } else if let Some(stage) = graph.stages.iter().find(|stage| stage.name == *target) {
            chosen.extend(stage.nodes.clone());
        } else if target.contains(['*', '?', '[', '{']) {
            let glob = GlobBuilder::new(target).literal_separator(false).build();
            let glob = glob.map_err(|error| TargetError::BadGlob { target: target.clone(), cause: error.kind().to_string() })?;
            let matcher = glob.compile_matcher();
            let before = chosen.len();
            let hits = (0..graph.nodes.len()).filter(|at| {
                let node = &graph.nodes[*at];
                matcher.is_match(&node.id) || matcher.is_match(&graph.stages[node.stage].name)
            });
            let hits: Vec<usize> = hits.collect();
            if hits.is_empty() && chosen.len() == before {
                return Err(TargetError::NoMatch { target: target.clone(), profile: graph.profile.clone() });
            }
            chosen.extend(hits);
        } else {
            // A slip in a node's id is answered with node ids, one in a stage's name with stages.
            let names = match target.split_once('/').and_then(|(stage, _)| graph.stages.iter().find(|have| have.name == stage)) {
                Some(stage) => graph.nodes[stage.nodes.clone()].iter().map(|node| node.id.clone()).collect(),
                None => graph.stages.iter().map(|stage| stage.name.clone()).collect(),
            };
            return Err(TargetError::Unknown { target: target.clone(), profile: graph.profile.clone(), names });
        }
    }
    let mut chosen: Vec<usize> = chosen.into_iter().collect();
    chosen.sort_unstable();
    Ok(chosen)
}

/// The single node that a target names.
pub fn select_one(graph: &Graph, target: &str) -> Result<usize, TargetError> {
    match select(graph, &[target.to_string()])?.as_slice() {
        [one] => Ok(*one),
        several => Err(TargetError::NotOne {
            target: target.to_string(),
            count: several.len(),
            example: several.first().map(|at| graph.nodes[*at].id.clone()).unwrap_or_default(),
        }),
    }
}

/// The targets and everything they read or wait for, in order.
pub fn closure(graph: &Graph, targets: &[usize]) -> Vec<usize> {
    let mut wanted = vec![false; graph.nodes.len()];
    let mut whole_stage = vec![false; graph.stages.len()];
    for at in targets {
        wanted[*at] = true;
    }
    // A node's index is larger than those it reads, so one pass from the end sees every reader before what it reads.
    for at in (0..graph.nodes.len()).rev() {
        if !wanted[at] {
            continue;
        }
        let node = &graph.nodes[at];
        for from in node.reads() {
            wanted[from.node] = true;
        }
        for stage in node.needs.iter() {
            if !std::mem::replace(&mut whole_stage[*stage], true) {
                graph.stages[*stage].nodes.clone().for_each(|needed| wanted[needed] = true);
            }
        }
    }
    (0..graph.nodes.len()).filter(|at| wanted[*at]).collect()
}

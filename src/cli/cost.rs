//! What the nodes of a plan cost: operations, hours and memory by stage, from the speed measured on this machine.

use serde::Serialize;

use super::human;
use crate::engine::graph::Graph;
use crate::engine::resources::Resources;
use crate::paper::cost;
use crate::paper::speed::{ASSUMED_GFLOPS_PER_THREAD, Speed};
use crate::stage::train;

/// One node that trains.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct NodeCost {
    pub flops: f64,
    pub hours: f64,
    pub memory_bytes: u64,
    pub threads: usize,
}

/// The training nodes of one stage.
#[derive(Clone, Debug, Serialize)]
pub struct StageCost {
    pub stage: String,
    pub nodes: usize,
    pub flops: f64,
    /// On this machine, as many nodes at once as fit it.
    pub hours: f64,
    /// Of the largest node.
    pub memory_bytes: u64,
}

pub struct Costs {
    speed: Speed,
    machine: Resources,
}

impl Costs {
    pub fn of_this_machine() -> Costs {
        Costs { speed: Speed::load(), machine: Resources::of_machine() }
    }

    pub fn node(&self, graph: &Graph, at: usize) -> Option<NodeCost> {
        let node = &graph.nodes[at];
        let config = train::config_of(&node.params)?;
        let threads = node.resources.threads.min(self.machine.threads);
        let flops = cost::flops(&config);
        let speed = self.speed.estimate(&config.model, threads);
        Some(NodeCost { flops, hours: flops / (speed.gflops * 1e9) / 3600.0, memory_bytes: cost::memory_bytes(&config), threads })
    }

    /// By stage, in the order of the pipeline; stages that do not train are left out.
    pub fn stages(&self, graph: &Graph, nodes: &[usize]) -> Vec<StageCost> {
        let of_stage = |(index, stage): (usize, &crate::engine::graph::Stage)| {
            let costs: Vec<NodeCost> =
                nodes.iter().filter(|&&at| graph.nodes[at].stage == index).filter_map(|&at| self.node(graph, at)).collect();
            let longest = costs.iter().map(|c| c.hours).fold(0.0, f64::max);
            let shared: f64 = costs.iter().map(|c| c.hours * c.threads as f64).sum::<f64>() / self.machine.threads as f64;
            (!costs.is_empty()).then(|| StageCost {
                stage: stage.name.clone(),
                nodes: costs.len(),
                flops: costs.iter().map(|c| c.flops).sum(),
                hours: shared.max(longest),
                memory_bytes: costs.iter().map(|c| c.memory_bytes).max().unwrap_or(0),
            })
        };
        graph.stages.iter().enumerate().filter_map(of_stage).collect()
    }

    /// Where the hours come from.
    pub fn basis(&self) -> String {
        match self.speed.measurements.len() {
            0 => format!(
                "assuming {ASSUMED_GFLOPS_PER_THREAD:.0} GFLOP/s a thread; `repro bench` measures this machine ({})",
                self.speed.processor
            ),
            _ => format!("at the speed `repro bench` measured here ({})", self.speed.processor),
        }
    }

    pub fn as_text(&self, graph: &Graph, nodes: &[usize]) -> String {
        let stages = self.stages(graph, nodes);
        if stages.is_empty() {
            return String::new();
        }
        let mut out = String::new();
        for cost in &stages {
            out.push_str(&format!(
                "cost      {}: {}, {:.2e} FLOP, {} here, {} each\n",
                cost.stage,
                human::count(cost.nodes, "node"),
                cost.flops,
                human::duration(cost.hours * 3600.0),
                human::bytes(cost.memory_bytes),
            ));
        }
        let (flops, hours) = stages.iter().fold((0.0, 0.0), |sum, c| (sum.0 + c.flops, sum.1 + c.hours));
        out.push_str(&format!(
            "cost      training in all: {flops:.2e} FLOP, {} on this machine, {}\n",
            human::duration(hours * 3600.0),
            self.basis()
        ));
        out
    }
}

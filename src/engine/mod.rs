//! The pipeline: YAML, graph, keys, store, scheduler, workers, events. Has never heard of a tensor.

pub mod attempt;
pub mod config;
pub mod digest;
pub mod events;
pub mod graph;
pub mod key;
pub mod kind;
pub mod plan;
pub mod process;
pub mod resources;
pub mod run;
pub mod settled;
pub mod store;
pub mod target;
pub mod trail;
pub mod why;
pub mod worker;

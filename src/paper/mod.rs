//! The science: model, scaling rules, trainer, corpus, diagnostics, theory, claims. Knows nothing of the pipeline.

pub mod batch;
pub mod bench;
pub mod checkpoint;
pub mod config;
pub mod cost;
pub mod data;
pub mod device;
pub mod evaluate;
pub mod export;
pub mod generate;
pub mod init;
pub mod metrics;
pub mod model;
pub mod optimiser;
pub mod probes;
pub mod random;
pub mod scaling;
pub mod schedule;
pub mod sources;
pub mod speed;
pub mod tensor_file;
pub mod tensorboard;
pub mod trainer;

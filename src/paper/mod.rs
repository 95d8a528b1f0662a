//! The science: model, scaling rules, trainer, corpus, diagnostics, theory, claims. Knows nothing of the pipeline.

pub mod batch;
pub mod data;

//! `repro`: a reproduction of "On the Residual Scaling of Looped Transformers" as a content-hashed pipeline.
//!
//! Rooms and arrows: `cli -> stage -> {engine, paper, render}`, `paper -> ops -> dfdx`. See docs/architecture.md.

pub mod cli;
pub mod ops;
pub mod paper;

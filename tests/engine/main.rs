//! The pipeline from the outside: the real binary in a project of its own for every test.
#![allow(clippy::unwrap_used)]

mod cache;
mod commands;
mod concurrent;
mod config;
mod crash;
mod disk;
mod errors;
mod layering;
mod sandbox;
mod science;
mod stages;

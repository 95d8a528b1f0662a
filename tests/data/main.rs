//! From text to batches, end to end: what is written can be read back, whatever the threads, and bad input is told, not lost.
#![allow(clippy::unwrap_used)]

mod bad_inputs;
mod fetching;
mod loading;
mod looking;
mod sandbox;
mod server;
mod tokenizers;
mod tokenizing;
mod world;

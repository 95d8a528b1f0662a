//! The looped trainer seen from outside: golden numbers, properties, killed and resumed runs, wrong input.
#![allow(clippy::unwrap_used)]

mod bad_input;
mod bench;
mod golden;
mod properties;
mod runs;
mod sandbox;

//! The judge: every claim of the paper is in the claims file, true ones pass, false ones fail, noisy ones stay open, intervals hold what they say.
#![allow(clippy::unwrap_used)]

mod commands;
mod coverage;
mod errors;
mod perfect;
mod study;
mod verdicts;

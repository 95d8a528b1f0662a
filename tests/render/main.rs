//! Figures and tables from synthetic measurements: what they must show, in every form, whole or with parts missing.
#![allow(clippy::unwrap_used)]

mod figures;
mod pipeline;
mod synthetic;
mod tables;

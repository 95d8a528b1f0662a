//! The bridge: one file per stage kind; the only room that sees both the pipeline and the paper. A new kind is a file here and a line below.

mod command;

use crate::engine::kind::Registry;

/// Every stage kind there is.
pub const REGISTRY: Registry = Registry(&[&command::Command]);

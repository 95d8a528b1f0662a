//! Arguments in, exit code out.

pub mod data;

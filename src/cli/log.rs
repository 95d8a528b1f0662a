//! `repro log`: what a node's last attempt wrote.

use super::context::Context;
use super::{CliError, Exit, Global, Which, print};
use crate::engine::attempt::log_path;
use crate::engine::store::Access;
use crate::engine::target::select_one;

/// Print what a node's last attempt wrote.
#[derive(clap::Args)]
pub struct Args {
    /// A node's id
    node: String,
    #[command(flatten)]
    which: Which,
}

pub fn run(global: &Global, args: &Args) -> Result<Exit, CliError> {
    let context = Context::open(global, &args.which, Access::Read)?;
    let node = &context.graph.nodes[select_one(&context.graph, &args.node)?];
    let path = log_path(&context.store, &context.graph.profile, &node.id);
    match std::fs::read(&path) {
        Ok(bytes) => {
            print(&String::from_utf8_lossy(&bytes));
            Ok(Exit::Ok)
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(CliError::Wrong(format!(
            "`{}` has not run here in profile `{}`, so there is no log",
            node.id, context.graph.profile
        ))),
        Err(source) => Err(CliError::Io { what: format!("the log `{}` cannot be read", path.display()), source }),
    }
}

//! Placeholder
use super::Failure;
use clap::Args;
/// x
#[derive(Args)]
pub struct EvalArgs {}
pub fn run(_: &EvalArgs) -> Result<(), Failure> {
    Ok(())
}

//! Placeholder
use super::Failure;
use clap::Args;
/// x
#[derive(Args)]
pub struct ExportArgs {}
pub fn run(_: &ExportArgs) -> Result<(), Failure> {
    Ok(())
}

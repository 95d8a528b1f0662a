//! Placeholder
use super::Failure;
use clap::Args;
/// x
#[derive(Args)]
pub struct GenerateArgs {}
pub fn run(_: &GenerateArgs) -> Result<(), Failure> {
    Ok(())
}

//! `cargo xtask lint`: clippy over all targets with all optional parts, warnings are errors.

use anyhow::Result;

use crate::project::Project;

/// All features of the binary. `ci` checks the default features, and sets of fewer features, on their own.
pub(crate) const FEATURES: &str = "zeph/candle,zeph/otel,zeph/postgres,zeph/secret-service";

pub(crate) fn run(project: &Project) -> Result<()> {
    let args = format!("clippy --workspace --all-targets --features {FEATURES} -- -D warnings");
    Ok(project.cargo(&args).run()?)
}

//! `cargo xtask lint`: clippy over all targets with all optional features, warnings are errors.

use anyhow::Result;

use crate::features::Features;
use crate::project::Project;

pub(crate) fn run(project: &Project) -> Result<()> {
    let clippy = project
        .cargo("clippy --all-targets")
        .args(Features::All.args());
    Ok(clippy.args(["--", "-D", "warnings"]).run()?)
}

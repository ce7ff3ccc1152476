//! `cargo xtask lint`: clippy over all targets, warnings are errors.

use anyhow::Result;

use crate::project::Project;

pub(crate) fn run(project: &Project) -> Result<()> {
    let args = "clippy --workspace --all-targets -- -D warnings";
    Ok(project.cargo(args).run()?)
}

//! `cargo xtask fmt`: rustfmt over the workspace.

use anyhow::Result;

use crate::project::Project;

pub(crate) fn run(project: &Project, check: bool) -> Result<()> {
    let args = if check {
        "fmt --all --check"
    } else {
        "fmt --all"
    };
    Ok(project.cargo(args).run()?)
}

//! `cargo xtask test`: unit and integration tests, then the doc tests.

use anyhow::Result;

use crate::project::Project;

pub(crate) fn run(project: &Project, filter: Option<&str>) -> Result<()> {
    tests(project, filter)?;
    doc_tests(project, filter)
}

/// Runs cargo-nextest if it is installed, else `cargo test`.
pub(crate) fn tests(project: &Project, filter: Option<&str>) -> Result<()> {
    let nextest = project.cargo("nextest --version");
    let nextest = nextest.quiet().ignore_stderr().read().is_ok();
    let args = if nextest {
        "nextest run --workspace"
    } else {
        "test --workspace --lib --bins --tests"
    };
    Ok(project.cargo(args).args(filter).run()?)
}

/// Runs the examples in the documentation of the library crates.
pub(crate) fn doc_tests(project: &Project, filter: Option<&str>) -> Result<()> {
    Ok(project.cargo("test --doc --workspace").args(filter).run()?)
}

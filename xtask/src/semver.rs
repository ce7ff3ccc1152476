//! The public interfaces of the library crates, compared with the last release by cargo-semver-checks.

use anyhow::Result;

use crate::project::Project;

/// Compares with the last tag; skipped with a message without a tag, or without the program.
///
/// # Errors
/// A crate breaks its interface and its version does not say so.
pub(crate) fn run(project: &Project) -> Result<()> {
    let tag = project
        .sh
        .cmd("git")
        .args(["describe", "--tags", "--abbrev=0", "--match", "v*"]);
    let Ok(tag) = tag.quiet().ignore_stderr().read() else {
        println!("semver: skipped, because no release has a tag");
        return Ok(());
    };
    let installed = project.cargo("semver-checks --version").quiet();
    if installed.ignore_stderr().read().is_err() {
        println!("semver: skipped; `cargo install cargo-semver-checks` installs the program");
        return Ok(());
    }
    let checks =
        project.cargo("semver-checks check-release --workspace --exclude xtask --exclude zeph");
    Ok(checks.args(["--baseline-rev", &tag]).run()?)
}

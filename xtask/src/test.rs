//! `cargo xtask test`: unit and integration tests, then the doc tests.

use anyhow::Result;

use crate::features::Features;
use crate::project::Project;

pub(crate) fn run(project: &Project, filter: Option<&str>) -> Result<()> {
    tests(project, Features::Default, filter)?;
    doc_tests(project, Features::Default, filter)
}

/// Runs cargo-nextest if it is installed, else `cargo test`. With all features, it omits the tests that need a PostgreSQL
/// server, which `cargo xtask postgres` runs.
pub(crate) fn tests(project: &Project, features: Features, filter: Option<&str>) -> Result<()> {
    let has_nextest = has_nextest(project);
    let command = match has_nextest {
        true => project
            .cargo("nextest run --test-threads")
            .arg(threads().to_string()),
        false => project.cargo("test --lib --bins --tests"),
    };
    let without_server: &[&str] = match (features, has_nextest) {
        (Features::Default, _) => &[],
        (Features::All, true) => &["-E", "not test(/^postgres::/)"],
        (Features::All, false) => &["--", "--skip", "postgres::"],
    };
    let command = command.args(features.args()).args(filter);
    command.args(without_server).run()?;
    project.set_tests_built(features);
    Ok(())
}

/// Whether cargo-nextest is installed.
pub(crate) fn has_nextest(project: &Project) -> bool {
    let nextest = project.cargo("nextest --version");
    nextest.quiet().ignore_stderr().read().is_ok()
}

/// Three tests per core: most tests wait for the binary, for servers and for time limits.
pub(crate) fn threads() -> usize {
    3 * std::thread::available_parallelism().map_or(1, usize::from)
}

/// Runs the examples in the documentation of the library crates.
pub(crate) fn doc_tests(project: &Project, features: Features, filter: Option<&str>) -> Result<()> {
    let command = project.cargo("test --doc").args(features.args());
    Ok(command.args(filter).run()?)
}

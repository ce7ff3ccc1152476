//! Features that are not in the default build: local models, telemetry, and a store on a server.

use std::path::Path;

use anyhow::Result;

use crate::live;
use crate::project::Project;

/// The packages and the features of the optional parts, which are built once for all their steps.
pub(crate) const PACKAGES: &str =
    "-p zeph -p zeph-llm -p zeph-memory --features zeph/candle,zeph/otel,zeph/postgres";

/// Tests local models and telemetry. Real weights come from the package index; without it, the tests that need them are skipped.
pub(crate) fn run(project: &Project) -> Result<()> {
    let weights = live::weights::fetch(project, Path::new("python3"));
    let _kept = match weights {
        Ok(folder) => Some(project.sh.push_env("ZEPH_TEST_MODELS", folder)),
        Err(error) => {
            println!("tests with real weights are skipped: {error:#}");
            None
        }
    };
    let tests = format!(
        "test {PACKAGES} --lib --bins --tests -- --show-output candle:: models:: monitoring:: telemetry::"
    );
    Ok(project.cargo(&tests).run()?)
}

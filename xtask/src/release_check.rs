//! `cargo xtask release-check`: every crate packages, the release binary is within its size limit, and no public
//! interface breaks the last release, if it has a tag and cargo-semver-checks is installed.

use anyhow::{Context, Result, ensure};

use crate::ci::release_build;
use crate::project::Project;
use crate::{crate_packages, semver};

/// Maximum size of the release binary in bytes (D-40).
const MAX_BINARY_BYTES: u64 = 45_000_000;

pub(crate) fn run(project: &Project) -> Result<()> {
    crate_packages::run(project)?;
    semver::run(project)?;

    release_build(project)?;
    let binary = project.release_binary()?;
    let size = std::fs::metadata(&binary)
        .with_context(|| binary.display().to_string())?
        .len();
    println!("zeph: {:.1} MB", size as f64 / 1e6);
    ensure!(
        size <= MAX_BINARY_BYTES,
        "the binary has {size} bytes, the limit is {MAX_BINARY_BYTES}; `cargo tree -e normal` shows what came in"
    );
    Ok(())
}

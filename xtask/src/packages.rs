//! Pinned packages of Python in an environment of their own.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Result, anyhow};

use crate::process::within;

/// The time limit of each step of an installation.
pub(crate) const INSTALL: Duration = Duration::from_secs(240);

/// Installs the packages of the file `requirements` below `folder`, and runs `rest` in parallel, unless both are
/// installed. Returns the Python of the environment. `more_pins` are further pins that `rest` installs.
///
/// # Errors
/// A step fails, or takes longer than [`INSTALL`].
pub(crate) fn install(
    folder: &Path,
    requirements: &Path,
    more_pins: &str,
    rest: impl FnOnce() -> Result<()> + Send,
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
    std::thread::scope(|scope| {
        let rest = scope.spawn(rest);
        let installed = environment(&venv, &python, requirements);
        let rest = rest
            .join()
            .map_err(|_| anyhow!("an installation panicked"))?;
        installed.and(rest)
    })?;
    std::fs::write(&mark, pins)?;
    Ok(python)
}

/// Makes an environment with the packages of the file `requirements`. Modules are compiled when they are imported.
fn environment(venv: &Path, python: &Path, requirements: &Path) -> Result<()> {
    let mut command = Command::new("python3");
    command.args(["-m", "venv", "--clear", "--without-pip"]);
    command.arg(venv);
    within(command, INSTALL)?;
    let mut command = Command::new("python3");
    command.args(["-m", "pip", "--python"]).arg(python);
    command
        .args(["--quiet", "--no-input", "--disable-pip-version-check"])
        .args(["install", "--no-deps", "--no-compile"])
        .args(["--only-binary", ":all:", "-r"])
        .arg(requirements);
    within(command, INSTALL)?;
    Ok(())
}

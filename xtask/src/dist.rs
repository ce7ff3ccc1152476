//! `cargo xtask dist`: the archive of a release for one target, with its checksums and its SBOM.
//!
//! Two runs write the same bytes: entries are sorted, owners and times are fixed, and paths of this machine are not in the
//! binary. `SOURCE_DATE_EPOCH` sets the time of all entries; otherwise it is the time of the last commit.

mod archive;
pub(crate) mod check;
mod dependencies;
mod image;
mod licences;
mod machine_paths;
mod sbom;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, ensure};
use flate2::Compression;
use sha2::{Digest as _, Sha256};
use xshell::cmd;

use crate::flags;
use crate::project::Project;
use machine_paths::MachinePaths;

/// The shells with a completion script, and the names of their files.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "zeph.bash"),
    ("fish", "zeph.fish"),
    ("zsh", "_zeph"),
];
/// Files of the checkout that the archive contains.
const FILES: &[&str] = &[
    "CHANGELOG.md",
    "Containerfile",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
];

/// The files that one run writes.
pub(crate) struct Dist {
    pub(crate) archive: PathBuf,
    pub(crate) sbom: PathBuf,
    pub(crate) checksums: PathBuf,
    /// The folder with the unpacked content of the archive.
    pub(crate) content: PathBuf,
}

pub(crate) fn run(project: &Project, flags: &flags::Dist) -> Result<()> {
    let target = match &flags.target {
        Some(target) => target.clone(),
        None => host(project)?,
    };
    let binary = match &flags.binary {
        Some(binary) => binary.clone(),
        None => build(project, &target)?,
    };
    let folder = project.target_dir()?.join("dist");
    let dist = write(project, &target, &binary, Compression::best(), &folder)?;
    for file in [&dist.archive, &dist.sbom, &dist.checksums] {
        let size = std::fs::metadata(file)?.len();
        println!("{} ({:.1} MB)", file.display(), size as f64 / 1e6);
    }
    Ok(())
}

/// The target of this machine.
pub(crate) fn host(project: &Project) -> Result<String> {
    let sh = &project.sh;
    let printed = cmd!(sh, "rustc -vV").quiet().read()?;
    let host = printed.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` prints no host")?.to_owned())
}

/// Builds the release binary without paths of this machine.
fn build(project: &Project, target: &str) -> Result<PathBuf> {
    let paths = MachinePaths::of(project)?;
    let c_flags = std::env::var("CFLAGS").unwrap_or_default() + " " + &paths.c_flags();
    let cargo = project.cargo("build --release --locked -p zeph --bin zeph --target");
    let cargo = cargo.arg(target).env("RUSTFLAGS", paths.rust_flags());
    cargo.env("CFLAGS", c_flags.trim()).run()?;
    let folder = project.target_dir()?.join(target).join("release");
    let binary = folder.join("zeph");
    paths.ensure_absent(&binary)?;
    Ok(binary)
}

/// Writes the archive of `binary`, its SBOM and the checksums of both into `folder`.
///
/// # Errors
/// The binary does not run, or a file cannot be written.
pub(crate) fn write(
    project: &Project,
    target: &str,
    binary: &Path,
    compression: Compression,
    folder: &Path,
) -> Result<Dist> {
    let version = version(project)?;
    let name = format!("zeph-{version}-{target}");
    let content = folder.join("content").join(&name);
    if content.exists() {
        std::fs::remove_dir_all(&content)?;
    }
    std::fs::create_dir_all(&content)?;
    let dependencies = dependencies::of_binary(project, target)?;

    std::fs::copy(binary, content.join("zeph")).with_context(|| binary.display().to_string())?;
    for file in FILES {
        std::fs::copy(project.root.join(file), content.join(file))
            .with_context(|| (*file).to_owned())?;
    }
    generate(project, binary, &content)?;
    let notices = licences::notices(&dependencies)?;
    std::fs::write(content.join("THIRD-PARTY-LICENSES.txt"), notices)?;
    image::check_parts(&content)?;

    let archive = folder.join(format!("{name}.tar.gz"));
    archive::write(&content, &name, epoch(project), compression, &archive)?;
    let sbom = folder.join(format!("{name}.cdx.json"));
    std::fs::write(&sbom, sbom::cyclonedx(&version, &dependencies))?;
    let checksums = folder.join(format!("{name}.sha256"));
    let lines = [&archive, &sbom].map(|file| checksum(file));
    let lines: Result<String> = lines.into_iter().collect();
    std::fs::write(&checksums, lines?)?;
    Ok(Dist {
        archive,
        sbom,
        checksums,
        content,
    })
}

/// The version of the binary.
pub(crate) fn version(project: &Project) -> Result<String> {
    let package = project.packages().find(|package| package["name"] == "zeph");
    let version = package.and_then(|package| package["version"].as_str());
    Ok(version
        .context("the workspace has no package `zeph`")?
        .to_owned())
}

/// Writes the completion scripts and the manual pages, which the binary prints.
fn generate(project: &Project, binary: &Path, content: &Path) -> Result<()> {
    let sh = &project.sh;
    let home = sh.create_temp_dir()?;
    let _home = sh.push_env("HOME", home.path());
    let completions = content.join("completions");
    std::fs::create_dir_all(&completions)?;
    for (shell, file) in COMPLETIONS {
        let script = cmd!(sh, "{binary} completions {shell}").quiet().read()?;
        std::fs::write(completions.join(file), script + "\n")?;
    }
    let pages = content.join("man/man1");
    cmd!(sh, "{binary} man --dir {pages}")
        .quiet()
        .ignore_stdout()
        .run()?;
    ensure!(
        pages.join("zeph.1").exists(),
        "`zeph man --dir` did not write zeph.1"
    );
    Ok(())
}

/// The time of all entries in seconds since 1970.
fn epoch(project: &Project) -> u64 {
    let set = std::env::var("SOURCE_DATE_EPOCH").ok();
    let commit = || {
        let log = project.sh.cmd("git").args(["log", "-1", "--format=%ct"]);
        log.quiet().ignore_stderr().read().ok()
    };
    let text = set.or_else(commit).unwrap_or_default();
    text.trim().parse().unwrap_or(0)
}

/// A line that `sha256sum --check` reads.
fn checksum(file: &Path) -> Result<String> {
    let bytes = std::fs::read(file).with_context(|| file.display().to_string())?;
    let hash = Sha256::digest(&bytes);
    let hex: String = hash.iter().map(|byte| format!("{byte:02x}")).collect();
    let name = file.file_name().unwrap_or_default().to_string_lossy();
    Ok(format!("{hex}  {name}\n"))
}

//! Packages of the crates: each has its required files, no fixtures and no state, and a bounded size.

use anyhow::{Context, Result};

use crate::project::{Project, verdict};

/// Maximum size of a package in bytes.
const MAX_PACKAGE_BYTES: u64 = 1_000_000;

/// Packages every crate and checks the packages.
///
/// # Errors
/// A package has a finding, or cargo refuses to package a crate.
pub(crate) fn run(project: &Project) -> Result<()> {
    let args = "package --workspace --exclude xtask --allow-dirty --no-verify --quiet";
    // The index of a fetched lock file suffices. Online, cargo asks the registry about each crate, for 40 seconds.
    if project.cargo(args).arg("--offline").run().is_err() {
        project.cargo(args).run()?;
    }
    let folder = project.target_dir()?.join("package");
    let mut findings = Vec::new();
    for package in project.packages() {
        let Some(name) = package["name"].as_str().filter(|name| *name != "xtask") else {
            continue;
        };
        let version = package["version"].as_str().unwrap_or_default();
        let archive = folder.join(format!("{name}-{version}.crate"));
        let size = std::fs::metadata(&archive)
            .with_context(|| archive.display().to_string())?
            .len();
        println!("{name:<14} {:>5} kB", size.div_ceil(1000));
        if size > MAX_PACKAGE_BYTES {
            findings.push(format!(
                "{name}: the package has {size} bytes, the limit is {MAX_PACKAGE_BYTES}"
            ));
        }
        let sh = &project.sh;
        let list = xshell::cmd!(sh, "tar -tzf {archive}").quiet().read()?;
        let prefix = format!("{name}-{version}/");
        let files: Vec<&str> = list
            .lines()
            .map(|file| file.strip_prefix(&prefix).unwrap_or(file))
            .collect();
        findings.extend(package_findings(name, &files));
    }
    verdict("packages", &findings)
}

/// The missing and the unexpected files of a package.
fn package_findings(package: &str, files: &[&str]) -> Vec<String> {
    let mut findings = Vec::new();
    for needed in ["Cargo.toml", "README.md"] {
        if !files.contains(&needed) {
            findings.push(format!("{package}: {needed} is not packaged"));
        }
    }
    if !files
        .iter()
        .any(|file| file.ends_with("src/lib.rs") || file.ends_with("src/main.rs"))
    {
        findings.push(format!(
            "{package}: neither src/lib.rs nor src/main.rs is packaged"
        ));
    }
    for file in files {
        let name = file.rsplit('/').next().unwrap_or(file);
        let state = [".db", ".sqlite", ".log", ".profraw", ".crate"];
        if file.starts_with("target/")
            || name.starts_with(".env")
            || ["fixtures/", "snapshots/", "proptest-regressions/"]
                .iter()
                .any(|data| file.contains(data))
            || state.iter().any(|ending| name.ends_with(ending))
        {
            findings.push(format!("{package}: {file} does not belong into a package"));
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-2, PKG-6.
    #[test]
    fn package_has_its_files_and_no_state() {
        let check = |files: &[&str], expect: &[&str]| {
            assert_eq!(package_findings("p", files), expect, "{files:?}");
        };
        check(&["Cargo.toml", "README.md", "src/lib.rs"], &[]);
        check(&["Cargo.toml", "README.md", "crates/zeph/src/main.rs"], &[]);
        check(
            &["Cargo.toml", "src/lib.rs"],
            &["p: README.md is not packaged"],
        );
        check(
            &["Cargo.toml", "README.md"],
            &["p: neither src/lib.rs nor src/main.rs is packaged"],
        );
        check(
            &[
                "Cargo.toml",
                "README.md",
                "src/lib.rs",
                "target/x",
                "a/zeph.db",
                ".env.local",
                "tests/fixtures/a.txt",
            ],
            &[
                "p: target/x does not belong into a package",
                "p: a/zeph.db does not belong into a package",
                "p: .env.local does not belong into a package",
                "p: tests/fixtures/a.txt does not belong into a package",
            ],
        );
    }
}

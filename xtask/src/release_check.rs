//! `cargo xtask release-check`: every crate packages with its required files, and the release binary is
//! within its size limit.

use anyhow::{Context, Result, ensure};

use crate::ci::release_build;
use crate::project::{Project, verdict};

/// Maximum size of the release binary in bytes (D-40).
const MAX_BINARY_BYTES: u64 = 45_000_000;

pub(crate) fn run(project: &Project) -> Result<()> {
    let mut findings = Vec::new();
    for package in project.packages() {
        let Some(name) = package["name"].as_str().filter(|name| *name != "xtask") else {
            continue;
        };
        let list = project
            .cargo("package --allow-dirty --list --package")
            .arg(name)
            .read()?;
        let files: Vec<&str> = list.lines().collect();
        findings.extend(package_findings(name, &files));
    }
    verdict("packages", &findings)?;

    let args = "package --workspace --exclude xtask --allow-dirty --no-verify";
    project.cargo(args).run()?;

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

    #[test]
    fn a_package_has_what_it_needs_and_no_state() {
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
            ],
            &[
                "p: target/x does not belong into a package",
                "p: a/zeph.db does not belong into a package",
                "p: .env.local does not belong into a package",
            ],
        );
    }
}

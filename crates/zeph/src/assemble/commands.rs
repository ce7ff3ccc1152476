//! The custom commands, and the trust of the user in those of a project.
//!
//! The data folder has one file for each approved project: the SHA-256 of all files in its folder of commands. If one of
//! them changes, no command of the project is used.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use zeph_core::custom_commands::{CommandFolder, RefusedFile, read_folder};
use zeph_core::{CustomCommands, ModelSource, is_built_in};
use zeph_llm::LlmProvider;
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::plural::pluralize;

use super::provider::{chosen_config, meant, with_substitutes};
use crate::config::{Environment, Loaded, of_project, project_root};

/// A project's commands, from the project's directory.
const PROJECT_COMMANDS: &str = ".zeph/commands";
/// The most bytes of a pin.
const MAX_PIN: u64 = 64 * 1024;

/// The trust in the commands of a project.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandTrust {
    /// The user approved the content of the folder.
    Trusted,
    /// The user never approved it.
    New,
    /// The user approved another content.
    Changed,
}

/// The folders of commands, as they were read.
#[derive(Debug)]
pub(crate) struct CommandFolders {
    /// Those of the user.
    pub(crate) user: CommandFolder,
    /// The folder of the project and its commands; `None` if it does not exist.
    pub(crate) project: Option<(PathBuf, CommandFolder)>,
    /// The trust in the commands of the project.
    pub(crate) trust: CommandTrust,
}

impl CommandFolders {
    /// Reads the folders of the user and of the project.
    pub(crate) fn read(loaded: &Loaded, env: &Environment) -> Self {
        let own = match env.config_home() {
            Some(folder) => folder.join("zeph/commands"),
            None => loaded.paths.user_file.with_file_name("commands"),
        };
        let project = of_project(env, PROJECT_COMMANDS);
        let project = project.map(|folder| {
            let read = read_folder(&folder, true);
            (folder, read)
        });
        let pins = CommandPins::in_folder(&loaded.paths.data_dir);
        let trust = match &project {
            Some((folder, read)) => pins.trust(folder, &read.sha256),
            None => CommandTrust::New,
        };
        Self {
            user: read_folder(&own, false),
            project,
            trust,
        }
    }

    /// The usable commands, and the notices about the others.
    pub(crate) fn usable(self, models: Arc<dyn ModelSource>) -> (CustomCommands, Vec<String>) {
        let mut notices = Vec::new();
        let project = match (self.project, self.trust) {
            (None, _) => CommandFolder::default(),
            (Some((_, read)), CommandTrust::Trusted) => read,
            (Some((folder, read)), trust) => {
                let count = read.items.len() + read.refused.len();
                let reason = match trust {
                    CommandTrust::Changed => "changed since you trusted them",
                    _ => "are not trusted",
                };
                if count > 0 {
                    notices.push(format!(
                        "the commands of this project {reason} and are not used ({} in {}): \
                         `zeph commands trust` shows and approves them",
                        pluralize(count, "file"),
                        folder.display()
                    ));
                }
                CommandFolder::default()
            }
        };
        let (commands, refused) = CustomCommands::new(self.user, project, is_built_in);
        let refused = refused.iter().map(|RefusedFile { file, reason }| {
            format!("{} is not used as a command: {reason}", file.display())
        });
        notices.extend(refused);
        (commands.with_models(models), notices)
    }
}

/// The providers for commands that name a model.
pub(super) struct CommandModels {
    loaded: Loaded,
    env: Environment,
    /// `--model`.
    model: Option<String>,
}

impl CommandModels {
    pub(super) fn new(loaded: Loaded, env: Environment, model: Option<String>) -> Self {
        Self { loaded, env, model }
    }
}

impl ModelSource for CommandModels {
    fn provider(&self, name: &str) -> Result<Arc<dyn LlmProvider>, String> {
        let current = chosen_config(&self.loaded, &self.env, self.model.as_deref());
        let current = current.map_err(|error| format!("{error:#}"))?;
        let config = meant(&self.loaded, &current, name);
        with_substitutes(&config, &self.loaded, &self.env).map_err(|error| format!("{error:#}"))
    }
}

/// An approved folder of commands.
#[derive(Debug, Serialize, Deserialize)]
struct CommandPin {
    /// The project's directory, for reading.
    project: String,
    /// The SHA-256 of all files, in hex.
    sha256: String,
}

/// The approvals of the user: one file for each project.
#[derive(Debug)]
pub(crate) struct CommandPins {
    folder: PathBuf,
}

impl CommandPins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("command-trust"),
        }
    }

    /// Those of the agents of projects, in the data folder.
    pub(crate) fn for_agents(data_dir: &Path) -> Self {
        Self {
            folder: data_dir.join("agent-trust"),
        }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The trust in a project's folder with this content. An unreadable pin approves nothing.
    pub(super) fn trust(&self, commands: &Path, sha256: &str) -> CommandTrust {
        let pin = self.file(commands).and_then(|file| read_pin(&file));
        match pin {
            Ok(pin) if pin.sha256 == sha256 => CommandTrust::Trusted,
            Err(error) if error.kind() == io::ErrorKind::NotFound => CommandTrust::New,
            Ok(_) | Err(_) => CommandTrust::Changed,
        }
    }

    /// Approves the content of a project's folder of commands.
    ///
    /// # Errors
    /// An error of the system; the previous approval stays in force.
    pub(crate) fn put(&self, commands: &Path, sha256: &str) -> io::Result<()> {
        let pin = CommandPin {
            project: real_path(project_root(commands))?.display().to_string(),
            sha256: sha256.to_owned(),
        };
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(&self.folder)?;
        // Temporary files have mode 0600.
        let mut temporary = tempfile::NamedTempFile::new_in(&self.folder)?;
        temporary.write_all(&serde_json::to_vec(&pin)?)?;
        temporary.as_file().sync_all()?;
        temporary
            .persist(self.file(commands)?)
            .map_err(|error| error.error)?;
        fs::File::open(&self.folder)?.sync_all()
    }

    /// Removes the approval of a project's commands, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn remove(&self, commands: &Path) -> io::Result<bool> {
        match fs::remove_file(self.file(commands)?) {
            Ok(()) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    fn file(&self, commands: &Path) -> io::Result<PathBuf> {
        let root = real_path(project_root(commands))?;
        let key = hex_digest(root.as_os_str().as_bytes());
        Ok(self.folder.join(key).with_extension("json"))
    }
}

#[allow(
    clippy::disallowed_methods,
    reason = "a project is known by its real path; its commands are pinned by their content"
)]
fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

fn read_pin(file: &Path) -> io::Result<CommandPin> {
    let mut options = OpenOptions::new();
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let mut bytes = Vec::new();
    options.open(file)?.take(MAX_PIN).read_to_end(&mut bytes)?;
    serde_json::from_slice(&bytes)
        .map_err(|_| io::Error::new(io::ErrorKind::InvalidData, "it is damaged"))
}

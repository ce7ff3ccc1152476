//! The folders of custom commands and of sub-agents, and the trust of the user in those of a project.
//!
//! The data folder has one file for each approved folder: the SHA-256 of all Markdown files in it. If one of them changes,
//! no definition of the project is used.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeph_core::markdown_folder::{MarkdownFolder, RefusedFile};
use zeph_core::{CustomCommand, SubAgent};
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::plural::pluralize;

use super::trust::real_path;
use crate::config::{Environment, Loaded, of_project, project_root};
use crate::record_folder::RecordFolder;

/// The most bytes of a pin.
const MAX_PIN: u64 = 64 * 1024;

/// A kind of definitions: Markdown files with front matter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DefinitionKind {
    /// Its folder next to the user's configuration, its subcommand, and its name in messages.
    pub(crate) name: &'static str,
    /// Its folder in a project.
    pub(crate) project_folder: &'static str,
    /// One definition, with its article.
    item: &'static str,
    /// The folder of the approvals, in the data folder.
    pins: &'static str,
}

/// Custom commands.
pub(crate) const COMMANDS: DefinitionKind = DefinitionKind {
    name: "commands",
    project_folder: ".zeph/commands",
    item: "a command",
    pins: "command-trust",
};

/// Sub-agents.
pub(crate) const AGENTS: DefinitionKind = DefinitionKind {
    name: "agents",
    project_folder: ".zeph/agents",
    item: "an agent",
    pins: "agent-trust",
};

/// The trust in a project's folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FolderTrust {
    /// The user approved the content of the folder.
    Trusted,
    /// The user never approved it.
    New,
    /// The user approved another content.
    Changed,
}

impl FolderTrust {
    /// Its name in lists.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Trusted => "trusted",
            Self::New => "untrusted",
            Self::Changed => "changed",
        }
    }
}

/// The folders of one kind, as they were read.
#[derive(Debug)]
pub(crate) struct DefinitionFolders<T> {
    /// The kind.
    pub(crate) kind: DefinitionKind,
    /// The folder of the user.
    pub(crate) user: MarkdownFolder<T>,
    /// The folder of the project and its definitions; `None` if it does not exist.
    pub(crate) project: Option<(PathBuf, MarkdownFolder<T>)>,
    /// The trust in the definitions of the project.
    pub(crate) trust: FolderTrust,
}

/// The folders of custom commands.
pub(crate) type CommandFolders = DefinitionFolders<CustomCommand>;

/// The folders of sub-agents.
pub(crate) type AgentFolders = DefinitionFolders<SubAgent>;

impl CommandFolders {
    /// Reads the custom commands of the user and of the project.
    pub(crate) fn of_commands(loaded: &Loaded, env: &Environment) -> Self {
        Self::read(
            COMMANDS,
            zeph_core::custom_commands::read_folder,
            loaded,
            env,
        )
    }
}

impl AgentFolders {
    /// Reads the sub-agents of the user and of the project.
    pub(crate) fn of_agents(loaded: &Loaded, env: &Environment) -> Self {
        Self::read(AGENTS, zeph_core::sub_agents::read_sub_agents, loaded, env)
    }
}

impl<T> DefinitionFolders<T> {
    fn read(
        kind: DefinitionKind,
        read: fn(&Path, bool) -> MarkdownFolder<T>,
        loaded: &Loaded,
        env: &Environment,
    ) -> Self {
        let own = match env.config_home() {
            Some(folder) => folder.join("zeph").join(kind.name),
            None => loaded.paths.user_file.with_file_name(kind.name),
        };
        let project = of_project(env, kind.project_folder).map(|folder| {
            let read = read(&folder, true);
            (folder, read)
        });
        let pins = FolderPins::new(kind, &loaded.paths.data_dir);
        let trust = match &project {
            Some((folder, read)) => pins.trust(folder, &read.sha256),
            None => FolderTrust::New,
        };
        Self {
            kind,
            user: read(&own, false),
            project,
            trust,
        }
    }

    /// The definitions of the user, those of the project if they are trusted, and a notice if they are not.
    pub(super) fn usable(self) -> (MarkdownFolder<T>, MarkdownFolder<T>, Option<String>) {
        let (folder, read) = match self.project {
            None => return (self.user, MarkdownFolder::default(), None),
            Some((_, read)) if self.trust == FolderTrust::Trusted => {
                return (self.user, read, None);
            }
            Some(project) => project,
        };
        let reason = match self.trust {
            FolderTrust::Changed => "changed since you trusted them",
            _ => "are not trusted",
        };
        let name = self.kind.name;
        let count = read.items.len() + read.refused.len();
        let notice = format!(
            "the {name} of this project {reason} and are not used ({} in {}): `zeph {name} trust` shows and approves them",
            pluralize(count, "file"),
            folder.display()
        );
        (
            self.user,
            MarkdownFolder::default(),
            (count > 0).then_some(notice),
        )
    }

    /// The refused files of the user and of the project.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &RefusedFile> {
        let project = self.project.iter().flat_map(|(_, read)| &read.refused);
        self.user.refused.iter().chain(project)
    }
}

impl DefinitionKind {
    /// The notice about a refused file.
    pub(super) fn refusal(self, refused: &RefusedFile) -> String {
        let file = refused.file.display();
        format!("{file} is not used as {}: {}", self.item, refused.reason)
    }
}

/// An approved folder.
#[derive(Debug, Serialize, Deserialize)]
struct FolderPin {
    /// The project's directory, for reading.
    project: String,
    /// The SHA-256 of all Markdown files, in hex.
    sha256: String,
}

/// The approvals of the user: one file for each project.
#[derive(Debug)]
pub(crate) struct FolderPins {
    records: RecordFolder,
}

impl FolderPins {
    /// The approvals of one kind, in the data folder.
    pub(crate) fn new(kind: DefinitionKind, data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join(kind.pins)),
        }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        self.records.path()
    }

    /// The trust in a project's folder with this content. An unreadable pin approves nothing.
    fn trust(&self, folder: &Path, sha256: &str) -> FolderTrust {
        let read = |name: String| self.records.read_json::<FolderPin>(&name, MAX_PIN);
        match record_name(folder).and_then(read) {
            Ok(Some(pin)) if pin.sha256 == sha256 => FolderTrust::Trusted,
            Ok(None) => FolderTrust::New,
            Err(error) if error.kind() == io::ErrorKind::NotFound => FolderTrust::New,
            Ok(Some(_)) | Err(_) => FolderTrust::Changed,
        }
    }

    /// Approves the content of a project's folder.
    ///
    /// # Errors
    /// An error of the system; the previous approval stays in force.
    pub(crate) fn put(&self, folder: &Path, sha256: &str) -> io::Result<()> {
        let pin = FolderPin {
            project: real_path(project_root(folder))?.display().to_string(),
            sha256: sha256.to_owned(),
        };
        self.records.write_json(&record_name(folder)?, &pin)
    }

    /// Removes the approval of a project's folder, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn remove(&self, folder: &Path) -> io::Result<bool> {
        self.records.remove(&record_name(folder)?)
    }
}

fn record_name(folder: &Path) -> io::Result<String> {
    let root = real_path(project_root(folder))?;
    Ok(hex_digest(root.as_os_str().as_bytes()))
}

//! Trust in the filter rules of projects.
//!
//! A project's rules decide which output the model does not read, so a cloned repository must not bring any.
//! `.zeph/filters.toml` is used only after the user has seen and approved this text. The data folder has one pin for
//! each project: the SHA-256 and the text, so that a later change can be shown as a diff. The hashed text is the
//! parsed text: the file is read once.

use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::filter::MAX_FILE;

use crate::config::{Environment, PROJECT_FILTERS, of_project, project_root};
use crate::record_folder::{self, RecordFolder};

/// The most bytes of a pin: the text of the rules, escaped, and a path.
const MAX_PIN: u64 = 8 * MAX_FILE as u64;

/// The file with a project's rules, as it was read.
#[derive(Debug)]
pub(crate) struct ProjectRules {
    /// The file.
    pub(crate) file: PathBuf,
    /// The project's directory, links followed.
    pub(crate) root: PathBuf,
    /// The text of the file.
    pub(crate) text: String,
    /// The SHA-256 of the text, in hex.
    pub(crate) sha256: String,
}

impl ProjectRules {
    /// The file of the current project, found like its configuration; `None` if it does not exist.
    pub(crate) fn find(env: &Environment) -> Option<PathBuf> {
        of_project(env, PROJECT_FILTERS)
    }

    /// Reads `file`.
    ///
    /// # Errors
    /// An error of the system, or the file is not a regular file, is outside the project, is too large, or is not
    /// UTF-8.
    pub(crate) fn read(file: PathBuf) -> io::Result<Self> {
        let root = real_path(project_root(&file))?;
        let real = real_path(&file)?;
        if !real.starts_with(&root) {
            return Err(io::Error::other(
                "it is a link to a file outside the project",
            ));
        }
        // Its links were followed: one that takes its place now is not.
        let text = read_text(&real, OFlags::NOFOLLOW)?;
        Ok(Self {
            file,
            root,
            sha256: hex_digest(text.as_bytes()),
            text,
        })
    }

    /// Whether `other` is the same file as `file`, by another name too.
    pub(crate) fn is_file(file: &Path, other: &Path) -> bool {
        match (fs::metadata(file), fs::metadata(other)) {
            (Ok(one), Ok(other)) => (one.dev(), one.ino()) == (other.dev(), other.ino()),
            _ => false,
        }
    }
}

/// The text of a file of rules. The function does not wait for a pipe: it refuses a file that is not a regular file.
///
/// # Errors
/// As [`ProjectRules::read`].
pub(super) fn read_text(file: &Path, flags: OFlags) -> io::Result<String> {
    let mut options = OpenOptions::new();
    let flags = flags | OFlags::NONBLOCK;
    options.read(true).custom_flags(flags.bits().cast_signed());
    let opened = options.open(file)?;
    let found = opened.metadata()?;
    if !found.is_file() {
        return Err(io::Error::other("it is not a regular file"));
    }
    let mut bytes = Vec::new();
    opened.take(MAX_FILE as u64 + 1).read_to_end(&mut bytes)?;
    if bytes.len() > MAX_FILE {
        return Err(io::Error::other(format!(
            "it has {} bytes, and the limit is {MAX_FILE} bytes",
            found.len().max(bytes.len() as u64)
        )));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8"))
}

/// The real path, links followed.
#[allow(
    clippy::disallowed_methods,
    reason = "a project is known by its real path; what is read is pinned by its content"
)]
pub(super) fn real_path(path: &Path) -> io::Result<PathBuf> {
    path.canonicalize()
}

/// An approved file of rules.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Pin {
    /// The project's directory, for reading.
    pub(crate) project: String,
    /// The SHA-256 of the text, in hex.
    pub(crate) sha256: String,
    /// The text.
    pub(crate) text: String,
}

/// How far a project's rules are trusted.
#[derive(Debug)]
pub(crate) enum Standing {
    /// This text was approved.
    Trusted,
    /// No text was ever approved.
    New,
    /// Another text was approved.
    Changed(Pin),
    /// The pin cannot be read: nothing is trusted.
    Unknown(io::Error),
}

/// The pins of all projects.
#[derive(Debug)]
pub(crate) struct Pins {
    records: RecordFolder,
}

impl Pins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join("filter-trust")),
        }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        self.records.path()
    }

    /// How far `rules` are trusted.
    pub(crate) fn standing(&self, rules: &ProjectRules) -> Standing {
        match self.of(&rules.root) {
            Ok(Some(pin)) if pin.sha256 == rules.sha256 => Standing::Trusted,
            Ok(Some(pin)) => Standing::Changed(pin),
            Ok(None) => Standing::New,
            Err(error) => Standing::Unknown(error),
        }
    }

    /// The pin of the project with the real path `root`.
    ///
    /// # Errors
    /// If the pin cannot be read or is damaged.
    fn of(&self, root: &Path) -> io::Result<Option<Pin>> {
        let bytes = self.records.read(&record_name(root), MAX_PIN)?;
        bytes.map(|bytes| parse_pin(&bytes)).transpose()
    }

    /// Pins the rules of a project and replaces the previous pin.
    ///
    /// # Errors
    /// An error of the system; the previous pin stays in force.
    pub(crate) fn put(&self, rules: &ProjectRules) -> io::Result<()> {
        let pin = Pin {
            project: rules.root.display().to_string(),
            sha256: rules.sha256.clone(),
            text: rules.text.clone(),
        };
        self.records.write_json(&record_name(&rules.root), &pin)
    }

    /// Removes the pin of the current project and returns its directory; `None` if it has no pin.
    ///
    /// If no directory has a file of rules, the nearest pinned directory counts, from the working directory upwards.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn take_back(&self, env: &Environment) -> io::Result<Option<PathBuf>> {
        let file = ProjectRules::find(env);
        let directory = real_path(file.as_deref().map_or(&env.cwd, project_root))?;
        let most = if file.is_some() { 1 } else { usize::MAX };
        for root in directory.ancestors().take(most) {
            if self.records.remove(&record_name(root))? {
                return Ok(Some(root.to_owned()));
            }
        }
        Ok(None)
    }

    /// All pins, sorted by project, without damaged ones.
    ///
    /// # Errors
    /// If the folder cannot be read.
    pub(crate) fn all(&self) -> io::Result<Vec<Pin>> {
        let records = self.records.all(MAX_PIN)?;
        let mut pins: Vec<Pin> = records
            .filter_map(|(_, bytes)| parse_pin(&bytes).ok())
            .collect();
        pins.sort_by(|one, other| one.project.cmp(&other.project));
        Ok(pins)
    }
}

fn record_name(root: &Path) -> String {
    hex_digest(root.as_os_str().as_bytes())
}

/// Parses a pin; it is damaged unless the hash matches the text.
fn parse_pin(bytes: &[u8]) -> io::Result<Pin> {
    let pin: Pin = record_folder::parse(bytes)?;
    if hex_digest(pin.text.as_bytes()) != pin.sha256 {
        return Err(record_folder::damaged());
    }
    Ok(pin)
}

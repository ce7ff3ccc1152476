//! The available skills, and the trust of the user in those of a project.
//!
//! The data folder has one file for each approved skill of a project: the SHA-256 of the complete folder of the
//! skill. If anything in it changes, the skill is untrusted again.

use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use zeph_core::native::skills::{FoundSkills, SkillDirs, SkillHost, SkillTrust, find as found};
use zeph_tools::ToolRegistry;
use zeph_tools::audit::chain::hex_digest;
use zeph_tools::skill::Skill;

use super::trust::real_path;
use crate::config::permissions::kind_of;
use crate::config::{Environment, Loaded, of_project, project_directories, project_root};
use crate::record_folder::RecordFolder;

/// A project's skills, from the project's directory.
const PROJECT_SKILLS: &str = ".zeph/skills";
/// The most bytes of a pin.
const MAX_PIN: u64 = 64 * 1024;

/// Reads the skills of the user and of the project; `registry` holds all other tools.
pub(super) fn find(loaded: &Loaded, env: &Environment, registry: &ToolRegistry) -> FoundSkills {
    let paths = &loaded.paths;
    let own = match env.config_home() {
        Some(folder) => folder.join("zeph/skills"),
        None => paths.user_file.with_file_name("skills"),
    };
    let project = of_project(env, PROJECT_SKILLS).map(|folder| project_root(&folder).to_owned());
    let pins = SkillPins::in_folder(&paths.data_dir);
    let root = project
        .as_deref()
        .and_then(|project| real_path(project).ok());
    let places = SkillDirs {
        user: Some(own),
        project,
    };
    found(
        &places,
        &SkillHost {
            standing: &|name, sha256| match &root {
                Some(root) => pins.standing(root, name, sha256),
                None => SkillTrust::New,
            },
            is_tool: &|id| registry.get(id).is_some() || kind_of(id).is_some(),
            variable: &|name| env.var(name)?.to_str().map(str::to_owned),
        },
    )
}

/// An approved skill.
#[derive(Debug, Serialize, Deserialize)]
struct SkillPin {
    /// The project's directory, for reading.
    project: String,
    /// The skill.
    skill: String,
    /// The SHA-256 of all that its folder holds, in hex.
    sha256: String,
}

/// The pins of project skills that the user trusts.
#[derive(Debug)]
pub(crate) struct SkillPins {
    records: RecordFolder,
}

impl SkillPins {
    /// Those in the data folder.
    pub(crate) fn in_folder(data_dir: &Path) -> Self {
        Self {
            records: RecordFolder::new(data_dir.join("skill-trust")),
        }
    }

    /// The folder, which file tools must not change.
    pub(crate) fn folder(&self) -> &Path {
        self.records.path()
    }

    /// An unreadable pin does not trust the skill.
    fn standing(&self, root: &Path, name: &str, sha256: &str) -> SkillTrust {
        let record = record_name(root, name);
        match self.records.read_json::<SkillPin>(&record, MAX_PIN) {
            Ok(Some(pin)) if pin.sha256 == sha256 && pin.skill == name => SkillTrust::Trusted,
            Ok(None) => SkillTrust::New,
            Ok(Some(_)) | Err(_) => SkillTrust::Changed,
        }
    }

    /// Pins the content of a project's skill and replaces the previous pin.
    ///
    /// # Errors
    /// An error of the system; the previous pin stays in force.
    pub(crate) fn put(&self, skill: &Skill) -> io::Result<()> {
        let root = root_of(skill)?;
        let pin = SkillPin {
            project: root.display().to_string(),
            skill: skill.name.clone(),
            sha256: skill.sha256.clone(),
        };
        let name = record_name(&root, &skill.name);
        self.records.write_json(&name, &pin)
    }

    /// Removes the pin of a skill of the current project, and returns whether there was one.
    ///
    /// # Errors
    /// An error of the system.
    pub(crate) fn take_back(&self, env: &Environment, name: &str) -> io::Result<bool> {
        let roots = match of_project(env, PROJECT_SKILLS) {
            Some(folder) => vec![project_root(&folder).to_owned()],
            None => project_directories(env).0,
        };
        let mut was_trusted = false;
        for root in roots {
            was_trusted |= self
                .records
                .remove(&record_name(&real_path(&root)?, name))?;
        }
        Ok(was_trusted)
    }
}

fn record_name(root: &Path, name: &str) -> String {
    let mut key = root.as_os_str().as_bytes().to_vec();
    key.push(0);
    key.extend(name.bytes());
    hex_digest(&key)
}

/// The project's directory of a skill (`DIR/.zeph/skills/NAME`), links followed.
fn root_of(skill: &Skill) -> io::Result<PathBuf> {
    let skills = skill.folder.parent().unwrap_or(&skill.folder);
    real_path(project_root(skills))
}

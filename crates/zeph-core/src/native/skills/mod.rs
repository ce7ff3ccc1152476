//! Skills: folders with a `SKILL.md`, and the tools `load_skill` and `invoke_skill`.
//!
//! `front_matter` interprets front matter, `package` reads the folder of a skill, and `tools` serves the tools.
//! [`zeph_tools::skill`] holds the part that the gates use.

mod front_matter;
pub(crate) mod package;
mod tools;

use std::fmt::Write as _;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::fs::{self, FileType, Mode, OFlags};
use rustix::io::Errno;
use zeph_tools::skill::{Skill, SkillRegistry};
use zeph_tools::{SkillEnv, TrustLevel};

pub(crate) use crate::front_matter::hides;
pub use crate::front_matter::yaml;
pub use package::{SKILL_FILE, SkillFile};
pub use tools::{SkillExecutor, prompt};

/// Skills of one directory.
const MAX_SKILLS: usize = 64;
/// Bytes of a name.
const MAX_NAME_BYTES: usize = 64;
/// Bytes of the definitions of all declared tools in a request.
const MAX_DEFINITIONS_BYTES: usize = 8 * 1024;

/// The directories of skills.
#[derive(Debug, Clone, Default)]
pub struct SkillDirs {
    /// The user's own directory of skills.
    pub user: Option<PathBuf>,
    /// The project's directory, with skills in `.zeph/skills`.
    pub project: Option<PathBuf>,
}

/// The trust in a project's skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SkillTrust {
    /// The user trusts the content of the folder.
    Trusted,
    /// The user never trusted it.
    New,
    /// The user trusted another content.
    Changed,
}

/// A folder that is not used as a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RefusedSkill {
    /// The folder.
    pub folder: PathBuf,
    /// Whether it belongs to the project.
    pub of_project: bool,
    /// The reason.
    pub reason: String,
}

/// The result of a search for skills.
#[derive(Debug, Clone, Default)]
pub struct FoundSkills {
    /// The usable skills, each with its files.
    pub skills: Vec<(Skill, Vec<SkillFile>)>,
    /// The refused skills.
    pub refused: Vec<RefusedSkill>,
}

/// The skills of a conversation.
#[derive(Debug, Clone, Default)]
pub struct SkillCatalog {
    /// The usable skills.
    pub skills: Arc<SkillRegistry>,
    /// The refused skills.
    pub refused: Vec<RefusedSkill>,
}

impl From<FoundSkills> for SkillCatalog {
    fn from(found: FoundSkills) -> Self {
        let skills = found.skills.into_iter().map(|(skill, _)| skill).collect();
        Self {
            skills: Arc::new(SkillRegistry::new(skills)),
            refused: found.refused,
        }
    }
}

impl SkillCatalog {
    /// Lists all skills, one line each, and the refused ones with reasons.
    #[must_use]
    pub fn listing(&self) -> String {
        let mut text = String::new();
        for skill in self.skills.all() {
            let place = if skill.of_project { "project" } else { "user" };
            let _ = writeln!(
                text,
                "{:<20} {:<9} {place:<7} {}",
                skill.name,
                standing(skill),
                skill.description
            );
        }
        for refused in &self.refused {
            let place = if refused.of_project {
                "project"
            } else {
                "user"
            };
            let name = refused.folder.file_name().unwrap_or_default().display();
            let _ = writeln!(text, "{name:<20} refused   {place:<7} {}", refused.reason);
        }
        if text.is_empty() {
            text.push_str(
                "no skills: create a folder with a SKILL.md in .zeph/skills of the \
                project, or in zeph/skills next to the user's configuration\n",
            );
        }
        text
    }
}

/// Returns the trust in a skill as one word.
#[must_use]
pub fn standing(skill: &Skill) -> &'static str {
    match skill.trust {
        TrustLevel::Trusted => "trusted",
        _ if skill.changed => "changed",
        _ => "untrusted",
    }
}

/// The functions of the program that the search for skills needs.
pub struct SkillHost<'w> {
    /// The trust in a project's skill with this name and SHA-256.
    pub standing: &'w dyn Fn(&str, &str) -> SkillTrust,
    /// Whether another tool has this name.
    pub is_tool: &'w dyn Fn(&str) -> bool,
    /// A variable of the program's environment.
    pub variable: &'w dyn Fn(&str) -> Option<String>,
}

/// Reads the skills of both directories. The user's come first, and no skill of a project can use their names or the
/// names of their tools.
#[must_use]
pub fn find(places: &SkillDirs, world: &SkillHost<'_>) -> FoundSkills {
    let mut found = FoundSkills::default();
    if let Some(directory) = &places.user {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = fs::open(directory, flags, Mode::empty());
        found.directory(directory, opened, false, world);
    }
    if let Some(project) = &places.project {
        let opened = open_project(project);
        found.directory(&project.join(".zeph/skills"), opened, true, world);
    }
    found
}

/// Opens `.zeph/skills` of a project, without following a link.
fn open_project(project: &Path) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = fs::open(project, flags, Mode::empty())?;
    let own = package::open_directory(&root, ".zeph")?;
    package::open_directory(&own, "skills")
}

impl FoundSkills {
    fn directory(
        &mut self,
        path: &Path,
        opened: Result<OwnedFd, Errno>,
        of_project: bool,
        world: &SkillHost<'_>,
    ) {
        let refuse = |folder: PathBuf, reason: String| RefusedSkill {
            folder,
            of_project,
            reason,
        };
        let listed =
            opened.and_then(|opened| Ok((package::entries(&opened, 8 * MAX_SKILLS)?, opened)));
        let (entries, opened) = match listed {
            Ok(listed) => listed,
            Err(Errno::NOENT) => return,
            Err(error) => {
                let reason = match error {
                    Errno::LOOP | Errno::NOTDIR => {
                        "it is not a directory, or it is a link".to_owned()
                    }
                    error => format!("it cannot be listed: {error}"),
                };
                return self.refused.push(refuse(path.to_owned(), reason));
            }
        };
        let mut count = 0;
        for (name, kind) in entries {
            let Some(name) = name.filter(|name| !name.contains(hides)) else {
                let reason = "a name in it is not UTF-8 or contains control characters".to_owned();
                self.refused.push(refuse(path.to_owned(), reason));
                continue;
            };
            if name.starts_with('.') || !matches!(kind, FileType::Directory | FileType::Symlink) {
                continue;
            }
            count += 1;
            let folder = path.join(&name);
            if count > MAX_SKILLS {
                let reason = format!("there are more than {MAX_SKILLS} skills in its folder");
                self.refused.push(refuse(folder, reason));
                return;
            }
            let read = match kind {
                FileType::Symlink => Err("it is a link: a skill must be a folder, not a \
                    link"
                    .to_owned()),
                _ => self.skill(&opened, &name, &folder, of_project, world),
            };
            match read {
                Ok(skill) => self.skills.push(skill),
                Err(reason) => self.refused.push(refuse(folder, reason)),
            }
        }
    }

    fn skill(
        &self,
        at: &OwnedFd,
        name: &str,
        folder: &Path,
        of_project: bool,
        world: &SkillHost<'_>,
    ) -> Result<(Skill, Vec<SkillFile>), String> {
        let part =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        if name.len() > MAX_NAME_BYTES || !name.bytes().all(part) || name.starts_with(['-', '_']) {
            return Err(format!(
                "the name of a skill may have at most {MAX_NAME_BYTES} lowercase letters, digits, \
                 `-` and `_`"
            ));
        }
        let contents = package::read(at, name)?;
        let said = front_matter::read(contents.text)?;
        if said.name != name {
            return Err(format!(
                "its `name` is {:?}, but its folder is called {name:?}",
                said.name
            ));
        }
        if let Some((other, _)) = self.skills.iter().find(|(other, _)| other.name == name) {
            return Err(format!("{} has the same name", other.folder.display()));
        }
        let own = self.skills.iter().flat_map(|(skill, _)| &skill.tools);
        let mut bytes: usize = own.map(sent_bytes).sum();
        for tool in &said.tools {
            let id = tool.def.id.as_ref();
            let mut others = self.skills.iter();
            let other = others.find(|(skill, _)| skill.tools.iter().any(|tool| tool.def.id == id));
            if let Some((other, _)) = other {
                return Err(format!(
                    "it declares the tool {id}, which the skill {} also declares",
                    other.name
                ));
            }
            if (world.is_tool)(id) {
                return Err(format!(
                    "it declares the tool {id}, and a tool with this name exists"
                ));
            }
            bytes += sent_bytes(tool);
        }
        if bytes > MAX_DEFINITIONS_BYTES {
            return Err(format!(
                "the tools of all skills would take more than {} KiB of each request",
                MAX_DEFINITIONS_BYTES / 1024
            ));
        }
        let standing = match of_project {
            false => SkillTrust::Trusted,
            true => (world.standing)(name, &contents.sha256),
        };
        let trust = match standing {
            SkillTrust::Trusted => TrustLevel::Trusted,
            SkillTrust::New | SkillTrust::Changed => TrustLevel::Untrusted,
        };
        let env_names = said.env.keys().cloned().collect();
        let value = |(name, value): (String, Option<String>)| {
            let value = value.or_else(|| (world.variable)(&name))?;
            Some((name, value))
        };
        let env = match trust {
            TrustLevel::Trusted => said.env.into_iter().filter_map(value).collect(),
            _ => SkillEnv::new(),
        };
        let skill = Skill {
            name: said.name,
            description: said.description,
            body: said.body,
            source: said.source,
            folder: folder.to_owned(),
            of_project,
            trust,
            changed: standing == SkillTrust::Changed,
            sha256: contents.sha256,
            allowed: said.allowed,
            env_names,
            env,
            tools: said.tools,
        };
        Ok((skill, contents.files))
    }
}

fn sent_bytes(tool: &zeph_tools::skill::SkillTool) -> usize {
    let def = &tool.def;
    def.id.len() + def.description.len() + def.parameters.to_string().len() + 70
}

#[cfg(test)]
mod tests;

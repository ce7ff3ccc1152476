//! Skills from the point of view of the gates: their name, their trust level, the tools that they allow, their
//! environment variables, and the tools that they declare.
//!
//! A skill *runs* from the call of `invoke_skill` to the end of the turn. Meanwhile, only tools in its
//! `allowed-tools` may be called; if several skills run, only tools that each of them allows. The text of a skill
//! that was *read*, by `invoke_skill` or by `load_skill`, stays in the context: its trust level applies until the
//! context is cleared.

pub mod template;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value};

use crate::call::ToolCall;
use crate::def::ToolDef;
use crate::error::ToolError;
use crate::executor::SkillEnv;
use crate::registry::ToolRegistry;
use crate::trust::TrustLevel;

pub use template::{Template, TemplateError};

/// The tool that shows a skill.
pub const LOAD_SKILL: &str = "load_skill";
/// The tool that runs a skill.
pub const INVOKE_SKILL: &str = "invoke_skill";
/// The tool that runs the commands of declared tools.
const BASH: &str = "bash";
/// The tools that every skill allows: these can only tighten restrictions, or show known text.
const ALWAYS: [&str; 3] = [LOAD_SKILL, INVOKE_SKILL, "read_overflow"];

/// A tool that a skill declares: a command with parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillTool {
    /// The tool definition for the model.
    pub def: ToolDef,
    /// Its command.
    pub template: Template,
    /// The values of parameters that are missing in a call.
    pub defaults: Map<String, Value>,
}

impl SkillTool {
    /// Returns the call of `bash` that corresponds to `call`.
    ///
    /// # Errors
    /// An error for a value that cannot be inserted into a command.
    pub fn as_command(&self, call: &ToolCall) -> Result<ToolCall, ToolError> {
        let mut values = self.defaults.clone();
        if let Value::Object(given) = &call.params {
            values.extend(given.clone());
        }
        let command = self.template.render(&values);
        let command = command.map_err(|error| ToolError::invalid(error.to_string()))?;
        Ok(ToolCall {
            tool: BASH.to_owned(),
            params: serde_json::json!({ "command": command }),
            ..call.clone()
        })
    }
}

/// An available skill.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Skill {
    /// The name, which is that of its folder.
    pub name: String,
    /// A description in one line.
    pub description: String,
    /// The text of the instructions.
    pub body: String,
    /// The complete text of its file, front matter included.
    pub source: String,
    /// The folder.
    pub folder: PathBuf,
    /// Whether the folder is in the project instead of the home directory of the user.
    pub of_project: bool,
    /// The trust level.
    pub trust: TrustLevel,
    /// Whether it was trusted, and has changed since.
    pub changed: bool,
    /// The SHA-256 of all contents of its folder, in hex.
    pub sha256: String,
    /// The tools that may be used while it runs; `None`: all.
    pub allowed: Option<Vec<String>>,
    /// The names of the variables that it adds to the environment of commands.
    pub env_names: Vec<String>,
    /// The values of those variables; empty while the skill is not trusted.
    pub env: SkillEnv,
    /// The tools that it declares.
    pub tools: Vec<SkillTool>,
}

impl Skill {
    /// Whether the skill allows calls of `tool`. Names in `allowed-tools` may be aliases.
    #[must_use]
    pub fn allows(&self, tool: &str, registry: &ToolRegistry) -> bool {
        let Some(allowed) = &self.allowed else {
            return true;
        };
        let same = |name: &String| registry.get(name).is_some_and(|def| def.id == tool);
        ALWAYS.contains(&tool)
            || self.tools.iter().any(|own| own.def.id == tool)
            || allowed.iter().any(same)
    }

    /// Returns the names of the allowed tools; `None` if all are allowed.
    #[must_use]
    pub fn allowed_words(&self) -> Option<String> {
        let allowed = self.allowed.as_ref()?;
        let own = self.tools.iter().map(|tool| tool.def.id.as_ref());
        let mut names: Vec<&str> = allowed.iter().map(String::as_str).chain(own).collect();
        names.sort_unstable();
        names.dedup();
        Some(match names.is_empty() {
            true => "no tool".to_owned(),
            false => names.join(", "),
        })
    }
}

/// The effects of skills on the calls of a session.
#[derive(Debug, Clone, Default)]
pub struct ActiveSkills {
    /// The skills that run.
    pub running: Vec<Arc<Skill>>,
    /// The lowest trust level of the skills that were read.
    pub trust: TrustLevel,
}

impl ActiveSkills {
    /// Returns the environment variables of the skills that run.
    #[must_use]
    pub fn env(&self) -> SkillEnv {
        let added = self.running.iter().flat_map(|skill| skill.env.clone());
        added.collect()
    }

    /// Returns the first running skill that does not allow `tool`.
    #[must_use]
    pub fn refusing(&self, tool: &str, registry: &ToolRegistry) -> Option<&Skill> {
        let mut running = self.running.iter();
        let refusing = running.find(|skill| !skill.allows(tool, registry));
        refusing.map(Arc::as_ref)
    }
}

#[derive(Debug, Default)]
struct OfSession {
    running: Vec<Arc<Skill>>,
    /// The lowest trust level of the skills that were read.
    trust: TrustLevel,
}

/// All available skills, and the active ones in each session of this process.
#[derive(Debug, Default)]
pub struct SkillRegistry {
    all: Vec<Arc<Skill>>,
    sessions: Mutex<HashMap<String, OfSession>>,
}

impl SkillRegistry {
    /// Creates a registry of these skills; none of them runs.
    #[must_use]
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut all: Vec<Arc<Skill>> = skills.into_iter().map(Arc::new).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            all,
            sessions: Mutex::default(),
        }
    }

    /// Whether the registry is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns all skills, sorted by name.
    #[must_use]
    pub fn all(&self) -> &[Arc<Skill>] {
        &self.all
    }

    /// Returns the skill with this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.all.iter().find(|skill| skill.name == name)
    }

    /// Returns the declared tool with this id, and its skill.
    #[must_use]
    pub fn tool(&self, id: &str) -> Option<(&Arc<Skill>, &SkillTool)> {
        self.all.iter().find_map(|skill| {
            let mut tools = skill.tools.iter();
            Some((skill, tools.find(|tool| tool.def.id == id)?))
        })
    }

    fn sessions(&self) -> MutexGuard<'_, HashMap<String, OfSession>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that a skill was read in a session.
    pub fn note_read(&self, session: &str, skill: &Skill) {
        self.lower_trust(session, skill.trust);
    }

    /// Records that an untrusted skill was read in a session. It may be missing in the registry.
    pub fn note_untrusted(&self, session: &str) {
        self.lower_trust(session, TrustLevel::Untrusted);
    }

    fn lower_trust(&self, session: &str, level: TrustLevel) {
        let mut sessions = self.sessions();
        let held = sessions.entry(session.to_owned()).or_default();
        held.trust = held.trust.min(level);
    }

    /// Starts a skill in a session, until the turn ends.
    pub fn begin(&self, session: &str, skill: &Arc<Skill>) {
        self.note_read(session, skill);
        let mut sessions = self.sessions();
        let held = sessions.entry(session.to_owned()).or_default();
        if held.running.iter().all(|other| other.name != skill.name) {
            held.running.push(Arc::clone(skill));
        }
    }

    /// Ends all running skills, at the end or the start of a turn. The text of read skills is still in the
    /// context.
    pub fn end_turn(&self, session: &str) {
        if let Some(held) = self.sessions().get_mut(session) {
            held.running.clear();
        }
    }

    /// Removes all state of a session, because its context was cleared.
    pub fn forget(&self, session: &str) {
        self.sessions().remove(session);
    }

    /// Returns the active skills of a session.
    #[must_use]
    pub fn held(&self, session: &str) -> ActiveSkills {
        match self.sessions().get(session) {
            Some(held) => ActiveSkills {
                running: held.running.clone(),
                trust: held.trust,
            },
            None => ActiveSkills::default(),
        }
    }
}

#[cfg(test)]
mod tests;

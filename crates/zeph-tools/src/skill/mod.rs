//! Skills as the gates see them: what a skill is called, how far it is trusted, what may be used while
//! it runs, what it adds to the environment, and the tools that it declares.
//!
//! A skill *runs* from the call of `invoke_skill` to the end of the turn. While it does, no tool may be
//! called that its `allowed-tools` leave out; where several run, what each of them allows. What was
//! *read* of a skill, by running it or by `load_skill`, stays in the window: its level of trust holds
//! until the window is cleared.

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
/// What runs the commands of declared tools.
const BASH: &str = "bash";
/// What may be called whatever a skill allows: these can only tighten, or show what was said already.
const ALWAYS: [&str; 3] = [LOAD_SKILL, INVOKE_SKILL, "read_overflow"];

/// A tool that a skill declares: a command with parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct SkillTool {
    /// The tool, as it is offered.
    pub def: ToolDef,
    /// Its command.
    pub template: Template,
    /// The values of parameters that a call leaves out.
    pub defaults: Map<String, Value>,
}

impl SkillTool {
    /// The call of `bash` that `call` means.
    ///
    /// # Errors
    /// A value that is none for a command.
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

/// A skill that can be used.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Skill {
    /// Its name, which is that of its folder.
    pub name: String,
    /// One line: what it is for.
    pub description: String,
    /// What it says.
    pub body: String,
    /// Its folder.
    pub folder: PathBuf,
    /// Whether the folder is the project's, not the user's own.
    pub of_project: bool,
    /// How far it is trusted.
    pub trust: TrustLevel,
    /// Whether it was trusted, and has changed since.
    pub changed: bool,
    /// SHA-256 of all that its folder holds, in hex.
    pub sha256: String,
    /// The tools that may be used while it runs; `None`: all.
    pub allowed: Option<Vec<String>>,
    /// The names of the variables that it adds to the environment of commands.
    pub env_names: Vec<String>,
    /// Those variables; none while it is not trusted.
    pub env: SkillEnv,
    /// The tools that it declares.
    pub tools: Vec<SkillTool>,
}

impl Skill {
    /// Whether `tool` may be called while the skill runs. Names in `allowed-tools` may be aliases.
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

    /// What may be used while it runs, in words; `None`: all.
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

/// What holds for the calls of a session because of its skills.
#[derive(Debug, Clone, Default)]
pub struct ActiveSkills {
    /// Those that run.
    pub running: Vec<Arc<Skill>>,
    /// The lowest level of what was read.
    pub trust: TrustLevel,
}

impl ActiveSkills {
    /// What the skills that run add to the environment.
    #[must_use]
    pub fn env(&self) -> SkillEnv {
        let added = self.running.iter().flat_map(|skill| skill.env.clone());
        added.collect()
    }

    /// The first skill that runs and does not let `tool` be called.
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
    /// The lowest level of what was read.
    trust: TrustLevel,
}

/// All skills that can be used, and which of them hold in which session of this process.
#[derive(Debug, Default)]
pub struct SkillRegistry {
    all: Vec<Arc<Skill>>,
    sessions: Mutex<HashMap<String, OfSession>>,
}

impl SkillRegistry {
    /// These skills, of which none runs.
    #[must_use]
    pub fn new(skills: Vec<Skill>) -> Self {
        let mut all: Vec<Arc<Skill>> = skills.into_iter().map(Arc::new).collect();
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Self {
            all,
            sessions: Mutex::default(),
        }
    }

    /// Whether there is none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// All, by name.
    #[must_use]
    pub fn all(&self) -> &[Arc<Skill>] {
        &self.all
    }

    /// The skill of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Skill>> {
        self.all.iter().find(|skill| skill.name == name)
    }

    /// The declared tool of this id, with its skill.
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

    /// A skill was read in a session.
    pub fn note_read(&self, session: &str, skill: &Skill) {
        let mut sessions = self.sessions();
        let held = sessions.entry(session.to_owned()).or_default();
        held.trust = held.trust.min(skill.trust);
    }

    /// A skill runs in a session, until the turn ends.
    pub fn begin(&self, session: &str, skill: &Arc<Skill>) {
        self.note_read(session, skill);
        let mut sessions = self.sessions();
        let held = sessions.entry(session.to_owned()).or_default();
        if held.running.iter().all(|other| other.name != skill.name) {
            held.running.push(Arc::clone(skill));
        }
    }

    /// The turn ended, or another begins: no skill runs. What was read is still in the window.
    pub fn end_turn(&self, session: &str) {
        if let Some(held) = self.sessions().get_mut(session) {
            held.running.clear();
        }
    }

    /// The window was cleared: nothing is left of any skill.
    pub fn forget(&self, session: &str) {
        self.sessions().remove(session);
    }

    /// What holds in a session.
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
#[path = "tests.rs"]
mod tests;

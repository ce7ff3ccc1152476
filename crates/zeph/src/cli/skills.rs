//! `zeph skills …`: lists skills and their files, and manages the trust in those of a project.

use std::fmt::Write as _;

use anyhow::{Context as _, bail};
use clap::Subcommand;
use serde_json::json;
use zeph_core::SkillCatalog;
use zeph_core::native::skills::{FoundSkills, SKILL_FILE, SkillFile, standing};
use zeph_tools::TrustLevel;
use zeph_tools::registry::nearest;
use zeph_tools::skill::Skill;

use super::args::GlobalArgs;
use super::filter::trust::agrees;
use super::{Exit, load_config, print, print_as_is};
use crate::assemble::{SkillPins, known_tools};
use crate::output::sanitize::visible;
use crate::output::{json_lines, stderr_line};

/// `zeph skills …`
#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// List the skills and the refused folders
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Print the text of a skill and the files of its folder
    Show {
        /// Name of the skill
        name: String,
    },
    /// Show a skill of the project, and trust it after your approval (or with --yes), until its folder changes
    Trust {
        /// Name of the skill
        name: String,
    },
    /// Remove the trust in a skill of the project
    Untrust {
        /// Name of the skill
        name: String,
    },
}

/// Runs one of the commands.
///
/// # Errors
/// A skill does not exist; errors of reading and writing.
pub(crate) fn run(global: &GlobalArgs, command: SkillsCommand) -> anyhow::Result<Exit> {
    let (loaded, env) = load_config(global)?;
    let pins = SkillPins::in_folder(&loaded.paths.data_dir);
    let found = || Ok::<_, anyhow::Error>(known_tools(&loaded, &env)?.2);
    match command {
        SkillsCommand::List { json: true } => print_as_is(&as_json(&found()?)?)?,
        SkillsCommand::List { json: false } => {
            let listing = SkillCatalog::from(found()?).listing();
            print(&visible(&listing))?;
        }
        SkillsCommand::Show { name } => {
            let found = found()?;
            let (skill, files) = known(&found, &name)?;
            print(&whole(skill, files))?;
        }
        SkillsCommand::Trust { name } => {
            let found = found()?;
            let (skill, files) = known(&found, &name)?;
            return trust(&pins, skill, files, global.yes);
        }
        SkillsCommand::Untrust { name } => {
            let was = pins.take_back(&env, &name);
            let was = was.context("trust could not be revoked")?;
            let name = visible(&name);
            print(&match was {
                true => format!("the skill {name} of this project is no longer trusted"),
                false => format!("no skill {name} of this project was trusted"),
            })?;
        }
    }
    Ok(Exit::Done)
}

/// The skill of this name, or the reason why it does not exist.
fn known<'f>(found: &'f FoundSkills, name: &str) -> anyhow::Result<(&'f Skill, &'f [SkillFile])> {
    if let Some((skill, files)) = found.skills.iter().find(|(skill, _)| skill.name == name) {
        return Ok((skill, files));
    }
    let mut refused = found.refused.iter();
    if let Some(refused) = refused.find(|refused| refused.folder.ends_with(name)) {
        bail!(
            "{} is not used as a skill: {}",
            visible(&refused.folder.display().to_string()),
            visible(&refused.reason)
        );
    }
    let names = found.skills.iter().map(|(skill, _)| skill.name.as_str());
    match nearest(name, names, 1).pop() {
        Some(near) => bail!("there is no skill {name:?}; did you mean {near}?"),
        None => bail!("there is no skill {name:?}; `zeph skills list` names them"),
    }
}

fn trust(pins: &SkillPins, skill: &Skill, files: &[SkillFile], yes: bool) -> anyhow::Result<Exit> {
    let name = &skill.name;
    if !skill.of_project {
        print(&format!("the skill {name} is your own, so it is trusted"))?;
        return Ok(Exit::Done);
    }
    if skill.trust == TrustLevel::Trusted {
        print(&format!("the skill {name} is already trusted"))?;
        return Ok(Exit::Done);
    }
    print(&whole(skill, files))?;
    if !yes && !agrees("Trust this skill, with all files of its folder? y/N")? {
        stderr_line(&format!("the skill {name} is not trusted"));
        return Ok(Exit::Refused);
    }
    pins.put(skill)
        .context("the trust in this skill cannot be stored")?;
    print(&format!(
        "the skill {name} is trusted until a file of its folder changes (SHA-256 {})",
        skill.sha256
    ))?;
    Ok(Exit::Done)
}

/// A summary of a skill and its complete file, for the user's decision.
fn whole(skill: &Skill, files: &[SkillFile]) -> String {
    let mut text = String::new();
    let mut line = |name: &str, said: &str| {
        let _ = writeln!(text, "{name:<14} {}", visible(said).replace('\n', "\\n"));
    };
    line("name", &skill.name);
    line("description", &skill.description);
    line("folder", &skill.folder.display().to_string());
    let trust = match (skill.of_project, standing(skill)) {
        (false, _) => "trusted (your own)",
        (true, "changed") => "untrusted: it changed after you trusted it",
        (true, standing) => standing,
    };
    line("trust", trust);
    line("sha256", &skill.sha256);
    line(
        "allowed-tools",
        &skill.allowed_words().unwrap_or_else(|| "all".to_owned()),
    );
    if !skill.env_names.is_empty() {
        line("env", &skill.env_names.join(", "));
    }
    for tool in &skill.tools {
        line(
            "tool",
            &format!("{}: {}", tool.def.id, tool.def.description),
        );
        line("  command", &tool.template.to_string());
    }
    for file in files {
        let run = if file.executable {
            ", may be executed"
        } else {
            ""
        };
        line(
            "file",
            &format!("{} ({} bytes{run})", file.path, file.bytes),
        );
    }
    let _ = writeln!(text, "\nContent of {SKILL_FILE}:\n");
    for said in visible(&skill.source).lines() {
        let _ = writeln!(text, "    {said}");
    }
    text
}

fn as_json(found: &FoundSkills) -> anyhow::Result<String> {
    let skills = found.skills.iter().map(|(skill, files)| {
        json!({
            "name": skill.name,
            "description": skill.description,
            "folder": skill.folder,
            "project": skill.of_project,
            "trust": skill.trust,
            "changed": skill.changed,
            "sha256": skill.sha256,
            "allowed_tools": skill.allowed,
            "env": skill.env_names,
            "tools": skill.tools.iter().map(|tool| json!({
                "name": tool.def.id,
                "description": tool.def.description,
                "command": tool.template.to_string(),
                "parameters": tool.def.parameters,
            })).collect::<Vec<_>>(),
            "files": files.iter().map(|file| file.path.as_str()).collect::<Vec<_>>(),
        })
    });
    let refused = found.refused.iter().map(|refused| {
        json!({
            "folder": refused.folder,
            "project": refused.of_project,
            "reason": refused.reason,
        })
    });
    Ok(json_lines(&json!({
        "skills": skills.collect::<Vec<_>>(),
        "refused": refused.collect::<Vec<_>>(),
    }))?)
}

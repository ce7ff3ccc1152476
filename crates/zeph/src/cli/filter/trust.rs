//! `zeph filter trust`: shows the filter rules of a project to the user, who approves them or not.

use std::fmt::Write as _;
use std::io::{self, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use rustix::termios::{QueueSelector, tcflush};
use zeph_tools::file::unified_diff;
use zeph_tools::filter::{Rule, RuleSet, parse_rules};

use super::super::{Exit, print};
use crate::assemble::{Pins, ProjectRules, Standing};
use crate::config::Environment;
use crate::output::sanitize::visible;
use crate::output::stderr_line;

/// Shows the rules of the project, or their changes, and pins them if the user approves.
pub(super) fn trust(pins: &Pins, env: &Environment, yes: bool) -> anyhow::Result<Exit> {
    let Some(file) = ProjectRules::find(env) else {
        bail!(
            "this project has no filter rules: there is no .zeph/filters.toml in {} or above it, \
             up to the directory of the repository (the home directory is not a project)",
            shown(&env.cwd)
        );
    };
    let name = shown(&file);
    let rules = ProjectRules::read(file)
        .with_context(|| format!("the filter rules in {name} cannot be read"))?;
    let standing = pins.standing(&rules);
    if matches!(standing, Standing::Trusted) {
        print(&format!("the filter rules in {name} are already trusted"))?;
        return Ok(Exit::Done);
    }
    print(&summary(&rules, &standing)?)?;
    if !yes && !agrees("Use these rules? y/N")? {
        stderr_line(&format!("the filter rules in {name} are not trusted"));
        return Ok(Exit::Refused);
    }
    pins.put(&rules)
        .context("the trust in these rules cannot be stored")?;
    print(&format!(
        "the filter rules in {name} are trusted until the file changes (SHA-256 {})",
        rules.sha256
    ))?;
    Ok(Exit::Done)
}

/// Asks on the terminal.
///
/// # Errors
/// If the input cannot be read.
pub(in crate::cli) fn agrees(question: &str) -> anyhow::Result<bool> {
    let stdin = io::stdin();
    if !stdin.is_terminal() || !io::stderr().is_terminal() {
        stderr_line("error: stdin is not a terminal; pass --yes to approve");
        return Ok(false);
    }
    // Input from before the question is discarded.
    let _ = tcflush(&stdin, QueueSelector::IFlush);
    stderr_line(question);
    let mut answer = String::new();
    stdin
        .read_line(&mut answer)
        .context("the input cannot be read")?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// The complete text for the user's decision. It hides nothing.
fn summary(rules: &ProjectRules, standing: &Standing) -> anyhow::Result<String> {
    let name = shown(&rules.file);
    let (parsed, warnings) = parse_rules(&rules.file.display().to_string(), &rules.text);
    if parsed.is_empty() && !warnings.is_empty() {
        let reasons: Vec<String> = warnings.iter().map(ToString::to_string).collect();
        bail!(
            "no rule in {name} can be used: {}",
            visible(&reasons.join("; "))
        );
    }
    let mut text = match standing {
        Standing::Changed(before) => {
            let diff = unified_diff(
                ".zeph/filters.toml",
                before.text.as_bytes(),
                rules.text.as_bytes(),
            );
            match diff {
                Some(diff) => format!("{name} changed after you trusted it:\n\n{}", visible(&diff)),
                None => whole(&format!("{name} changed after you trusted it"), rules),
            }
        }
        Standing::Unknown(error) => whole(
            &format!("the trust record of {name} cannot be read ({error})"),
            rules,
        ),
        Standing::New | Standing::Trusted => whole(&format!("{name} was never trusted"), rules),
    };
    let count = match parsed.len() {
        0 => "no rule".to_owned(),
        1 => "1 rule".to_owned(),
        count => format!("{count} rules"),
    };
    let _ = writeln!(text, "\n{count} for the output of commands:\n");
    let built_in = RuleSet::default();
    for rule in &parsed {
        let replaces = built_in.rules().any(|known| known.name == rule.name);
        tell(&mut text, rule, replaces);
    }
    for warning in warnings {
        let _ = writeln!(text, "  {}", visible(&warning.to_string()));
    }
    Ok(text)
}

/// All of the text, set in, so that none of it can be taken for ours.
fn whole(title: &str, rules: &ProjectRules) -> String {
    let mut text = format!("{title}; all of it:\n\n");
    for line in visible(&rules.text).lines() {
        let _ = writeln!(text, "    {line}");
    }
    text
}

/// Describes a rule: its commands and its effect.
fn tell(text: &mut String, rule: &Rule, replaces: bool) {
    let one_line = |text: &str| visible(text).replace('\n', "\\n");
    let _ = write!(text, "  {}: ", one_line(&rule.name));
    let _ = match rule.enabled {
        true => write!(
            text,
            "{} → {}",
            one_line(&format!("{:?}", rule.matches)),
            rule.strategies().join(", ")
        ),
        false => write!(text, "switched off"),
    };
    if let Some(on_failure) = rule.on_failure().filter(|_| rule.enabled) {
        let _ = write!(text, "; when it fails {}", on_failure.join(", "));
    }
    let _ = writeln!(
        text,
        "{}",
        if replaces {
            " (replaces the built-in rule)"
        } else {
            ""
        }
    );
}

/// Takes trust back.
pub(super) fn revoke(pins: &Pins, env: &Environment) -> anyhow::Result<Exit> {
    let root = pins.take_back(env).context("trust could not be revoked")?;
    print(&match root {
        Some(root) => format!("the filter rules of {} are no longer trusted", shown(&root)),
        None => "no filter rules of this project were trusted".to_owned(),
    })?;
    Ok(Exit::Done)
}

/// Prints all projects with trusted rules, and whether the rules have changed.
pub(super) fn list(pins: &Pins) -> anyhow::Result<Exit> {
    let all = pins.all().context("the trust records cannot be read")?;
    if all.is_empty() {
        print("no project has trusted filter rules")?;
    }
    for pin in all {
        let file = Path::new(&pin.project).join(crate::config::PROJECT_FILTERS);
        let state = match ProjectRules::read(file) {
            Ok(rules) if rules.sha256 == pin.sha256 => "trusted",
            Ok(_) => "changed",
            Err(_) => "gone",
        };
        print(&format!(
            "{state:8} {}  {}",
            pin.sha256,
            visible(&pin.project)
        ))?;
    }
    Ok(Exit::Done)
}

/// A path, for a terminal.
fn shown(path: &Path) -> String {
    visible(&path.display().to_string())
}

//! `[tools.permissions]`: the lists of rules by tool, checked, merged and compiled.

use std::collections::BTreeMap;

use toml::{Table, Value};
use zeph_tools::gate::rule::Place;
use zeph_tools::gate::{
    Action, PathResolver, PatternKind, PermissionRule, Rule, RuleOrigin, RuleSet, ToolRules,
};
use zeph_tools::registry::nearest;
use zeph_tools::shell::{ShellConfig, legacy_lists};

use super::Config;
use super::error::ConfigError;
use super::layer::Layer;
use super::origin::{Origin, Provenance};
use super::schema_shape::join;

/// The key of all lists.
pub(crate) const KEY: &str = "tools.permissions";

/// The prefix of the ids of MCP tools. These ids are unknown before the servers list them.
const FOREIGN: &str = "mcp_";

/// The tools, and the kind of their patterns. A test compares them with the tools of the program.
pub(crate) const TOOLS: &[(&str, PatternKind)] = &[
    ("add_task", PatternKind::Text),
    ("bash", PatternKind::Command),
    ("compress_context", PatternKind::Text),
    ("copy_path", PatternKind::Path),
    ("create_directory", PatternKind::Path),
    ("delete_path", PatternKind::Path),
    ("diagnostics", PatternKind::Text),
    ("edit", PatternKind::Path),
    ("fetch", PatternKind::Url),
    ("find_path", PatternKind::Path),
    ("get_current_time", PatternKind::Text),
    ("get_file_tree", PatternKind::Path),
    ("grep", PatternKind::Path),
    ("invoke_skill", PatternKind::Text),
    ("job_kill", PatternKind::Text),
    ("job_list", PatternKind::Text),
    ("job_output", PatternKind::Text),
    ("list_directory", PatternKind::Path),
    ("list_tasks", PatternKind::Text),
    ("load_skill", PatternKind::Text),
    ("memory_save", PatternKind::Text),
    ("memory_search", PatternKind::Text),
    ("move_path", PatternKind::Path),
    ("read", PatternKind::Path),
    ("read_overflow", PatternKind::Text),
    ("scheduler", PatternKind::Text),
    ("search_code", PatternKind::Path),
    ("task", PatternKind::Text),
    ("update_task", PatternKind::Text),
    ("web_scrape", PatternKind::Url),
    ("write", PatternKind::Path),
];

/// Other names of tools, under which a rule would never be found.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("edit_file", "edit"),
    ("glob", "find_path"),
    ("mkdir", "create_directory"),
    ("read_file", "read"),
    ("rename_path", "move_path"),
    ("write_file", "write"),
];

/// Inserts the rules of a project before those of the user; only rules that deny or ask are allowed.
pub(crate) fn put_in_front(user: &Layer, project: &mut Layer) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    let Some(lists) = project.get(KEY).and_then(Value::as_table).cloned() else {
        return errors;
    };
    let own = user.get(KEY).and_then(Value::as_table);
    for (tool, list) in lists {
        let list_key = join(KEY, &tool);
        let mut rules = list.as_array().cloned().unwrap_or_default();
        for (at, rule) in rules.iter().enumerate() {
            if rule.get("action").and_then(Value::as_str) == Some(Action::Allow.as_str()) {
                let origin = project.provenance.of(&format!("{list_key}[{at}].action"));
                let message = format!(
                    "a project's file may only add rules that deny or ask (`{list_key}[{at}]`)"
                );
                errors.push(
                    ConfigError::new(origin.clone(), message)
                        .help("remove it there; allow rules belong in the user configuration"),
                );
            }
        }
        let own = own.and_then(|own| own.get(&tool)).and_then(Value::as_array);
        for (at, rule) in own.into_iter().flatten().enumerate() {
            let place = rules.len();
            for field in rule.as_table().into_iter().flat_map(Table::keys) {
                let origin = user
                    .provenance
                    .of(&format!("{list_key}[{at}].{field}"))
                    .clone();
                let key = format!("{list_key}[{place}].{field}");
                project.provenance.set(&key, origin);
            }
            rules.push(rule.clone());
        }
        if let Some(Value::Table(tools)) = project.table.get_mut("tools")
            && let Some(Value::Table(lists)) = tools.get_mut("permissions")
        {
            lists.insert(tool, Value::Array(rules));
        }
    }
    errors
}

/// Compiles the rules, those of the older lists of `[tools.shell]` among them.
///
/// # Errors
/// Every rule that cannot hold, with its place.
pub(crate) fn compile(
    config: &Config,
    provenance: &Provenance,
    places: &PathResolver,
) -> Result<RuleSet, Vec<ConfigError>> {
    let mut errors = Vec::new();
    let mut tools = BTreeMap::new();
    for (tool, written) in &config.tools.permissions {
        let list_key = join(KEY, tool);
        let Some(kind) = kind_of(tool) else {
            errors.push(unknown(tool, &list_key, provenance));
            continue;
        };
        let mut list = ToolRules {
            listed: true,
            ..ToolRules::default()
        };
        for (at, rule) in written.iter().enumerate() {
            let key = format!("{list_key}[{at}]");
            let origin = [".pattern", ""]
                .iter()
                .map(|end| provenance.of(&format!("{key}{end}")));
            let origin = origin.chain([provenance.of(&list_key), provenance.of(KEY)]);
            let mut origin = origin.filter(|origin| **origin != Origin::Default);
            let origin = origin.next().unwrap_or(&Origin::Default);
            match compiled(kind, rule.clone(), key, origin, places) {
                Ok(rule) => list.rules.push(rule),
                Err(error) => errors.push(error),
            }
        }
        tools.insert(tool.clone(), list);
    }
    let shell = &config.tools.shell;
    match older(shell, provenance, places) {
        Ok((before, behind)) => {
            let bash: &mut ToolRules = tools.entry("bash".to_owned()).or_default();
            bash.rules.splice(0..0, before);
            bash.rules.extend(behind);
        }
        Err(more) => errors.extend(more),
    }
    if errors.is_empty() {
        Ok(RuleSet::new(tools))
    } else {
        Err(errors)
    }
}

/// The kind of the patterns of a tool; `None` if no tool can have this id.
pub(crate) fn kind_of(tool: &str) -> Option<PatternKind> {
    let known = TOOLS.iter().find(|(known, _)| *known == tool);
    match known {
        Some((_, kind)) => Some(*kind),
        None => tool.starts_with(FOREIGN).then_some(PatternKind::Text),
    }
}

fn unknown(tool: &str, key: &str, provenance: &Provenance) -> ConfigError {
    let origin = [format!("{key}[0].pattern"), key.to_owned()];
    let mut origin = origin.iter().map(|key| provenance.of(key));
    let origin = origin.find(|origin| **origin != Origin::Default);
    let origin = origin.unwrap_or(&Origin::Default).clone();
    let message = format!("`{key}`: there is no tool called {tool:?}");
    let help = match OTHER_NAMES.iter().find(|(other, _)| *other == tool) {
        Some((_, own)) => format!("it is another name of `{own}`: write rules for `{own}`"),
        None => match nearest(tool, TOOLS.iter().map(|(id, _)| *id), 1).pop() {
            Some(near) => format!("did you mean `{near}`?"),
            None => "`zeph tools list` names them".to_owned(),
        },
    };
    ConfigError::new(origin, message).help(help)
}

fn compiled(
    kind: PatternKind,
    rule: PermissionRule,
    key: String,
    origin: &Origin,
    places: &PathResolver,
) -> Result<Rule, ConfigError> {
    let place = match origin {
        Origin::User(place) | Origin::Project(place) => Place::Line(place.file.clone(), place.line),
        other => Place::Said(other.to_string()),
    };
    let written = RuleOrigin { key, place };
    match Rule::new(kind, rule, written, places) {
        Ok(rule) if matches!(origin, Origin::Project(_)) => Ok(rule.of_project()),
        Ok(rule) => Ok(rule),
        Err(error) => Err(ConfigError::new(origin.clone(), error.to_string())
            .help("fix this rule: an invalid rule protects nothing")),
    }
}

/// The rules from `blocked_commands`, which deny and precede all others, and those from `confirm_patterns`, which
/// ask. The latter precede the listed rules if a project sets them, and follow them if the user does.
fn older(
    shell: &ShellConfig,
    provenance: &Provenance,
    places: &PathResolver,
) -> Result<(Vec<Rule>, Vec<Rule>), Vec<ConfigError>> {
    let (mut before, mut behind) = (Vec::new(), Vec::new());
    let mut errors = Vec::new();
    for (list, at, rule) in legacy_lists::rules(shell) {
        let key = format!("tools.shell.{list}[{at}]");
        let origin = match provenance.of(&key) {
            Origin::Default => provenance.of(&format!("tools.shell.{list}")),
            origin => origin,
        };
        let denies = rule.action == Action::Deny;
        match compiled(PatternKind::Command, rule, key, origin, places) {
            Ok(rule) if denies || rule.only_tightens => before.push(rule),
            Ok(rule) => behind.push(rule),
            // The construction of the blocklist reports this error, and refuses the pattern in any case.
            Err(_) if denies => {}
            Err(error) => errors.push(error),
        }
    }
    if errors.is_empty() {
        Ok((before, behind))
    } else {
        Err(errors)
    }
}

//! `[tools.policy]` and `[tools.authorization]`: merges and compiles the rules. Those of a project precede the user's.

use toml::{Table, Value};
use zeph_tools::gate::policy::{
    AUTHORIZATION_RULES, POLICY_RULES, PolicyEnforcer, PolicyEnv, PolicyError,
};
use zeph_tools::gate::{PathResolver, RuleOrigin};

use super::Config;
use super::env::Environment;
use super::error::ConfigError;
use super::layer::Layer;
use super::origin::{Origin, Provenance};
use super::permissions::TOOLS;

/// Inserts the rules of a project before those of the user; only rules that deny are allowed.
pub(crate) fn put_in_front(user: &Layer, project: &mut Layer) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    for list in [POLICY_RULES, AUTHORIZATION_RULES] {
        let Some(mut rules) = project.get(list).and_then(Value::as_array).cloned() else {
            continue;
        };
        for (at, rule) in rules.iter().enumerate() {
            let allows = ["effect", "action"]
                .into_iter()
                .find(|name| rule.get(name).and_then(Value::as_str) == Some("allow"));
            if let Some(name) = allows {
                let origin = project.provenance.of(&format!("{list}[{at}].{name}"));
                let message =
                    format!("a project's file may only add rules that deny (`{list}[{at}]`)");
                errors.push(
                    ConfigError::new(origin.clone(), message)
                        .help("remove it there; allow rules belong in the user configuration"),
                );
            }
        }
        let own = user.get(list).and_then(Value::as_array);
        for (at, rule) in own.into_iter().flatten().enumerate() {
            let place = rules.len();
            for field in rule.as_table().into_iter().flat_map(Table::keys) {
                let origin = user.provenance.of(&format!("{list}[{at}].{field}")).clone();
                project
                    .provenance
                    .set(&format!("{list}[{place}].{field}"), origin);
            }
            rules.push(rule.clone());
        }
        let section = list.split('.').nth(1).unwrap_or_default();
        if let Some(Value::Table(tools)) = project.table.get_mut("tools")
            && let Some(Value::Table(section)) = tools.get_mut(section)
        {
            section.insert("rules".to_owned(), Value::Array(rules));
        }
    }
    errors.extend(switched_on(user, project));
    errors
}

/// Reports a project that enables a second list in which the user has rules that may allow calls. Only the user can
/// decide that.
fn switched_on(user: &Layer, project: &Layer) -> Option<ConfigError> {
    let is_on = |layer: &Layer, section: &str| {
        let key = format!("tools.{section}.enabled");
        layer.get(&key).and_then(Value::as_bool) == Some(true)
    };
    let sections = [("policy", "authorization"), ("authorization", "policy")];
    let (section, _) = sections.into_iter().find(|(section, other)| {
        let allows = |rule: &Value| {
            let of = |name: &str| rule.get(name).and_then(Value::as_str) == Some("allow");
            of("effect") || of("action")
        };
        let rules = user.get(&format!("tools.{section}.rules"));
        is_on(project, section)
            && !is_on(user, section)
            && is_on(user, other)
            && rules
                .and_then(Value::as_array)
                .is_some_and(|rules| rules.iter().any(allows))
    })?;
    let key = format!("tools.{section}.enabled");
    let message = format!(
        "the file of a project cannot enable `{key}`, because your allow rules would then apply"
    );
    let origin = project.provenance.of(&key).clone();
    Some(ConfigError::new(origin, message).help("remove it there, or enable it in your own file"))
}

/// Compiles the enabled rules; `None` if no list is enabled.
///
/// # Errors
/// Every invalid rule, with its position.
pub(crate) fn compile(
    config: &Config,
    provenance: &Provenance,
    places: &PathResolver,
    env: &Environment,
) -> Result<Option<PolicyEnforcer>, Vec<ConfigError>> {
    let tools = &config.tools;
    let around = PolicyEnv {
        origin: &|key| RuleOrigin {
            key: key.to_owned(),
            place: origin_of(key, provenance).place(),
        },
        places,
        is_set: &|name| env.vars.contains_key(std::ffi::OsStr::new(name)),
    };
    let placed = |errors: Vec<PolicyError>| -> Vec<ConfigError> {
        let placed = errors.into_iter().map(|error| {
            let origin = origin_of(&error.key, provenance).clone();
            ConfigError::new(origin, error.to_string()).help(error.help)
        });
        placed.collect()
    };
    let policy =
        PolicyEnforcer::new(&tools.policy, &tools.authorization, around).map_err(placed)?;
    if let Some(policy) = &policy {
        let known: Vec<&str> = TOOLS.iter().map(|(id, _)| *id).collect();
        let unknown = policy.names_not_in(&known);
        if !unknown.is_empty() {
            return Err(placed(unknown));
        }
    }
    Ok(policy)
}

/// The origin of a key; for a rule, the position of its first field.
fn origin_of<'p>(key: &str, provenance: &'p Provenance) -> &'p Origin {
    const FIELDS: &[&str] = &[
        "effect",
        "action",
        "tools",
        "tool",
        "paths",
        "args_match",
        "env",
    ];
    let own = provenance.of(key);
    if *own != Origin::Default {
        return own;
    }
    let fields = FIELDS
        .iter()
        .map(|field| provenance.of(&format!("{key}.{field}")))
        .filter(|origin| **origin != Origin::Default);
    let line = |origin: &&Origin| match origin {
        Origin::User(place) | Origin::Project(place) => place.line,
        _ => 0,
    };
    let list = key.split('[').next().unwrap_or_default();
    fields
        .min_by_key(line)
        .unwrap_or_else(|| provenance.of(list))
}

//! Differences between the active configuration and a new one, as pure functions.

use std::collections::BTreeMap;

use toml::{Table, Value};
use zeph_tools::shell::ShellConfig;

use super::Config;
use super::schema_shape::join;

/// The settings that apply immediately after a reload: those of the blocklist.
const AT_ONCE: &[&str] = &[
    "tools.shell.blocked_commands",
    "tools.shell.blocked_constructs",
    "tools.shell.allow_network",
];

/// Applies the settings that do not need a restart.
pub(crate) fn take_over(shell: &mut ShellConfig, new: &ShellConfig) {
    shell.blocked_commands.clone_from(&new.blocked_commands);
    shell.blocked_constructs.clone_from(&new.blocked_constructs);
    shell.allow_network = new.allow_network;
}

/// The restrictions that the new blocklist adds to `old`, as text.
pub(crate) fn tightened(old: &ShellConfig, new: &ShellConfig) -> Vec<String> {
    let mut words = Vec::new();
    let blocked = only_in(&new.blocked_commands, &old.blocked_commands);
    words.extend(list("now blocked", &blocked));
    let refused = only_in(&new.blocked_constructs, &old.blocked_constructs);
    words.extend(list("constructs now refused", &refused));
    if old.allow_network && !new.allow_network {
        words.push(
            "commands for the network are blocked (the OS sandbox follows after a restart)"
                .to_owned(),
        );
    }
    words
}

/// The restrictions of `old` that the new blocklist removes, as text.
pub(crate) fn loosened(old: &ShellConfig, new: &ShellConfig) -> Vec<String> {
    let mut words = Vec::new();
    let gone = only_in(&old.blocked_commands, &new.blocked_commands);
    words.extend(list("no longer blocked by the configuration", &gone));
    let admitted = only_in(&old.blocked_constructs, &new.blocked_constructs);
    words.extend(list("constructs no longer refused", &admitted));
    if !old.allow_network && new.allow_network {
        words.push(
            "commands for the network are not blocked (the OS sandbox follows after a restart)"
                .to_owned(),
        );
    }
    words
}

/// The settings that differ and hold after a restart only.
pub(crate) fn after_restart(old: &Config, new: &Config) -> Vec<String> {
    let (old, new) = (settings(old), settings(new));
    let mut keys: Vec<String> = old
        .iter()
        .filter(|(key, value)| new.get(*key) != Some(value))
        .chain(new.iter().filter(|(key, _)| !old.contains_key(*key)))
        .map(|(key, _)| key.clone())
        .filter(|key| !AT_ONCE.contains(&key.as_str()))
        .collect();
    keys.sort();
    keys
}

fn only_in<'a>(list: &'a [String], other: &[String]) -> Vec<&'a str> {
    let mut only = Vec::new();
    for item in list {
        if !other.contains(item) && !only.contains(&item.as_str()) {
            only.push(item.as_str());
        }
    }
    only
}

fn list(words: &str, items: &[&str]) -> Option<String> {
    let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
    (!items.is_empty()).then(|| format!("{words}: {}", items.join(", ")))
}

/// Each setting by its dotted key.
fn settings(config: &Config) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    flatten("", Table::try_from(config).unwrap_or_default(), &mut found);
    found
}

fn flatten(path: &str, table: Table, found: &mut BTreeMap<String, Value>) {
    for (name, value) in table {
        let key = join(path, &name);
        match value {
            Value::Table(inner) => flatten(&key, inner, found),
            value => {
                found.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(text: &str) -> Config {
        toml::from_str(text).unwrap()
    }

    /// Proves SH-13 for the description of a change.
    #[test]
    fn changes_are_sorted_into_tighter_looser_and_later() {
        let check = |old: &str, new: &str, tighter: &[&str], looser: &[&str], later: &[&str]| {
            let (old, new) = (config(old), config(new));
            let (from, to) = (&old.tools.shell, &new.tools.shell);
            assert_eq!(tightened(from, to), tighter, "{new:?}");
            assert_eq!(loosened(from, to), looser, "{new:?}");
            assert_eq!(after_restart(&old, &new), later, "{new:?}");
            let mut taken = old.clone();
            take_over(&mut taken.tools.shell, to);
            assert_eq!(tightened(&taken.tools.shell, to), [""; 0]);
            assert_eq!(loosened(&taken.tools.shell, to), [""; 0]);
            assert_eq!(after_restart(&taken, &new), later);
        };
        check("", "", &[], &[], &[]);
        let blocks = "[tools.shell]\nblocked_commands = ['a b', 'c', 'c']";
        let other = "[tools.shell]\nblocked_commands = ['c']\nblocked_constructs = ['eval']";
        check("", blocks, &["now blocked: `a b`, `c`"], &[], &[]);
        check(
            blocks,
            other,
            &["constructs now refused: `eval`"],
            &["no longer blocked by the configuration: `a b`"],
            &[],
        );
        check(
            other,
            blocks,
            &["now blocked: `a b`"],
            &["constructs no longer refused: `eval`"],
            &[],
        );
        let cut = "tools.shell.allow_network = false";
        let network = "commands for the network are";
        let (old, new) = (config(""), config(cut));
        assert!(tightened(&old.tools.shell, &new.tools.shell)[0].starts_with(network));
        assert!(loosened(&new.tools.shell, &old.tools.shell)[0].starts_with(network));
        check(
            "",
            "[tools]\nmode = 'plan'\n[tools.shell]\ntimeout = 3\nenv.set = { A = 's' }\n[memory]\npath = '/x'",
            &[],
            &[],
            &[
                "memory.path",
                "tools.mode",
                "tools.shell.env.set.A",
                "tools.shell.timeout",
            ],
        );
    }
}

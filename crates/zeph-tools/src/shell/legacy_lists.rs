//! The older list settings of `[tools.shell]` as permission rules.

use super::config::ShellConfig;
use crate::gate::{Action, PermissionRule};

/// A rule, with the name of its list and its index in the list.
pub type LegacyRule = (&'static str, usize, PermissionRule);

/// Converts `blocked_commands` to deny rules, and `confirm_patterns` to ask rules.
#[must_use]
pub fn rules(config: &ShellConfig) -> Vec<LegacyRule> {
    let blocked = config.blocked_commands.iter().enumerate();
    let blocked = blocked.map(|(at, words)| {
        let words: Vec<&str> = words.split_whitespace().collect();
        let pattern = format!("{} *", words.join(" "));
        ("blocked_commands", at, rule(pattern, Action::Deny))
    });
    let asked = config.confirm_patterns.iter().enumerate();
    let asked = asked.map(|(at, text)| {
        let pattern = if text.contains(['*', '?']) || text.trim().is_empty() {
            text.clone()
        } else {
            format!("*{}*", text.replace('\\', "\\\\"))
        };
        ("confirm_patterns", at, rule(pattern, Action::Ask))
    });
    blocked.chain(asked).collect()
}

fn rule(pattern: String, action: Action) -> PermissionRule {
    PermissionRule {
        pattern,
        action,
        matches: Vec::new(),
        not_matches: Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PERM-5 in part.
    #[test]
    fn entries_become_patterns() {
        let config = ShellConfig {
            blocked_commands: vec!["terraform  destroy".to_owned(), "x*".to_owned()],
            confirm_patterns: vec![
                "rm ".to_owned(),
                "git push*".to_owned(),
                "a\\b".to_owned(),
                String::new(),
            ],
            ..ShellConfig::default()
        };
        let found: Vec<_> = rules(&config)
            .into_iter()
            .map(|(list, at, rule)| (list, at, rule.pattern, rule.action))
            .collect();
        let (blocked, asked) = ("blocked_commands", "confirm_patterns");
        let expect = [
            (blocked, 0, "terraform destroy *", Action::Deny),
            (blocked, 1, "x* *", Action::Deny),
            (asked, 0, "*rm *", Action::Ask),
            (asked, 1, "git push*", Action::Ask),
            (asked, 2, "*a\\\\b*", Action::Ask),
            (asked, 3, "", Action::Ask),
        ];
        let expect: Vec<_> = expect
            .into_iter()
            .map(|(list, at, pattern, action)| (list, at, pattern.to_owned(), action))
            .collect();
        assert_eq!(found, expect);
    }
}

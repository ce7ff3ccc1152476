//! Parser for rule files. Invalid rules are skipped with a warning, and other rules are used.

use serde::Deserialize;

use super::rule::{Rule, RuleSpec};

/// The maximum size of a rule file in bytes.
pub const MAX_FILE: usize = 1024 * 1024;

/// A skipped rule or file with the reason, for the user.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum FilterWarning {
    /// A complete file.
    #[error("no filter rule of {file} is used: {reason}")]
    File {
        /// The name of the file.
        file: String,
        /// The reason.
        reason: String,
    },
    /// One rule of a file.
    #[error("the filter rule {rule} in {file} is not used: {reason}")]
    Rule {
        /// The name of the file.
        file: String,
        /// The name of the rule, or its position in the file.
        rule: String,
        /// The reason.
        reason: String,
    },
    /// An override of rules in the configuration.
    #[error("[tools.filters.rules] `{key}` has no effect: {reason}")]
    Override {
        /// The key.
        key: String,
        /// The reason.
        reason: String,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    rules: Vec<toml::Table>,
}

/// Parses the rules in the `text` of a file. Warnings contain the name `file`.
#[must_use]
pub fn parse_rules(file: &str, text: &str) -> (Vec<Rule>, Vec<FilterWarning>) {
    let whole = |reason: String| {
        let file = file.to_owned();
        (Vec::new(), vec![FilterWarning::File { file, reason }])
    };
    if text.len() > MAX_FILE {
        return whole(format!(
            "it has {} bytes, and the limit is {MAX_FILE} bytes",
            text.len()
        ));
    }
    let parsed: File = match toml::from_str(text) {
        Ok(parsed) => parsed,
        Err(error) => return whole(error.to_string().trim_end().to_owned()),
    };
    let mut rules = Vec::new();
    let mut warnings = Vec::new();
    for (index, table) in parsed.rules.into_iter().enumerate() {
        let name = table.get("name").and_then(toml::Value::as_str);
        let name = name.map_or_else(
            || format!("number {}", index + 1),
            |name| format!("`{name}`"),
        );
        match rule(table) {
            Ok(rule) => rules.push(rule),
            Err(reason) => warnings.push(FilterWarning::Rule {
                file: file.to_owned(),
                rule: name,
                reason,
            }),
        }
    }
    (rules, warnings)
}

/// Parses the rule in a table.
pub(super) fn rule(table: toml::Table) -> Result<Rule, String> {
    let spec: RuleSpec =
        RuleSpec::deserialize(table).map_err(|error| error.message().to_owned())?;
    Rule::try_from(spec)
}

/// The built-in rule in the `text` of a file. The build script reads its `order`.
pub(super) fn parse_rule(text: &str) -> Result<Rule, String> {
    let mut table: toml::Table = toml::from_str(text).map_err(|error| error.to_string())?;
    table.remove("order");
    rule(table)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves OUT-3: a name is enough to disable a rule, and a rule that is used needs a match and a strategy.
    #[test]
    fn rule_is_complete_or_disabled() {
        let check = |lines: &str, expect: Result<bool, &str>| {
            let text = format!("[[rules]]\nname = \"git-log\"\n{lines}");
            let (rules, warnings) = parse_rules("f", &text);
            match expect {
                Ok(enabled) => {
                    assert_eq!(warnings, [], "{lines}");
                    assert_eq!(rules[0].enabled, enabled, "{lines}");
                    assert_eq!(
                        rules[0].enabled && rules[0].matches.is_for("git log"),
                        enabled,
                        "{lines}"
                    );
                }
                Err(reason) => {
                    assert!(rules.is_empty(), "{lines}");
                    let told = warnings[0].to_string();
                    assert!(
                        told.contains(reason) && told.contains("`git-log`"),
                        "{told}"
                    );
                }
            }
        };
        let matches = r#"match = { prefix = "git log" }"#;
        let strategy = r#"strategy = { type = "dedup" }"#;
        check("enabled = false", Ok(false));
        check(&format!("enabled = false\n{matches}"), Ok(false));
        check(&format!("enabled = false\n{strategy}"), Ok(false));
        check(
            &format!("enabled = false\n{matches}\n{strategy}"),
            Ok(false),
        );
        check(&format!("enabled = true\n{matches}\n{strategy}"), Ok(true));
        check(&format!("{matches}\n{strategy}"), Ok(true));
        check("", Err("`match` is missing"));
        check("enabled = true", Err("`match` is missing"));
        check(matches, Err("`strategy` is missing"));
        check(strategy, Err("`match` is missing"));
        check("enabled = false\nmatch = {}", Err("exactly one of"));
        check(
            "enabled = false\nstrategy = { type = \"no\" }",
            Err("no strategy `no`"),
        );
        check("enabled = \"no\"", Err("boolean"));
        check("enabled = false\ncolour = 1", Err("colour"));
    }
}

//! A built-in rule, compiled when it is first used: a process mostly needs one or two of them.

use std::sync::{Arc, OnceLock};

use regex_syntax::Parser;
use regex_syntax::hir::Look;
use regex_syntax::hir::literal::{Extractor, Seq};
use serde::Deserialize;

use super::parse_rules::parse_rule;
use super::rule::{MatchSpec, Rule};

/// See the module.
pub(super) struct BuiltinRule {
    name: &'static str,
    text: &'static str,
    begins: OnceLock<PrefixHint>,
    rule: OnceLock<Option<Arc<Rule>>>,
}

/// How the commands begin for which a rule is.
#[derive(Debug)]
enum PrefixHint {
    /// With one of these.
    With(Seq),
    /// That cannot be told by literals.
    Anyhow,
}

/// The line of a rule that says for which commands it is.
#[derive(Deserialize)]
struct MatchLine {
    #[serde(rename = "match")]
    matches: MatchSpec,
}

impl BuiltinRule {
    /// The rule `name` in `text`.
    pub(super) fn new(name: &'static str, text: &'static str) -> Self {
        Self {
            name,
            text,
            begins: OnceLock::new(),
            rule: OnceLock::new(),
        }
    }

    /// Its name.
    pub(super) fn name(&self) -> &'static str {
        self.name
    }

    /// The text of its file.
    pub(super) fn text(&self) -> &'static str {
        self.text
    }

    /// Whether it may be for `command`; what it says no to it is not for.
    pub(super) fn may_be_for(&self, command: &str) -> bool {
        match self.begins.get_or_init(|| begins(self.text)) {
            PrefixHint::Anyhow => true,
            PrefixHint::With(literals) => literals.literals().is_none_or(|literals| {
                literals
                    .iter()
                    .any(|literal| command.as_bytes().starts_with(literal.as_bytes()))
            }),
        }
    }

    /// The rule. None of them fails to compile: a test sees to that.
    pub(super) fn rule(&self) -> Option<&Arc<Rule>> {
        let compiled = self.rule.get_or_init(|| match parse_rule(self.text) {
            Ok(rule) => Some(Arc::new(rule)),
            Err(reason) => {
                tracing::error!(target: "zeph_tools::filter", name = self.name, reason, "a built-in filter rule is wrong");
                None
            }
        });
        compiled.as_ref()
    }
}

/// How commands begin that the rule in `text` is for, as far as its `match` line says.
fn begins(text: &str) -> PrefixHint {
    let line = text.lines().find(|line| line.starts_with("match ="));
    let matches = line.and_then(|line| toml::from_str::<MatchLine>(line).ok());
    let Some(pattern) = matches.and_then(|line| line.matches.pattern()) else {
        return PrefixHint::Anyhow;
    };
    let Ok(hir) = Parser::new().parse(&pattern) else {
        return PrefixHint::Anyhow;
    };
    if !hir.properties().look_set_prefix().contains(Look::Start) {
        return PrefixHint::Anyhow;
    }
    PrefixHint::With(Extractor::new().extract(&hir))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rule_tells_how_its_commands_begin() {
        let check = |line: &'static str, command: &str, expect: bool| {
            let rule = BuiltinRule::new("x", line);
            assert_eq!(rule.may_be_for(command), expect, "{line} {command}");
        };
        for (command, expect) in [
            ("go test ./...", true),
            ("go testing", true),
            ("got", false),
        ] {
            check("match = { prefix = \"go test\" }", command, expect);
            check("match = { regex = '^go test' }", command, expect);
        }
        check("match = { regex = '^(?:a|b)c|^de' }", "bcx", true);
        check("match = { regex = '^(?:a|b)c|^de' }", "dex", true);
        check("match = { regex = '^(?:a|b)c|^de' }", "xbc", false);
        // Only one of the alternatives begins at the start.
        check("match = { regex = '^ab|cd' }", "x cd", true);
        check("match = { regex = '^\\S+ab' }", "x", true);
        check("match = { exact = \"ls\" }", "ls", true);
        check("nothing", "x", true);
    }
}

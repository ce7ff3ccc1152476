//! Detection of command patterns with characters that are special in other globs.

use super::Config;
use super::origin::{Origin, Provenance};

/// The pairs of characters that are literal in a command pattern.
const PAIRS: &[(char, char, &str)] = &[('[', ']', "a class"), ('{', '}', "alternatives")];

/// A warning for each command pattern with `[…]` or `{…}`: only `*` has a meaning there.
pub(super) fn warnings(config: &Config, provenance: &Provenance) -> Vec<String> {
    let shell = &config.tools.shell;
    let lists = [
        ("tools.shell.blocked_commands", &shell.blocked_commands),
        ("tools.shell.confirm_patterns", &shell.confirm_patterns),
    ];
    let of_lists = lists.into_iter().flat_map(|(key, list)| {
        let item = move |(at, text): (usize, &String)| (format!("{key}[{at}]"), text.clone());
        list.iter().enumerate().map(item)
    });
    let rules = config.tools.permissions.get("bash").into_iter().flatten();
    let of_rules = rules.enumerate().map(|(at, rule)| {
        let key = format!("tools.permissions.bash[{at}].pattern");
        (key, rule.pattern.clone())
    });
    let patterns = of_lists.chain(of_rules);
    let found = patterns.filter_map(|(key, text)| {
        let kind = glob_in(&text)?;
        let list = key.split('[').next().unwrap_or_default();
        let origin = match provenance.of(&key) {
            Origin::Default => provenance.of(list),
            origin => origin,
        };
        Some(format!(
            "the command pattern {text:?} (`{key}`, {origin}) has {kind}, which is literal text in a command \
             pattern: only `*` has a meaning; write one pattern for each alternative"
        ))
    });
    found.collect()
}

/// The construct of other globs in a pattern.
fn glob_in(pattern: &str) -> Option<String> {
    PAIRS.iter().find_map(|(open, close, meaning)| {
        let from = pattern.find(*open)?;
        let length = pattern[from..].find(*close)?;
        let text = &pattern[from..=from + length];
        // Expansions, groups and tests of the shell are not globs.
        let before = pattern[..from].chars().next_back();
        let is_test = text.starts_with("[[");
        let is_shell =
            is_test || before == Some('$') || text[1..].starts_with(' ') || text.len() <= 2;
        (!is_shell).then(|| format!("`{text}` ({meaning} in other globs)"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::path::Path;

    use crate::config::layer::{FileLayer, Layer};

    #[test]
    fn construct_of_other_globs_is_found() {
        let check = |pattern: &str, expect: Option<&str>| {
            let found = glob_in(pattern);
            match expect {
                Some(expect) => assert!(
                    found
                        .as_deref()
                        .is_some_and(|found| found.starts_with(expect)),
                    "{pattern}: {found:?}"
                ),
                None => assert_eq!(found, None, "{pattern}"),
            }
        };
        check("cargo {build,test}*", Some("`{build,test}`"));
        check("cargo {build}", Some("`{build}`"));
        check("rm -[rf]*", Some("`[rf]`"));
        check("ls [!a-z]*", Some("`[!a-z]`"));
        check("git log --format={%h} [x]", Some("`[x]`"));
        check("cargo *", None);
        check("echo ${HOME}", None);
        check("[ -f a ]", None);
        check("[[ -f a ]]", None);
        check("find . -exec rm {} ;", None);
        check("{ ls; }", None);
        check("a]b[", None);
        check("a[", None);
        check("ä[ö]", Some("`[ö]`"));
    }

    /// Proves D-27: a warning names the pattern, its key and its line.
    #[test]
    fn warning_names_pattern_and_line() {
        let text = "[tools.shell]\nconfirm_patterns = ['ok *', 'a {b,c}']\nblocked_commands = ['x[yz]']\n\
            [[tools.permissions.bash]]\npattern = 'cargo {build,test}'\naction = 'allow'\n\
            [[tools.permissions.read]]\npattern = '/a/[bc]/**'\naction = 'deny'\n";
        let mut errors = Vec::new();
        let layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        let config: Config = layer.table.try_into().unwrap();
        let found = warnings(&config, &layer.provenance);
        assert_eq!(found.len(), 3, "{found:?}");
        for (found, expect) in found.iter().zip([
            "\"x[yz]\" (`tools.shell.blocked_commands[0]`, user file c.toml:3)",
            "\"a {b,c}\" (`tools.shell.confirm_patterns[1]`, user file c.toml:2)",
            "\"cargo {build,test}\" (`tools.permissions.bash[0].pattern`, user file c.toml:5)",
        ]) {
            assert!(found.contains(expect), "{found}");
        }
    }
}

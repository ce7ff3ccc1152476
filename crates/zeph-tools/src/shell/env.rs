//! Filter for the environment variables of commands.

use std::ffi::OsString;

use crate::executor::SkillEnv;

use super::config::ShellEnvConfig;

/// Names that look like secrets: common shapes, and the names of provider keys. `*` matches any characters; case is
/// ignored.
const SECRET_NAMES: [&str; 25] = [
    "*_KEY",
    "*_TOKEN",
    "*_SECRET",
    "*PASSWORD*",
    "*_PASSWD",
    "*_PASSPHRASE",
    "*_APIKEY",
    "*_API_KEYS",
    "*_CREDENTIALS",
    "APIKEY",
    "PASSWD",
    "SECRET",
    "TOKEN",
    "ANTHROPIC_API_KEY",
    "ANTHROPIC_AUTH_TOKEN",
    "ANTHROPIC_CUSTOM_HEADERS",
    "CLAUDE_CODE_OAUTH_TOKEN",
    "OPENAI_API_KEY",
    "OPENAI_ADMIN_KEY",
    "OLLAMA_API_KEY",
    "AWS_ACCESS_KEY_ID",
    "AWS_BEARER_TOKEN_BEDROCK",
    "GEMINI_API_KEY",
    "HF_TOKEN",
    "OTEL_EXPORTER_OTLP_*HEADERS",
];

/// Names of variables that configure the telemetry of the agent. A program with OpenTelemetry would report as the agent.
const TELEMETRY_NAMES: [&str; 1] = ["OTEL_*"];

/// Builds the environment of a command: the allowed variables of `base`, then `set`, then the skill's variables. A
/// later variable replaces an earlier one of the same name.
///
/// A variable of `base` is allowed if no pattern of `block` matches its name, and if the name either matches `pass`, or
/// neither looks like a secret nor configures telemetry. Names that are not UTF-8 are matched in their lossy form. `set` and the skill's
/// variables are passed unchanged, because they are meant for commands.
#[must_use]
pub fn select(
    base: &[(OsString, OsString)],
    config: &ShellEnvConfig,
    skill: Option<&SkillEnv>,
) -> Vec<(OsString, OsString)> {
    let chosen = config.set.iter().chain(skill.into_iter().flatten());
    let mut env: Vec<(OsString, OsString)> = base
        .iter()
        .filter(|(name, _)| passes(&name.to_string_lossy(), config))
        .cloned()
        .collect();
    for (name, value) in chosen {
        env.retain(|(existing, _)| existing != name.as_str());
        env.push((name.into(), value.into()));
    }
    env
}

/// The values of the variables of `base` that look like secrets and are not passed.
#[must_use]
pub fn filtered_secrets(base: &[(OsString, OsString)], config: &ShellEnvConfig) -> Vec<String> {
    let looks_secret = |name: &str| SECRET_NAMES.iter().any(|pattern| matches(pattern, name));
    base.iter()
        .filter(|(name, _)| {
            let name = name.to_string_lossy();
            looks_secret(&name) && !passes(&name, config)
        })
        .filter_map(|(_, value)| Some(value.to_str()?.to_owned()))
        .collect()
}

/// Whether a variable of the agent's environment is passed to commands.
fn passes(name: &str, config: &ShellEnvConfig) -> bool {
    let any = |patterns: &[String]| patterns.iter().any(|pattern| matches(pattern, name));
    if any(&config.block) {
        return false;
    }
    let mut withheld = SECRET_NAMES.iter().chain(&TELEMETRY_NAMES);
    any(&config.pass) || !withheld.any(|pattern| matches(pattern, name))
}

/// Whether `name` matches `pattern`, in which `*` matches any characters. ASCII case is ignored.
fn matches(pattern: &str, name: &str) -> bool {
    let (pattern, name) = (pattern.as_bytes(), name.as_bytes());
    let (mut p, mut n) = (0, 0);
    let mut retry: Option<(usize, usize)> = None;
    while n < name.len() {
        match pattern.get(p) {
            Some(b'*') => {
                p += 1;
                retry = Some((p, n));
            }
            Some(byte) if byte.eq_ignore_ascii_case(&name[n]) => {
                p += 1;
                n += 1;
            }
            _ => match retry {
                Some((after_star, from)) => {
                    p = after_star;
                    n = from + 1;
                    retry = Some((after_star, from + 1));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn names(base: &[&str], config: &ShellEnvConfig, skill: Option<&SkillEnv>) -> Vec<String> {
        let base: Vec<_> = base.iter().map(|name| (name.into(), "v".into())).collect();
        select(&base, config, skill)
            .into_iter()
            .map(|(name, value)| format!("{}={}", name.display(), value.display()))
            .collect()
    }

    /// Proves SH-2.
    #[test]
    fn secrets_are_removed_by_default() {
        let config = ShellEnvConfig::default();
        let check = |name: &str, expect: bool| {
            assert_eq!(!names(&[name], &config, None).is_empty(), expect, "{name}");
        };
        check("PATH", true);
        check("HOME", true);
        check("SSH_AUTH_SOCK", true);
        check("KEYBOARD", true);
        check("TOKENIZERS_PARALLELISM", true);
        check("ANTHROPIC_API_KEY", false);
        check("OPENAI_API_KEY", false);
        check("AWS_ACCESS_KEY_ID", false);
        check("github_token", false);
        check("My_Secret", false);
        check("PGPASSWORD", false);
        check("DB_PASSWORD_FILE", false);
        check("TOKEN", false);
    }

    /// Proves SH-2.
    #[test]
    fn pass_block_set_and_the_skill_adjust() {
        let config = ShellEnvConfig {
            pass: vec!["GH_*".into(), "BOTH_TOKEN".into()],
            block: vec!["both_*".into(), "EDITOR".into()],
            set: [("CI".into(), "1".into()), ("LANG".into(), "C".into())].into(),
        };
        let skill: SkillEnv = [
            ("SKILL_TOKEN".into(), "s".into()),
            ("CI".into(), "2".into()),
        ]
        .into();
        let base = [
            "GH_TOKEN",
            "GITLAB_TOKEN",
            "BOTH_TOKEN",
            "EDITOR",
            "LANG",
            "HOME",
        ];
        assert_eq!(
            names(&base, &config, Some(&skill)),
            ["GH_TOKEN=v", "HOME=v", "LANG=C", "CI=2", "SKILL_TOKEN=s"]
        );
        assert_eq!(
            names(&base, &config, None),
            ["GH_TOKEN=v", "HOME=v", "CI=1", "LANG=C"]
        );
    }

    #[test]
    fn stars_match_any_characters() {
        let check = |pattern, name, expect| assert_eq!(matches(pattern, name), expect, "{pattern}");
        check("*", "", true);
        check("", "", true);
        check("", "A", false);
        check("A*B*C", "axxbyyc", true);
        check("A*B*C", "axxbyycd", false);
        check("*AB", "AAB", true);
        check("**", "x", true);
    }

    proptest! {
        #[test]
        fn star_between_two_parts_matches_the_text_between_them(
            head in "[A-Z_]{0,6}", middle in "[A-Z_]{0,6}", tail in "[A-Z_]{0,6}"
        ) {
            let pattern = format!("{}*{}", head, tail);
            let name = format!("{head}{middle}{tail}");
            prop_assert!(matches(&pattern, &name));
            prop_assert!(matches(&pattern, &name.to_lowercase()));
            let longer = format!("{name}.");
            prop_assert!(!matches(&pattern, &longer) || tail.is_empty());
        }
    }
}

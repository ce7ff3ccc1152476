//! Tests of old keys.

use std::path::Path;

use super::*;
use crate::config::Config;
use crate::config::layer::FileLayer;

fn read(text: &str) -> (Layer, Vec<String>) {
    let mut errors = Vec::new();
    let mut layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
    layer.replace_ollama(&mut errors);
    (layer, errors.iter().map(ToString::to_string).collect())
}

fn config(text: &str) -> Config {
    let (layer, errors) = read(text);
    assert!(errors.is_empty(), "{text}: {errors:?}");
    let config: Result<Config, _> = layer.table.try_into();
    config.unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Proves CFG-4, D-37, D-9: each old key has the meaning of the current one.
#[test]
fn old_key_sets_the_current_key() {
    let check = |old: &str, new: &str| assert_eq!(config(old), config(new), "{old}");
    check(
        "[agent]\nmax_tool_retries = 5\nmax_retry_duration_secs = 60\nparameter_reformat_provider = ''",
        "[tools.retry]\nmax_attempts = 5\nbudget_secs = 60\nparameter_reformat_provider = ''",
    );
    check(
        "[tools]\nenabled = true\nsummarize_output = true",
        "[tools]\nenabled = true\n[tools.overflow]\nsummarize = true",
    );
    check(
        "[tools.filters.test]\nenabled = true\nmax_failures = 10\ntruncate_stack_trace = 50",
        "[tools.filters.rules.test_summary]\nenabled = true\nmax_failures = 10\ntruncate_stack_trace = 50",
    );
    check(
        "[tools.filters.git]\nenabled = false\nmax_log_entries = 20\nmax_diff_lines = 500",
        "[tools.filters.rules.'git-*']\nenabled = false\nmax_commits = 20\nmax_diff_lines = 500",
    );
    for (old, new) in [
        ("clippy", "cargo-clippy"),
        ("cargo_build", "cargo-build"),
        ("dir_listing", "'listing-*'"),
        ("log_dedup", "log-dedup"),
    ] {
        check(
            &format!("[tools.filters.{old}]\nenabled = false"),
            &format!("[tools.filters.rules.{new}]\nenabled = false"),
        );
        // An empty table sets nothing.
        check(&format!("[tools.filters.{old}]"), "[tools.filters]");
    }
    check(
        "tools.filters = { git = { enabled = false }, enabled = true }",
        "tools.filters = { rules = { 'git-*' = { enabled = false } }, enabled = true }",
    );
    let security = "[tools.filters.security]\n";
    check(
        &format!("{security}enabled = false"),
        &format!("{security}redact = false"),
    );
    check(
        &format!("{security}enabled = true\nredact = false"),
        &format!("{security}redact = false"),
    );
    check(
        &format!("{security}enabled = true\nextra_patterns = []"),
        &format!("{security}redact = true\nextra_patterns = []"),
    );
    check(
        &format!("{security}extra_patterns = ['ACME-\\d+', 'x{{4}}']"),
        "[[tools.filters.security.extra_patterns]]\nname = 'pattern_1'\npattern = 'ACME-\\d+'\n\
             [[tools.filters.security.extra_patterns]]\nname = 'pattern_2'\npattern = 'x{4}'",
    );
    check(
        &format!("{security}extra_patterns = ['a', {{ name = 'b', pattern = 'c' }}]"),
        &format!(
            "{security}extra_patterns = [{{ name = 'pattern_1', pattern = 'a' }}, {{ name = 'b', pattern = 'c' }}]"
        ),
    );
    check(
        "[tools.shell]\nallowed_commands = ['sudo']\ntimeout = 3",
        "[tools.shell]\ntimeout = 3",
    );
    check(
        "[tools.overflow]\ndir = '/x'\nthreshold = 5",
        "[tools.overflow]\nthreshold = 5",
    );
    for (old, new) in [
        ("enabled = true", "sqlite = true"),
        ("enabled = false", "sqlite = false"),
        (
            "enabled = true\ndestination = 'stdout'",
            "stdout = true\nsqlite = true",
        ),
        (
            "enabled = true\ndestination = '~/a.jsonl'",
            "jsonl = true\npath = '~/a.jsonl'\nsqlite = true",
        ),
        ("enabled = false\ndestination = 'stdout'", "sqlite = false"),
        ("destination = 'sqlite'\nenabled = true", "sqlite = true"),
        ("enabled = true\nsqlite = false", "sqlite = false"),
    ] {
        check(
            &format!("[tools.audit]\n{old}"),
            &format!("[tools.audit]\n{new}"),
        );
    }
}

/// Proves CFG-4: the table of Ollama is a provider after the others.
#[test]
fn old_table_of_ollama_is_a_provider() {
    let check = |old: &str, new: &str| assert_eq!(config(old), config(new), "{old}");
    check(
        "[llm.ollama]\ntool_use = true",
        "[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'\ntool_use = true",
    );
    check(
        "[llm.ollama]",
        "[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'",
    );
    check(
        "[llm.ollama]\nbase_url = 'http://localhost:11434'\nmodel = 'm'\nembedding_model = 'e'\ntool_use = false",
        "[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'\nbase_url = 'http://localhost:11434'\n\
         model = 'm'\nembedding_model = 'e'\ntool_use = false",
    );
    let other = "[[llm.providers]]\nname = 'a'\ntype = 'openai'\nmodel = 'm'\n";
    check(
        &format!("{other}[llm.ollama]\nmodel = 'm'"),
        &format!("{other}[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'\nmodel = 'm'"),
    );
}

/// Proves CFG-2: an old and a current name of one setting contradict each other, also with equal values.
#[test]
fn old_and_current_key_together_are_an_error() {
    let check = |text: &str, expect: &[&str]| {
        let (_, errors) = read(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        for expect in expect {
            assert!(errors[0].contains(expect), "{errors:?}");
        }
    };
    check(
        "[agent]\nmax_tool_retries = 5\n[tools.retry]\nmax_attempts = 3",
        &[
            "c.toml:2:1: `agent.max_tool_retries` is the old name of `tools.retry.max_attempts`",
            "both are set",
            "c.toml:4",
        ],
    );
    check(
        "[tools.filters.git]\nenabled = true\n[tools.filters.rules.'git-*']\nenabled = true",
        &[
            "tools.filters.git.enabled",
            "tools.filters.rules.\"git-*\".enabled",
        ],
    );
    check(
        "[tools.filters.security]\nenabled = false\nredact = true",
        &[
            "tools.filters.security.enabled",
            "`tools.filters.security.redact`",
        ],
    );
    check(
        "[tools]\nsummarize_output = false\n[tools.overflow]\nsummarize = false",
        &["tools.summarize_output", "tools.overflow.summarize"],
    );
    check(
        "[llm.ollama]\nmodel = 'm'\n[[llm.providers]]\nname = 'ollama'\ntype = 'ollama'\nmodel = 'n'",
        &["c.toml:2:1: `llm.ollama`", "llm.providers"],
    );
}

/// Proves CFG-2: values of old keys are checked, and keys near them are unknown.
#[test]
fn old_key_is_checked_like_a_current_one() {
    let check = |text: &str, expect: &str| {
        let (_, errors) = read(text);
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        assert!(errors[0].starts_with(expect), "{errors:?}");
    };
    check(
        "[agent]\nmax_tool_retries = 'five'",
        "c.toml:2:20: `agent.max_tool_retries` must be an integer from 0 to ",
    );
    check(
        "[agent]\nmax_tool_retries = -1",
        "c.toml:2:20: `agent.max_tool_retries` must be an integer from 0 to ",
    );
    check(
        "[tools.filters.test]\nmax_failures = 0",
        "c.toml:2:16: `tools.filters.test.max_failures` must be an integer from 1",
    );
    check(
        "[tools.filters.test]\nmax_failurs = 1",
        "c.toml:2:1: `max_failurs` is not a key of [tools.filters.test]\n  help: did you mean `max_failures`?",
    );
    check(
        "[tools.filters.tset]\nenabled = true",
        "c.toml:1:16: `tset` is not a key of [tools.filters]",
    );
    check(
        "[agent]\nmax_tool_retrys = 1",
        "c.toml:2:1: `max_tool_retrys` is not a key of [agent]",
    );
    check(
        "[llm.ollama]\nname = 'x'",
        "c.toml:2:1: `name` is not a key of [llm.ollama]",
    );
    check(
        "[tools.filters.security]\nextra_patterns = [1]",
        "c.toml:2:19: `tools.filters.security.extra_patterns[0]` must be a table, not 1",
    );
    check(
        "[tools.filters]\ntest = true",
        "c.toml:2:8: `tools.filters.test` must be a table, not true",
    );
}

/// Proves CFG-4: one notice names each old key, its successor and its place.
#[test]
fn notice_names_each_old_key_once() {
    let (layer, _) = read(
        "[agent]\nmax_tool_retries = 5\n[tools.filters.git]\nenabled = true\n[llm.ollama]\ntool_use = true\n\
         [tools.filters.security]\nextra_patterns = ['a', 'b']\n[tools.shell]\nallowed_commands = []",
    );
    assert_eq!(
        notice(&layer.old).unwrap(),
        "the configuration uses old keys: \
         `agent.max_tool_retries` is now `tools.retry.max_attempts` (user file c.toml:2); \
         `tools.filters.git.enabled` is now `tools.filters.rules.\"git-*\".enabled` (user file c.toml:4); \
         `tools.shell.allowed_commands` has no effect: the default blocklist always applies; \
         `[[tools.permissions.bash]]` allows other commands (user file c.toml:10); \
         `tools.filters.security.extra_patterns = [\"…\"]` is now \
         `[[tools.filters.security.extra_patterns]]` with `name` and `pattern` (user file c.toml:8); \
         `llm.ollama` is now `[[llm.providers]]` with `type = \"ollama\"` (user file c.toml:6); \
         `zeph config migrate` rewrites the file"
    );
    assert_eq!(
        notice(&read("[agent]\nmax_tool_iterations = 3").0.old),
        None
    );
}

/// Proves CFG-4: the origin of a value is the line of its old key.
#[test]
fn origin_is_the_line_of_the_old_key() {
    let (layer, _) = read(
        "[agent]\nmax_tool_retries = 5\n[tools.filters.git]\nenabled = true\n[llm.ollama]\nmodel = 'm'\n\
         [tools.filters.security]\nextra_patterns = ['a']",
    );
    let check = |key: &str, line: usize| {
        let found = layer.provenance.of(key).to_string();
        assert_eq!(found, format!("user file c.toml:{line}"), "{key}");
    };
    check("tools.retry.max_attempts", 2);
    check("tools.filters.rules.\"git-*\".enabled", 4);
    check("llm.providers[0].name", 6);
    check("llm.providers[0].model", 6);
    check("tools.filters.security.extra_patterns[0].name", 8);
    assert_eq!(
        layer.provenance.of("agent.max_tool_retries"),
        &Origin::Default
    );
}

/// Proves CFG-4: the list is consistent: each successor is a current key, and no old key is one.
#[test]
fn list_of_old_keys_is_consistent() {
    let mut keys: Vec<&str> = OLD_KEYS.iter().map(|(key, _)| *key).collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), OLD_KEYS.len());
    for (key, to) in OLD_KEYS {
        assert!(
            resolve_in(schema_shape::root(), key).is_none(),
            "{key} is a current key"
        );
        let accepted = resolve_in(schema_shape::accepted(), key).is_some();
        assert!(accepted || matches!(to, To::Provider), "{key} is not read");
        if let To::Key(new) | To::Settings(_, new, _) = to {
            let (path, shape) = resolve_in(schema_shape::root(), new).unwrap();
            assert_eq!(path.join("."), *new);
            assert!(!matches!(shape, Shape::Any | Shape::Table(_)), "{new}");
        }
    }
    assert!(is_old_table("llm.ollama") && is_old_table("tools.filters.git"));
    assert!(!is_old_table("agent") && !is_old_table("tools.filters.security"));
}

/// Proves LLM-2: `anthropic` is another name of `claude`.
#[test]
fn other_name_of_a_provider_type_is_accepted() {
    let of_type = |name: &str| {
        config(&format!(
            "[[llm.providers]]\nname = 'a'\ntype = '{name}'\nmodel = 'm'"
        ))
    };
    assert_eq!(of_type("anthropic"), of_type("claude"));
}

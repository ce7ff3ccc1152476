//! Tests of the rewriting of old keys.

use proptest::prelude::*;

use super::*;

fn migrate(text: &str) -> Result<Option<String>, String> {
    migrated(text, Path::new("c.toml"), FileLayer::User).map_err(|errors| errors.to_string())
}

/// Proves CFG-4, D-37: comments, order and notation are preserved.
#[test]
fn old_keys_are_replaced_in_place() {
    let check = |old: &str, new: &str| {
        let found = migrate(old).unwrap_or_else(|error| panic!("{old}\n{error}"));
        let found = found.unwrap_or_else(|| panic!("nothing to migrate:\n{old}"));
        assert_eq!(found, new, "from\n{old}");
        assert_eq!(
            migrate(&found),
            Ok(None),
            "a second migration changes nothing"
        );
    };
    check(
        "# mine\n[agent]\n# tries\nmax_tool_retries = 5 # five\nmax_tool_iterations = 3\n\n[tools]\nmode = \"plan\"\n",
        "# mine\n[agent]\nmax_tool_iterations = 3\n\n[tools]\nmode = \"plan\"\n\n[tools.retry]\n# tries\nmax_attempts = 5 # five\n",
    );
    check(
        "[tools.retry]\nbase_ms = 0x10 # wait\n[agent]\nmax_tool_retries = 0b11\n",
        "[tools.retry]\nbase_ms = 0x10 # wait\nmax_attempts = 0b11\n[agent]\n",
    );
    check(
        "agent.max_tool_retries = 5\ntools.mode = 'plan'\n",
        "tools.mode = 'plan'\ntools.retry.max_attempts = 5\n",
    );
    check(
        "[tools.filters]\nenabled = true\n\n# tests\n[tools.filters.test] # group\n# few\nmax_failures = 3\nenabled = true # yes\n\n[tools.undo]\nmax_bytes = 1\n",
        "[tools.filters]\nenabled = true\n\n# tests\n[tools.filters.rules.test_summary] # group\nenabled = true # yes\n# few\nmax_failures = 3\n\n[tools.undo]\nmax_bytes = 1\n",
    );
    check(
        "[tools.filters.git]\nenabled = true\nmax_log_entries = 20\nmax_diff_lines = 500\n",
        "[tools.filters.rules.\"git-*\"]\nenabled = true\nmax_diff_lines = 500\nmax_commits = 20\n",
    );
    check(
        "[tools.filters.security]\n# on\nenabled = false # off\n# mine\nextra_patterns = [\n  'ACME-\\d+', # ids\n  \"x\",\n]\n",
        "[tools.filters.security]\n# mine\nextra_patterns = [\n  { name = \"pattern_1\", pattern = 'ACME-\\d+' }, # ids\n  { name = \"pattern_2\", pattern = \"x\" },\n]\n# on\nredact = false # off\n",
    );
    check(
        "[tools]\nsummarize_output = true\n",
        "[tools]\n\n[tools.overflow]\nsummarize = true\n",
    );
    check(
        "[llm]\ndefault = \"ollama\"\n\n# local\n[llm.ollama]\n# address\nbase_url = 'http://localhost:11434'\nmodel = \"m\"\n\n[tools]\nmode = \"plan\"\n",
        "[llm]\ndefault = \"ollama\"\n\n# local\n[[llm.providers]]\nname = \"ollama\"\ntype = \"ollama\"\n# address\nbase_url = 'http://localhost:11434'\nmodel = \"m\"\n\n[tools]\nmode = \"plan\"\n",
    );
    check(
        "[tools.shell]\n# for me\nallowed_commands = [\"sudo\"]\ntimeout = 5\n",
        "[tools.shell]\n# for me\n# allowed_commands = [\"sudo\"] has no effect: the default blocklist always applies; `[[tools.permissions.bash]]` allows other commands\ntimeout = 5\n",
    );
    check(
        "[tools.audit]\nenabled = true\ndestination = \"stdout\" # here\n",
        "[tools.audit]\nstdout = true # here\nsqlite = true\n",
    );
}

/// Proves CFG-4: the values do not change in any notation.
#[test]
fn migration_preserves_the_values() {
    let other = "[[llm.providers]]\nname = 'a'\ntype = 'openai'\nmodel = 'm'\n";
    for text in [
        "tools.filters = { git = { enabled = false }, enabled = true }",
        "tools = { filters = { git = { enabled = false } }, summarize_output = true }",
        "[tools]\nfilters.git.enabled = false\nfilters.test = { max_failures = 3 }\nmode = 'plan'",
        "[tools]\nfilters = { clippy = { enabled = false }, log_dedup = { enabled = false } }",
        "[agent]\nmax_tool_retries = 1\n[agent.compaction]\nenabled = false\n[tools.retry]\nbase_ms = 3",
        "tools.retry = { base_ms = 3 }\nagent = { max_tool_retries = 1 }",
        "llm = { ollama = { model = 'm' } }",
        "llm.ollama.model = 'm'\nllm.ollama.tool_use = false",
        "[llm]\nollama = { tool_use = true }\nfallback = []",
        "[llm.ollama]",
        "[tools.filters.test]\n[tools.filters.git]",
        "[tools.filters.test]\n# nothing\n[tools.filters.clippy]\nenabled = false",
        "[tools.filters.security]\nenabled = true\nredact = false",
        "[tools.filters.security]\nextra_patterns = ['a', { name = 'b', pattern = 'c' }]",
        "[tools.shell]\nallowed_commands = [\n 'a',\n 'b',\n]",
        "[tools.overflow]\ndir = '/x'",
        "[tools.audit]\nenabled = false\ndestination = '/x'",
        "[tools.audit]\n# log\ndestination = '~/a.jsonl'\nenabled = true",
        "[tools.filters.rules.git-log]\nenabled = false\n[tools.filters.git]\nenabled = true",
        &format!("[llm.ollama]\nmodel = 'm'\n{other}"),
        &format!("{other}[llm.ollama]\nmodel = 'm'\n[tools]\nmode = 'plan'\n"),
        &format!("{other}[llm]\nfallback = []\n[llm.ollama]\nmodel = 'm'\n"),
        "llm.providers = [{ name = 'a', type = 'openai', model = 'm' }]\nllm.ollama.model = 'x'",
        "\u{feff}[agent]\r\nmax_tool_retries = 2\r\n",
    ] {
        let (before, _) = match read(text, Path::new("c.toml"), FileLayer::User) {
            Ok(found) => found,
            Err(error) => panic!("{text}\n{error}"),
        };
        let new = migrate(text).unwrap_or_else(|error| panic!("{text}\n{error}"));
        let new = new.unwrap_or_else(|| text.to_owned());
        let (after, has_old) = read(&new, Path::new("c.toml"), FileLayer::User).unwrap();
        assert!(!has_old, "{text}\n=>\n{new}");
        assert_eq!(after.config, before.config, "{text}\n=>\n{new}");
        assert_eq!(
            text.matches('#').count(),
            new.matches("# ").count() - new.matches(" has no effect").count(),
            "{text}\n=>\n{new}"
        );
        assert_eq!(migrate(&new), Ok(None), "{new}");
    }
}

#[test]
fn file_without_old_keys_is_unchanged() {
    for text in [
        "",
        "# x\n",
        "[agent]\nmax_tool_iterations = 3\n",
        include_str!("../../../../../config/default.toml"),
    ] {
        assert_eq!(migrate(text), Ok(None));
    }
}

/// Proves CFG-4: an invalid file is refused with its faults.
#[test]
fn invalid_file_is_refused() {
    let check = |text: &str, expect: &str| {
        let error = migrate(text).unwrap_err();
        assert!(error.starts_with(expect), "{error}");
    };
    check("[agent\n", "c.toml:1:");
    check(
        "[agent]\nmax_tool_retries = 5\nmax_tool_iteration = 3\n",
        "c.toml:3:1: `max_tool_iteration`",
    );
    check("[agent]\nmax_tool_retries = 'x'\n", "c.toml:2:20:");
    check(
        "[agent]\nmax_tool_retries = 5\n[tools.retry]\nmax_attempts = 5\n",
        "c.toml:2:1: `agent.max_tool_retries` is the old name",
    );
}

proptest! {
    /// A file with any combination of old keys, in any order, preserves its values and comments.
    #[test]
    fn combinations_preserve_their_values(parts in prop::sample::subsequence(vec![
        "[agent]\n# a1\nmax_tool_retries = 1\n",
        "[llm.ollama]\n# a2\nmodel = 'm'\n",
        "[tools.filters.test]\n# a3\nenabled = false\nmax_failures = 2\n",
        "# a4\n[tools.filters.git]\nmax_diff_lines = 3\n",
        "[tools.filters.clippy]\nenabled = false # a5\n",
        "[tools.filters.security]\n# a6\nenabled = false\nextra_patterns = ['x'] # a7\n",
        "[[llm.providers]]\nname = 'a'\ntype = 'openai'\nmodel = 'm' # a8\n",
        "[tools.retry]\nmax_ms = 900 # a9\n",
        "[tools.overflow]\nthreshold = 4 # a0\n",
        "[tools.shell]\ntimeout = 3\n",
    ], 0..10).prop_shuffle()) {
        let text = parts.concat();
        if let Some(new) = migrate(&text).unwrap() {
            for comment in 0..10 {
                let comment = format!("# a{comment}");
                prop_assert_eq!(text.contains(&comment), new.contains(&comment), "{}", new);
            }
        }
    }
}

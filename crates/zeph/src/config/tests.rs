//! A test that some code reads every key. It searches the sources of the workspace for reads.
//!
//! A read of `tools.shell.timeout` (of `ShellConfig`) is
//! - `shell.timeout`: the field of a value with the name of the section (`provider` for a list `providers`);
//! - `config.timeout` or `….shell_config.timeout` in a directory that names `ShellConfig`;
//! - `let ShellConfig { timeout, .. } = …`.
//!
//! Reads in the files that define the structs, in the configuration itself and in tests do not count.

use std::fs;
use std::path::{Path, PathBuf};

use super::schema_shape;

/// Keys that readers get through a method or a derived value, and the text of that read.
const DERIVED: &[(&str, &str)] = &[
    ("agent.compaction.threshold", "compaction.tokens("),
    ("llm.default", "llm.chosen()"),
    ("llm.providers.type", "build_provider("),
    ("llm.providers.api", "build_provider("),
    ("llm.providers.api_key_env", ".key_env()"),
    ("llm.providers.images", ".takes_images()"),
    ("llm.providers.tool_use", ".uses_tools()"),
    ("mcp.servers.command", ".way()"),
    ("mcp.servers.url", ".way()"),
    ("mcp.servers.connect_timeout_secs", ".connect_timeout()"),
    ("mcp.servers.call_timeout_secs", ".call_timeout()"),
    ("memory.path", "paths.database"),
    ("tools.audit.path", "paths.audit_log"),
    ("tools.permissions.TOOL.pattern", "written.pattern"),
    ("tools.permissions.TOOL.action", "rule.action()"),
    ("tools.permissions.TOOL.match", "written.matches"),
    ("tools.permissions.TOOL.not_match", "written.not_matches"),
    ("tools.policy.rules.trust_level", "written.trust_level"),
    (
        "tools.authorization.rules.trust_level",
        "written.trust_level",
    ),
    ("tools.policy.rules.match", "written().matches"),
    ("tools.policy.rules.not_match", "written().not_matches"),
    ("tools.authorization.rules.match", "written().matches"),
    (
        "tools.authorization.rules.not_match",
        "written().not_matches",
    ),
    ("tools.overflow.retention_days", ".retention_cutoff("),
    ("tools.overflow.max_overflow_bytes", ".byte_limit()"),
    ("tools.result_cache.ttl_secs", ".ttl()"),
    ("tools.tafc.complexity_threshold", "tafc::apply("),
    ("tools.utility.exempt_tools", "config.is_exempt("),
];

/// Proves CFG-2: a key that nothing reads is a dead setting.
#[test]
fn every_key_is_read() {
    let directories = sources(Path::new(env!("CARGO_MANIFEST_DIR")));
    assert!(!directories.is_empty(), "no sources were found");
    let mut unread = Vec::new();
    for section in schema_shape::root().sections() {
        let definition = format!("pub struct {} ", section.table.type_name);
        let sources = directories.iter().map(|files| {
            let readers = files.iter().filter(|source| !source.contains(&definition));
            readers.fold(String::new(), |all, source| all + source)
        });
        let sources: Vec<String> = sources.collect();
        for field in &section.keys {
            let key = schema_shape::join(&section.path, &field.name);
            let derived = DERIVED.iter().find(|(derived, _)| *derived == key);
            let place = Place {
                section: &section.path,
                type_name: &section.table.type_name,
            };
            let is_read = sources.iter().any(|source| match derived {
                Some((_, read)) => source.contains(read),
                None => place.is_read(&field.name, source),
            });
            if !is_read {
                unread.push(key);
            }
        }
    }
    assert!(
        unread.is_empty(),
        "no code reads {}; see the top of {}",
        unread.join(", "),
        file!()
    );
}

/// A section and the name of its struct.
struct Place<'a> {
    section: &'a str,
    type_name: &'a str,
}

impl Place<'_> {
    fn is_read(&self, field: &str, source: &str) -> bool {
        let names_type = words(source, self.type_name).next().is_some();
        let last = self.section.rsplit('.').next().unwrap();
        let singular = last.strip_suffix('s').unwrap_or(last);
        words(source, field).any(|at| {
            let (before, after) = (&source[..at], source[at + field.len()..].trim_start());
            let assigned = after.starts_with('=') && !after.starts_with("==");
            let Some(before) = before.strip_suffix('.') else {
                return false;
            };
            // A line break may precede the dot of a chain.
            let receiver = before.trim_end();
            let start = receiver.rfind(|c| !is_word(c)).map_or(0, |at| at + 1);
            let receiver = receiver[start..].to_lowercase();
            let is_config = receiver.ends_with("config") || receiver.ends_with("cfg");
            !assigned && (receiver == last || receiver == singular || (names_type && is_config))
        }) || self.is_destructured(field, source)
    }

    fn is_destructured(&self, field: &str, source: &str) -> bool {
        words(source, self.type_name).any(|at| {
            let after = source[at + self.type_name.len()..].trim_start();
            let Some((pattern, after)) = after.strip_prefix('{').and_then(|p| p.split_once('}'))
            else {
                return false;
            };
            let is_pattern = after.trim_start().starts_with('=');
            let fields = pattern
                .split(',')
                .map(|field| field.split(':').next().unwrap().trim());
            is_pattern && fields.into_iter().any(|name| name == field)
        })
    }
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// The positions of `word` as a whole word.
fn words<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = usize> + 'a {
    text.match_indices(word)
        .map(|(at, _)| at)
        .filter(move |at| {
            let before = text[..*at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            !before.is_some_and(is_word) && !after.is_some_and(is_word)
        })
}

/// Reads the sources that may read keys, without comments and tests, grouped by directory.
fn sources(root: &Path) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut directories: Vec<PathBuf> = vec![root.join("crates")];
    while let Some(directory) = directories.pop() {
        let mut files = Vec::new();
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            let name = path.file_name().unwrap().to_str().unwrap();
            let is_config = path.ends_with("zeph/src/config") || name == "config_cmd.rs";
            if is_config || name.starts_with('.') || name == "tests" || name == "target" {
                continue;
            }
            if path.is_dir() {
                directories.push(path);
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                files.push(code(&fs::read_to_string(&path).unwrap()));
            }
        }
        found.push(files);
    }
    found
}

/// Returns a source up to its tests, without comments.
fn code(source: &str) -> String {
    let tests = source
        .match_indices("#[cfg(test)]\nmod ")
        .find(|(at, attribute)| {
            let line = source[at + attribute.len()..].lines().next().unwrap();
            line.contains('{')
        });
    let source = tests.map_or(source, |(at, _)| &source[..at]);
    let lines = source
        .lines()
        .filter(|line| !line.trim_start().starts_with("//"));
    lines.fold(String::new(), |code, line| code + line + "\n")
}

#[test]
fn reads_of_a_key_are_recognized() {
    let place = Place {
        section: "tools.shell",
        type_name: "ShellConfig",
    };
    let check = |source: &str, expect: bool| {
        assert_eq!(place.is_read("timeout", &code(source)), expect, "{source}");
    };
    check("let t = config.tools.shell.timeout;", true);
    check("let t = self\n    .shell\n    .timeout\n    .min(3);", true);
    check("if shell.timeout == 3 {}", true);
    check("shell.timeout = 3;", false);
    check("// shell.timeout", false);
    check("shell.timeout_ms + shell.max_timeout", false);
    check("request.timeout", false);
    check("config.timeout", false);
    check("fn run(config: &ShellConfig) { config.timeout }", true);
    check("fn run(config: &ShellConfig) { other.timeout }", false);
    check("let ShellConfig { timeout, .. } = config;", true);
    check("let ShellConfig { max: timeout } = config;", false);
    check("ShellConfig { timeout: 3 }", false);
    check("#[cfg(test)]\nmod tests;\nfn f() { shell.timeout }", true);
    check(
        "#[cfg(test)]\nmod tests { fn f() { shell.timeout } }",
        false,
    );
    let place = Place {
        section: "llm.providers",
        type_name: "ProviderConfig",
    };
    assert!(place.is_read("model", "provider.model.len()"));
}

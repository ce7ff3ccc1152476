//! Checks of values that the schema cannot express, such as names that must exist and values that must match.

use zeph_llm::ProviderConfig;
use zeph_mcp::McpConfig;
use zeph_tools::shell::policy::{Construct, FOUNDING};
use zeph_tools::shell::transaction::Scope;
use zeph_tools::shell::{PolicyError, ShellConfig, ShellConfigError, ShellPolicy};

use std::path::Path;

use zeph_tools::file::ReadRules;

use super::error::{ConfigError, any_of, nearest};
use super::limits::contradictions;
use super::origin::{Origin, Provenance};
use super::telemetry::fault_of_endpoint;
use super::{Config, LlmConfig, ToolsConfig};
use crate::hooks::{HookConfig, tool_globs};

/// Everything that is wrong with `config`, each with its place.
pub(crate) fn check(config: &Config, provenance: &Provenance) -> Vec<ConfigError> {
    let mut check = Check {
        provenance,
        errors: Vec::new(),
    };
    check.providers(&config.llm);
    if let Some(name) = &config.llm.default {
        check.known_provider("llm.default", name, &config.llm);
    }
    for name in &config.llm.fallback {
        check.known_provider("llm.fallback", name, &config.llm);
    }
    check.embed_provider(&config.llm);
    let reformat = &config.tools.retry.parameter_reformat_provider;
    if !reformat.is_empty() {
        let key = "tools.retry.parameter_reformat_provider";
        check.known_provider(key, reformat, &config.llm);
    }
    let compress = &config.agent.compress_provider;
    if !compress.is_empty() {
        check.known_provider("agent.compress_provider", compress, &config.llm);
    }
    let summary = &config.tools.overflow.summary_provider;
    if !summary.is_empty() {
        let key = "tools.overflow.summary_provider";
        check.known_provider(key, summary, &config.llm);
    }
    let shell = &config.tools.shell;
    if let Ok(table) = toml::Table::try_from(config) {
        check.errors.extend(contradictions(&table, provenance));
    }
    check.servers(&config.mcp);
    check.hooks(&config.hooks);
    let endpoint = &config.telemetry.endpoint;
    if let Some(fault) = fault_of_endpoint(endpoint).filter(|_| !endpoint.is_empty()) {
        let help = "an empty `endpoint` exports nothing";
        check.error("telemetry.endpoint", fault, help);
    }
    check.blocklist(shell);
    check.adversarial(config);
    check.anomaly(&config.tools);
    check.boosts(&config.tools);
    if config.tools.audit.required && config.tools.audit.is_off() {
        check.error(
            "tools.audit.required",
            "`tools.audit.required` needs a sink for entries, and all sinks are off".to_owned(),
            "turn on `sqlite`, `jsonl` or `stdout` in [tools.audit]",
        );
    }
    check.errors
}

/// The errors in the read rules; `home` replaces `~` in them.
pub(crate) fn check_read_rules(
    config: &Config,
    provenance: &Provenance,
    home: Option<&Path>,
) -> Option<ConfigError> {
    let file = &config.tools.file;
    let fault = ReadRules::new(&file.deny_read, &file.allow_read, home).err()?;
    let origin = provenance.of(&format!("tools.file.{}", fault.list)).clone();
    let message = format!(
        "`tools.file.{}` has the glob {:?}: {}",
        fault.list, fault.glob, fault.reason
    );
    Some(ConfigError::new(origin, message).help("fix this rule: an invalid rule protects nothing"))
}

/// The errors in a project's changes of the judge; the first `own` policies are the user's.
pub(crate) fn check_judge(
    config: &Config,
    provenance: &Provenance,
    own: usize,
) -> Option<ConfigError> {
    let section = "tools.adversarial_policy";
    let policy = &config.tools.adversarial_policy;
    if !policy.enabled {
        return None;
    }
    let enabled = provenance.of(&format!("{section}.enabled"));
    let is_set_up = own > 0 || *provenance.of(&format!("{section}.provider")) != Origin::Default;
    if matches!(enabled, Origin::Project(_)) && !is_set_up {
        let message = format!(
            "the file of a project enables `{section}`, which costs one request per call, and your \
             own file sets neither its `policies` nor its `provider`"
        );
        let help = "remove it there, or set one of them in your own file";
        return Some(ConfigError::new(enabled.clone(), message).help(help));
    }
    None
}

/// Bytes that all policies may have: they are sent with every call.
const MAX_POLICIES_BYTES: usize = 16 * 1024;

struct Check<'a> {
    provenance: &'a Provenance,
    errors: Vec<ConfigError>,
}

impl Check<'_> {
    fn error(&mut self, key: &str, message: String, help: impl Into<String>) {
        let origin = self.provenance.of(key).clone();
        self.errors
            .push(ConfigError::new(origin, message).help(help));
    }

    fn providers(&mut self, llm: &LlmConfig) {
        for (number, provider) in llm.providers.iter().enumerate() {
            let item = format!("llm.providers[{number}]");
            let first = llm
                .providers
                .iter()
                .position(|other| other.name == provider.name);
            if let Some(first) = first.filter(|first| *first < number) {
                let other = self
                    .provenance
                    .of(&format!("llm.providers[{first}].name"))
                    .clone();
                let message = format!("there are two providers called {:?}", provider.name);
                let help = format!("the other one is from {other}; rename one");
                self.error(&format!("{item}.name"), message, help);
            }
            if let Err(fault) = provider.validate() {
                let key = self.key_of_fault(&item, &fault.message);
                let message = format!("provider {:?}: {}", provider.name, fault.message);
                let origin = self.provenance.of(&key).clone();
                self.errors.push(ConfigError::new(origin, message));
            }
            if provider
                .api_key_env
                .as_deref()
                .is_some_and(|name| !is_variable(name))
            {
                // It is not repeated: it may be the key itself.
                let message = "`api_key_env` is not the name of an environment variable";
                let help = "set a variable such as OPENAI_API_KEY to the key, and write the name \
                    of the variable here";
                self.error(&format!("{item}.api_key_env"), message.to_owned(), help);
            }
        }
    }

    fn hooks(&mut self, hooks: &[HookConfig]) {
        for (number, hook) in hooks.iter().enumerate() {
            let item = format!("hooks[{number}]");
            let event = hook.event.as_str();
            if hook.command.trim().is_empty() {
                let message = format!("the {event} hook has an empty `command`");
                self.error(&format!("{item}.command"), message, "name the program");
            }
            if !hook.event.is_about_call() && !hook.tools.is_empty() {
                let message = format!("`tools` has no effect on the event `{event}`");
                let help = "remove it, or use `before_call` or `after_call`";
                self.error(&format!("{item}.tools"), message, help);
            }
            if let Err(error) = tool_globs(&hook.tools) {
                let message = format!("`tools` of the {event} hook: {error}");
                self.error(&format!("{item}.tools"), message, "correct this glob");
            }
        }
    }

    fn servers(&mut self, mcp: &McpConfig) {
        for (number, server) in mcp.servers.iter().enumerate() {
            let item = format!("mcp.servers[{number}]");
            let mut before = mcp.servers.iter().take(number);
            if before.any(|other| other.name == server.name) {
                let message = format!("there are two MCP servers called {:?}", server.name);
                self.error(&format!("{item}.name"), message, "rename one");
            }
            if let Err((key, fault)) = server.validate() {
                let message = format!("MCP server {:?}: {fault}", server.name);
                let help =
                    "a server needs a `command` with `args` and `env`, or a `url` with `headers`";
                self.error(&format!("{item}.{key}"), message, help);
            }
        }
    }

    /// The key that a fault of a provider names, or the provider's name if that key is missing.
    fn key_of_fault(&self, item: &str, message: &str) -> String {
        let named = message.split('`').nth(1).unwrap_or_default();
        let key = format!("{item}.{named}");
        match self.provenance.of(&key) {
            Origin::Default => format!("{item}.name"),
            _ => key,
        }
    }

    fn blocklist(&mut self, shell: &ShellConfig) {
        let scope = Scope::new(&shell.transaction_scope).err();
        let scope = scope.into_iter().flatten().map(ShellConfigError::Scope);
        let errors = ShellPolicy::new(&shell.into()).err();
        let errors = errors.into_iter().flatten().map(ShellConfigError::Policy);
        for error in errors.chain(scope) {
            let (key, help) = match &error {
                ShellConfigError::Policy(PolicyError::Entry { index, .. }) => (
                    format!("tools.shell.blocked_commands[{index}]"),
                    "an entry has words, without quotes and operators".to_owned(),
                ),
                ShellConfigError::Scope(error) => (
                    format!("tools.shell.transaction_scope[{}]", error.index),
                    "a glob such as `src/**`, relative to the working directory".to_owned(),
                ),
                ShellConfigError::Policy(PolicyError::Construct { index, name }) => {
                    let names = Construct::ALL.map(Construct::name);
                    let names = names.into_iter().chain([FOUNDING]);
                    let help = match nearest(name, names.clone()) {
                        Some((near, likeness)) if likeness >= 0.6 => {
                            format!("did you mean `{near}`?")
                        }
                        _ => format!("there is {}", any_of(names)),
                    };
                    (format!("tools.shell.blocked_constructs[{index}]"), help)
                }
            };
            let list = key.split('[').next().unwrap_or_default();
            let key = match self.provenance.of(&key) {
                Origin::Default => list,
                _ => key.as_str(),
            };
            self.error(key, format!("`{list}`: {error}"), help);
        }
    }

    fn anomaly(&mut self, tools: &ToolsConfig) {
        let threshold = tools.anomaly.failure_threshold;
        if !(threshold > 0.0 && threshold <= 1.0) {
            self.error(
                "tools.anomaly.failure_threshold",
                format!(
                    "`tools.anomaly.failure_threshold` is {threshold}, and must be more than 0 \
                    and at most 1"
                ),
                "0.7 means: 7 of 10 calls failed",
            );
        }
    }

    fn boosts(&mut self, tools: &ToolsConfig) {
        let config = &tools.dependencies;
        let boosts = [
            ("tools.dependencies.boost_per_dep", config.boost_per_dep),
            ("tools.dependencies.max_total_boost", config.max_total_boost),
        ];
        for (key, boost) in boosts {
            if !(0.0..=1.0).contains(&boost) {
                self.error(
                    key,
                    format!("`{key}` is {boost}, and must be from 0 to 1"),
                    "0.15 raises the similarity to the message by 0.15",
                );
            }
        }
    }

    /// Reports a key that names a provider that does not exist.
    fn known_provider(&mut self, key: &str, name: &str, llm: &LlmConfig) {
        let names = || llm.providers.iter().map(|provider| provider.name.as_str());
        if names().any(|known| known == name) {
            return;
        }
        let help = match nearest(name, names()) {
            None => "there is no provider; add [[llm.providers]] to the user file".to_owned(),
            Some((_, likeness)) if likeness < 0.6 => format!("there is {}", any_of(names())),
            Some((near, _)) => format!("did you mean `{near}`?"),
        };
        self.error(key, format!("there is no provider called {name:?}"), help);
    }

    fn embed_provider(&mut self, llm: &LlmConfig) {
        let (key, name) = ("llm.embed_provider", llm.embed_provider.as_str());
        if name.is_empty() {
            return;
        }
        self.known_provider(key, name, llm);
        let provider = llm.providers.iter().find(|provider| provider.name == name);
        if let Some(lack) = provider.and_then(ProviderConfig::lack_of_embeddings) {
            let message = format!("provider {name:?} creates no embeddings");
            self.error(key, message, lack);
        }
    }

    fn adversarial(&mut self, config: &Config) {
        let policy = &config.tools.adversarial_policy;
        let key = |name: &str| format!("tools.adversarial_policy.{name}");
        if !policy.provider.is_empty() {
            self.known_provider(&key("provider"), &policy.provider, &config.llm);
        }
        if policy.enabled && policy.policies.is_empty() {
            self.error(
                &key("enabled"),
                format!(
                    "`{}` needs policies, and `policies` is empty",
                    key("enabled")
                ),
                "add a sentence to `policies`: \"Nothing outside of the project is deleted.\"",
            );
        }
        let blank = |text: &String| text.trim().is_empty();
        if let Some(at) = policy.policies.iter().position(blank) {
            let message = format!(
                "`{}` has an empty policy, number {}",
                key("policies"),
                at + 1
            );
            self.error(&key("policies"), message, "write a sentence, or remove it");
        }
        let bytes: usize = policy.policies.iter().map(String::len).sum();
        if bytes > MAX_POLICIES_BYTES {
            let message = format!(
                "`{}` have {bytes} bytes, more than {MAX_POLICIES_BYTES}",
                key("policies")
            );
            self.error(
                &key("policies"),
                message,
                "every call sends them: shorten them",
            );
        }
    }
}

fn is_variable(name: &str) -> bool {
    let mut characters = name.chars();
    let first = characters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    // Longer names are keys by mistake.
    first && name.len() <= 64 && characters.all(|c| c.is_ascii_alphanumeric() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::config::layer::{FileLayer, Layer};

    fn errors(text: &str) -> Vec<String> {
        let mut errors = Vec::new();
        let layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
        assert!(errors.is_empty(), "{errors:?}");
        let config: Config = layer.table.try_into().unwrap();
        check(&config, &layer.provenance)
            .iter()
            .map(ToString::to_string)
            .collect()
    }

    const GOOD: &str = "[[llm.providers]]\nname = 'a'\ntype = 'openai'\nmodel = 'm'\n";

    /// Proves LLM-2.
    #[test]
    fn providers_and_their_default_are_checked() {
        let check = |text: &str, expect: &[&str]| {
            let text = format!("{GOOD}{text}");
            assert_eq!(errors(&text), expect, "{text}");
        };
        check("", &[]);
        check(
            "base_url = 'http://127.0.0.1:1/v1/'\napi_key_env = 'A_KEY'\n[llm]\ndefault = 'a'",
            &[],
        );
        check(
            GOOD,
            &[
                "c.toml:6:1: there are two providers called \"a\"\n  help: the other one is from user file c.toml:2; rename one",
            ],
        );
        check(
            "[llm]\ndefault = 'local'",
            &["c.toml:6:1: there is no provider called \"local\"\n  help: there is `a`"],
        );
        check(
            "[[llm.providers]]\nname = 'demo'\ntype = 'scripted'\n[llm]\ndefault = 'dem'",
            &[
                "c.toml:6:1: provider \"demo\": `scenario` is missing: name the scenario file",
                "c.toml:9:1: there is no provider called \"dem\"\n  help: did you mean `demo`?",
            ],
        );
        check(
            "context_window = 0",
            &["c.toml:5:1: provider \"a\": `context_window` must be at least 1"],
        );
        check(
            "api_key_env = 'sk-abc'",
            &[
                "c.toml:5:1: `api_key_env` is not the name of an environment variable\n  help: set \
                 a variable such as OPENAI_API_KEY to the key, and write the name of the variable here",
            ],
        );
        for url in ["localhost:1", "file:///x", "http://", "http://a b"] {
            let found = errors(&format!("{GOOD}base_url = '{url}'"));
            assert!(
                found[0].starts_with("c.toml:5:1: provider \"a\": `base_url`"),
                "{found:?}"
            );
        }
    }

    /// Proves SCH-5 for who makes embeddings.
    #[test]
    fn embedding_provider_is_checked() {
        let check = |text: &str, expect: &[&str]| {
            let text =
                format!("[llm]\nembed_provider = 'a'\n[[llm.providers]]\nname = 'a'\n{text}");
            assert_eq!(errors(&text), expect, "{text}");
        };
        check("type = 'openai'\nmodel = 'm'\nembedding_model = 'e'", &[]);
        check("type = 'candle'\nmodel = 'minilm'", &[]);
        check(
            "type = 'ollama'\nmodel = 'm'",
            &[
                "c.toml:2:1: provider \"a\" creates no embeddings\n  help: it has no \
                 `embedding_model`: name the model that creates embeddings",
            ],
        );
        check(
            "type = 'claude'\nmodel = 'm'",
            &[
                "c.toml:2:1: provider \"a\" creates no embeddings\n  help: `type = \"claude\"` has no embeddings: name a provider of type `openai`, `ollama` or `candle`",
            ],
        );
        let found = errors("llm.embed_provider = 'a'");
        assert!(
            found[0].contains("there is no provider called \"a\""),
            "{found:?}"
        );
    }

    #[test]
    fn default_without_providers_is_an_error() {
        let found = errors("llm.default = 'a'");
        assert!(
            found[0].contains("there is no provider; add [[llm.providers]]"),
            "{found:?}"
        );
    }

    /// Proves SH-11.
    #[test]
    fn blocklist_entries_are_words_and_known_constructs() {
        let check = |text: &str, expect: &[&str]| {
            let found = errors(text);
            assert_eq!(found.len(), expect.len(), "{found:?}");
            for (found, expect) in found.iter().zip(expect) {
                assert!(found.starts_with(expect), "{found}");
            }
        };
        check(
            "[tools.shell]\nblocked_commands = ['terraform destroy', 'x*']\nblocked_constructs = ['eval', 'founding']",
            &[],
        );
        check(
            "[tools.shell]\nblocked_commands = ['a', '']",
            &["c.toml:2:"],
        );
        check(
            "[tools.shell]\nblocked_commands = ['a; b']",
            &[
                "c.toml:2:21: `tools.shell.blocked_commands`: \"a; b\" is not the start of a command",
            ],
        );
        let found = errors("[tools.shell]\nblocked_constructs = ['here_strings']");
        assert!(
            found[0].contains("did you mean `here_string`?") && found[0].starts_with("c.toml:2:"),
            "{found:?}"
        );
    }

    #[test]
    fn values_beyond_their_limit_are_errors() {
        assert_eq!(
            errors("tools.shell.timeout = 600"),
            <[String; 0]>::default()
        );
        let check = |text: &str, expect: &str| {
            let found = errors(text);
            assert!(found[0].starts_with(expect), "{found:?}");
        };
        check(
            "[tools.shell]\nmax_timeout = 20\ntimeout = 21",
            "c.toml:3:1: `tools.shell.timeout` (21) is more than `tools.shell.max_timeout` (20)",
        );
        check("tools.shell.timeout = 601", "c.toml:1:13: ");
        check(
            "[tools.retry]\nbase_ms = 200\nmax_ms = 100",
            "c.toml:2:1: `tools.retry.base_ms` (200) is more than `tools.retry.max_ms` (100)",
        );
    }

    /// Proves PERM-41 for an invalid threshold.
    #[test]
    fn anomaly_threshold_has_bounds() {
        let check = |text: &str, expect: Option<&str>| {
            let found = errors(text);
            assert_eq!(found.len(), usize::from(expect.is_some()), "{found:?}");
            for (found, expect) in found.iter().zip(expect) {
                assert!(found.starts_with(expect), "{found}");
            }
        };
        check("[tools.anomaly]\nfailure_threshold = 1.0", None);
        check("[tools.anomaly]\nfailure_threshold = 0.01", None);
        let wrong = Some("c.toml:2:1: `tools.anomaly.failure_threshold` is ");
        check("[tools.anomaly]\nfailure_threshold = 0.0", wrong);
    }

    /// Proves OUT-51 in part.
    #[test]
    fn required_entries_need_a_sink() {
        let off = "[tools.audit]\nsqlite = false\n";
        assert_eq!(errors(off), <[String; 0]>::default());
        let found = errors(&format!("{off}required = true"));
        assert!(found[0].starts_with("c.toml:3:1: "), "{found:?}");
        let log = format!("{off}required = true\njsonl = true");
        assert_eq!(errors(&log), <[String; 0]>::default());
    }

    /// Proves FILE-4 in part: an invalid glob is reported with file and line.
    #[test]
    fn read_rules_are_checked() {
        let fault = |text: &str| {
            let mut errors = Vec::new();
            let layer = Layer::from_toml(text, Path::new("c.toml"), FileLayer::User, &mut errors);
            assert!(errors.is_empty(), "{errors:?}");
            let config: Config = layer.table.try_into().unwrap();
            check_read_rules(&config, &layer.provenance, Some(Path::new("/h")))
                .map(|error| error.to_string())
        };
        assert_eq!(
            fault("[tools.file]\ndeny_read = ['~/.ssh', '**/*.{pem,key}']"),
            None
        );
        let found = fault("[tools.file]\nallow_read = ['/a']\ndeny_read = ['/a/[b']").unwrap();
        assert!(
            found.starts_with(
                "c.toml:3:13: `tools.file.deny_read` has the glob \"/a/[b\": unclosed"
            ),
            "{found}"
        );
        let found = fault("[tools.file]\nallow_read = ['src/**']").unwrap();
        assert!(
            found.starts_with("c.toml:2:14: ") && found.contains("begin it with"),
            "{found}"
        );
    }
}

//! Secrets that are redacted from the output of tools and of the program.

use std::sync::Arc;

use secrecy::ExposeSecret as _;
use zeph_mcp::{McpServerConfig, StoredLogin, variables};
use zeph_memory::ServerUrl;
use zeph_tools::secrets::{KnownSecrets, SecurityConfig, SecurityPatterns, Skipped};
use zeph_tools::shell::ShellEnvConfig;
use zeph_tools::shell::env::filtered_secrets;

use super::mcp::McpTokens;
use super::provider::vendor_keys;
use crate::config::{Environment, Loaded, TelemetryConfig};
use crate::keys::KeyStore;
use crate::output::{redact, stderr_line};

/// Calls [`withhold`], and reports patterns that cannot be used, even if output should be quiet: their secrets are
/// not protected.
pub(crate) fn redaction_values(loaded: &Loaded, env: &Environment) -> Arc<SecurityPatterns> {
    let (secrets, skipped) = withhold(loaded, env);
    for pattern in skipped {
        stderr_line(&format!("warning: {pattern}"));
    }
    secrets
}

/// The minimum length of the run of letters and digits in a value that looks like a key.
const MIN_KEY_RUN: usize = 16;

/// Redacts the secrets of the environment until the configuration is loaded: keys of vendors, variables whose names look
/// like secrets, and values that look like keys. The configuration may name any variable as the key of a provider. All
/// later output of the program omits them.
pub(crate) fn withhold_environment(env: &Environment) {
    let keys = vendor_keys().filter_map(|name| env.var(name)?.to_str());
    let vars: Vec<_> = env.vars.clone().into_iter().collect();
    let mut likely = filtered_secrets(&vars, &ShellEnvConfig::default());
    let others = vars.iter().filter_map(|(_, value)| value.to_str());
    likely.extend(
        others
            .filter(|value| looks_like_key(value))
            .map(str::to_owned),
    );
    likely.extend(TelemetryConfig::default().likely_secrets(env));
    let known = KnownSecrets {
        keys: keys.map(str::to_owned).collect(),
        likely,
    };
    let (secrets, _) = SecurityPatterns::new(&SecurityConfig::default(), &known);
    redact::keep_out(Arc::new(secrets));
}

/// Whether a value is one word with a long run of letters and digits. Names of models and hosts have shorter runs.
fn looks_like_key(value: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || "-_.+=~".contains(c);
    let mut runs = value.split(|c: char| !c.is_ascii_alphanumeric());
    let is_mixed = |run: &str| {
        run.len() >= MIN_KEY_RUN
            && run.contains(|c: char| c.is_ascii_digit())
            && run.contains(|c: char| c.is_ascii_alphabetic())
    };
    value.chars().all(is_part) && runs.any(is_mixed)
}

/// The secrets that the configuration names, with the values of providers' keys and of variables
/// that commands do not see. From now on the program itself does not print them either. Returns also
/// the patterns that cannot be used.
pub(crate) fn withhold(
    loaded: &Loaded,
    env: &Environment,
) -> (Arc<SecurityPatterns>, Vec<Skipped>) {
    let config = &loaded.config;
    let providers = config.llm.providers.iter();
    let names = providers.filter_map(|provider| provider.key_env());
    let keys = names
        .chain(vendor_keys())
        .filter_map(|name| env.var(name)?.to_str());
    let vars: Vec<_> = env.vars.clone().into_iter().collect();
    let mut likely = filtered_secrets(&vars, &config.tools.shell.env);
    likely.extend(config.mcp.servers.iter().flat_map(of_server));
    likely.extend(config.telemetry.likely_secrets(env));
    let tokens = Arc::new(McpTokens::in_folder(&loaded.paths.data_dir));
    likely.extend(config.mcp.servers.iter().flat_map(|server| {
        let url = server.url.as_deref().unwrap_or_default();
        StoredLogin::new(Arc::clone(&tokens) as _, &server.name, url).secrets()
    }));
    let servers = config.mcp.servers.iter();
    let written = servers.flat_map(|server| {
        let secret = server
            .oauth
            .as_ref()
            .and_then(|oauth| oauth.client_secret.as_ref());
        server
            .env
            .values()
            .chain(server.headers.values())
            .chain(secret)
    });
    let written = written.chain(config.telemetry.headers.values());
    let used = written.flat_map(|value| variables(value));
    let used = used.filter_map(|name| env.var(name)?.to_str());
    let stored = KeyStore::in_folder(&loaded.paths.data_dir).all();
    let stored = stored.iter().map(|stored| stored.key.expose_secret());
    let known = KnownSecrets {
        keys: keys
            .chain(used)
            .chain(stored)
            .chain(config.memory.url.as_ref().and_then(ServerUrl::password))
            .map(str::to_owned)
            .collect(),
        likely,
    };
    let (secrets, skipped) = SecurityPatterns::new(&config.tools.filters.security, &known);
    let secrets = Arc::new(secrets);
    redact::keep_out(Arc::clone(&secrets));
    (secrets, skipped)
}

/// The likely secrets of an MCP server's table: variables that look like one, and the last words of headers, except
/// headers that all requests have.
fn of_server(server: &McpServerConfig) -> Vec<String> {
    const PLAIN: [&str; 4] = ["accept", "accept-language", "content-type", "user-agent"];
    let env = server.env.iter();
    let env: Vec<_> = env
        .map(|(name, value)| (name.into(), value.into()))
        .collect();
    let headers = server.headers.iter();
    let headers = headers.filter(|(name, _)| !PLAIN.contains(&name.to_lowercase().as_str()));
    let last = headers.filter_map(|(_, value)| value.split_whitespace().last());
    let last = last.filter(|word| !word.contains("${"));
    let mut likely = filtered_secrets(&env, &ShellEnvConfig::default());
    let secret = server
        .oauth
        .as_ref()
        .and_then(|oauth| oauth.client_secret.clone());
    likely.extend(secret.filter(|secret| !secret.contains("${")));
    likely.extend(last.map(str::to_owned));
    likely
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_with_a_long_run_looks_like_a_key() {
        let check = |value, expect| assert_eq!(looks_like_key(value), expect, "{value}");
        check("sk-test-0123456789abcdef", true);
        check("0123456789abcdef0123456789abcdef", true);
        check("claude-sonnet-4-5-20250929", false);
        check("20250929202509292025", false);
        check("internationalization", false);
        check("/data/0123456789abcdef", false);
        check("a 0123456789abcdef", false);
        check("", false);
    }
}

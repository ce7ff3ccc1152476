//! Configuration of providers: `[llm]` and `[[llm.providers]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Which wire a provider speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// OpenAI Chat Completions, and every server compatible with it.
    Openai,
    /// Replays a scenario file; no model is asked.
    Scripted,
}

/// One provider (`[[llm.providers]]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The name by which `[llm] default` and `--provider` choose it.
    pub name: String,
    /// The wire format.
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    /// The model's name as the server knows it.
    #[serde(default)]
    pub model: String,
    /// Where the server is, with or without a trailing `/v1` or `/`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key. Without one, no key is sent to a server named by `base_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Tokens that fit into the model's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<usize>,
    /// The most tokens one answer may have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// The scenario file of a `scripted` provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<std::path::PathBuf>,
}

/// Retry of requests to providers (`[llm.retry]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// How often a request is sent at most, the first time included.
    #[schemars(range(min = 1))]
    pub max_attempts: u32,
    /// Seconds that all attempts and waits of one request may take together before the answer begins.
    pub budget_secs: u64,
    /// Seconds to wait for a connection.
    pub connect_timeout_secs: u64,
    /// Seconds without a byte after which a request counts as dead.
    pub read_timeout_secs: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: 4,
            budget_secs: 60,
            connect_timeout_secs: 10,
            read_timeout_secs: 300,
        }
    }
}

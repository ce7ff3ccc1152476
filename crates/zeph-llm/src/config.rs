//! Configuration of providers: `[llm]` and `[[llm.providers]]`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::effort::Effort;
use crate::endpoint::{self, ApiPath, Endpoint};
use crate::error::{LlmError, LlmErrorKind};
use crate::usage::Prices;

/// The API of a provider.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ProviderKind {
    /// Anthropic's Messages API, and servers compatible with it.
    #[serde(alias = "anthropic")]
    Claude,
    /// OpenAI Chat Completions, and every server compatible with it.
    Openai,
    /// Ollama's own API.
    Ollama,
    /// A model in this process, on the CPU, in a build with the feature `candle`.
    Candle,
    /// Replays a scenario file; no model is asked.
    Scripted,
}

/// The API of OpenAI that a server implements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenaiApi {
    /// Chat Completions, which every compatible server has.
    Chat,
    /// Responses, which keeps the reasoning of a model from one call to the next.
    Responses,
}

/// A provider of a model (`[[llm.providers]]`).
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ProviderConfig {
    /// The name by which `[llm] default` and `--provider` choose it.
    pub name: String,
    /// The wire format.
    #[serde(rename = "type")]
    pub kind: ProviderKind,
    /// The API of an `openai` provider: `chat` without a value.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<OpenaiApi>,
    /// The server's name of the model. Without one, an `ollama` provider on this machine uses the first model that supports tool calls.
    #[serde(default)]
    pub model: String,
    /// The server's name of the embedding model (`openai`, `ollama`). Without one, the provider has no embeddings.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub embedding_model: Option<String>,
    /// The address of the server, with or without a trailing `/v1` or `/`. An `ollama` provider takes no `/v1`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub base_url: Option<String>,
    /// The environment variable that holds the key. Without one, no key is sent to a server named by `base_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api_key_env: Option<String>,
    /// Tokens that fit into the model's window.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub context_window: Option<usize>,
    /// The maximum tokens of one response.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output_tokens: Option<u32>,
    /// How much the model reasons before it responds: `none`, `low`, `medium`, `high`, and if the API supports them
    /// `minimal` (`openai`), `xhigh` and `max` (`openai`, `claude`). Without a value, the server decides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<Effort>,
    /// Whether the model accepts images. Without a value, it is true for Anthropic and OpenAI, and false for a server
    /// in `base_url`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub images: Option<bool>,
    /// Whether the model calls tools through the API (the default). With `false`, the system prompt describes the
    /// tools, and the model calls them with blocks in its text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_use: Option<bool>,
    /// Whether a `candle` model uses all cores. By default it uses one, because several are slow if other programs run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub all_cores: Option<bool>,
    /// The price, USD for a million tokens: `input`, `output`, and as `input` without a value `cached_input` (read
    /// from the provider's cache) and `cache_write` (written to it). Without `prices` it is the list price of the
    /// vendor's own server, if that is known, and nothing on this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<std::collections::BTreeMap<String, f64>>")]
    pub prices: Option<Prices>,
    /// The scenario file of a `scripted` provider.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scenario: Option<std::path::PathBuf>,
}

impl ProviderConfig {
    /// Sets the model.
    #[must_use]
    pub fn with_model(mut self, model: impl Into<String>) -> Self {
        self.model = model.into();
        self
    }

    /// Sets the address of the server.
    #[must_use]
    pub fn with_base_url(mut self, base_url: impl Into<String>) -> Self {
        self.base_url = Some(base_url.into());
        self
    }

    /// Sets the window of the model in tokens.
    #[must_use]
    pub fn with_context_window(mut self, tokens: usize) -> Self {
        self.context_window = Some(tokens);
        self
    }
}

impl ProviderKind {
    /// The name in the configuration.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Claude => "claude",
            Self::Openai => "openai",
            Self::Ollama => "ollama",
            Self::Candle => "candle",
            Self::Scripted => "scripted",
        }
    }

    /// Returns the efforts that the API of the provider accepts; empty without such a setting.
    #[must_use]
    pub fn efforts(self) -> &'static [Effort] {
        const CLAUDE: [Effort; 6] = [
            Effort::None,
            Effort::Low,
            Effort::Medium,
            Effort::High,
            Effort::Xhigh,
            Effort::Max,
        ];
        const OLLAMA: [Effort; 4] = [Effort::None, Effort::Low, Effort::Medium, Effort::High];
        match self {
            Self::Openai => &Effort::ALL,
            Self::Claude => &CLAUDE,
            Self::Ollama => &OLLAMA,
            Self::Candle | Self::Scripted => &[],
        }
    }

    /// Parses an effort.
    ///
    /// # Errors
    /// A message that lists the accepted values.
    pub fn parse_effort(self, text: &str) -> Result<Effort, String> {
        let mut efforts = self.efforts().iter();
        match efforts.find(|effort| effort.as_str() == text) {
            Some(effort) => Ok(*effort),
            None => Err(self.effort_fault(text)),
        }
    }

    fn effort_fault(self, text: &str) -> String {
        let wire = self.as_str();
        let names: Vec<&str> = self
            .efforts()
            .iter()
            .map(|effort| effort.as_str())
            .collect();
        match names.is_empty() {
            true => format!("`effort` has no effect for `type = \"{wire}\"`: remove it"),
            false => format!(
                "`effort` = {text:?} is not possible for `type = \"{wire}\"`: use one of {}",
                names.join(", ")
            ),
        }
    }

    /// Whether the models of the provider are on a server.
    #[must_use]
    pub fn has_server(self) -> bool {
        match self {
            Self::Claude | Self::Openai | Self::Ollama => true,
            Self::Candle | Self::Scripted => false,
        }
    }

    /// Whether its API has embeddings.
    fn has_embeddings(self) -> bool {
        match self {
            Self::Openai | Self::Ollama => true,
            Self::Claude | Self::Candle | Self::Scripted => false,
        }
    }

    /// The variable that holds the key of the vendor's own server.
    fn vendor_key_env(self) -> Option<&'static str> {
        match self {
            Self::Claude => Some("ANTHROPIC_API_KEY"),
            Self::Openai => Some("OPENAI_API_KEY"),
            Self::Ollama | Self::Candle | Self::Scripted => None,
        }
    }
}

impl ProviderConfig {
    /// A provider with a name and a kind; all other fields are absent.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: ProviderKind) -> Self {
        Self {
            name: name.into(),
            kind,
            api: None,
            model: String::new(),
            embedding_model: None,
            base_url: None,
            api_key_env: None,
            context_window: None,
            max_output_tokens: None,
            effort: None,
            images: None,
            tool_use: None,
            prices: None,
            all_cores: None,
            scenario: None,
        }
    }

    /// Checks the rules that the types cannot express: the fields match each other and the API.
    ///
    /// # Errors
    /// `Config`, with the field and the expected value.
    pub fn validate(&self) -> Result<(), LlmError> {
        let kind = self.kind.as_str();
        let foreign = self.foreign_field();
        let fault = match self.kind {
            _ if self.name.trim().is_empty() => {
                Some("`name` is empty: give each provider a name".to_owned())
            }
            _ if self.context_window == Some(0) => {
                Some("`context_window` must be at least 1".to_owned())
            }
            _ if self.max_output_tokens == Some(0) => {
                Some("`max_output_tokens` must be at least 1".to_owned())
            }
            _ if self.embedding_model.as_deref().is_some_and(|it| it.trim().is_empty()) => Some(
                "`embedding_model` is empty: name the model as the server knows it, or remove it"
                    .to_owned(),
            ),
            ProviderKind::Scripted if self.scenario.is_none() => {
                Some("`scenario` is missing: name the scenario file".to_owned())
            }
            ProviderKind::Candle if self.model.trim().is_empty() => Some(
                "`model` is missing: name a model that `zeph models pull` downloaded, or the path \
                 of a model"
                    .to_owned(),
            ),
            ProviderKind::Claude | ProviderKind::Openai if self.model.trim().is_empty() => {
                Some("`model` is missing: name the model as the server knows it".to_owned())
            }
            _ if foreign.is_some() => foreign.map(|field| {
                format!("`{field}` has no effect for `type = \"{kind}\"`: remove it")
            }),
            kind if self.effort.is_some_and(|effort| !kind.efforts().contains(&effort)) => {
                self.effort.map(|effort| kind.effort_fault(effort.as_str()))
            }
            ProviderKind::Ollama if self.names_compatible_api() => Some(
                "`base_url` ends in /v1, which is not the native API of Ollama: remove /v1, or use \
                 `type = \"openai\"`"
                    .to_owned(),
            ),
            _ => self
                .place()
                .and_then(|place| Endpoint::parse(self.base_url.as_deref(), place).err()),
        };
        match fault {
            None => Ok(()),
            Some(message) => Err(LlmError::new(LlmErrorKind::Config, &self.name, message)),
        }
    }

    /// The first field that is set, but has no effect for the kind of the provider.
    fn foreign_field(&self) -> Option<&'static str> {
        use ProviderKind::{Candle, Openai, Scripted};
        let kind = self.kind;
        let fields = [
            ("api", self.api.is_some(), kind == Openai),
            ("model", !self.model.is_empty(), kind != Scripted),
            (
                "embedding_model",
                self.embedding_model.is_some(),
                kind.has_embeddings(),
            ),
            ("base_url", self.base_url.is_some(), kind.has_server()),
            ("api_key_env", self.api_key_env.is_some(), kind.has_server()),
            ("images", self.images.is_some(), kind.has_server()),
            ("tool_use", self.tool_use.is_some(), kind != Candle),
            ("all_cores", self.all_cores.is_some(), kind == Candle),
            ("scenario", self.scenario.is_some(), kind == Scripted),
        ];
        let mut foreign = fields
            .iter()
            .filter(|(_, is_set, has_effect)| *is_set && !*has_effect);
        foreign.next().map(|(name, ..)| *name)
    }

    /// Whether the address is that of Ollama's OpenAI-compatible API.
    fn names_compatible_api(&self) -> bool {
        let base_url = self.base_url.as_deref().unwrap_or_default();
        base_url.trim().trim_end_matches('/').ends_with("/v1")
    }

    /// The location of the API on a server; `None` for a provider without a server.
    fn place(&self) -> Option<ApiPath> {
        match (self.kind, self.api) {
            (ProviderKind::Claude, _) => Some(endpoint::ANTHROPIC_MESSAGES),
            (ProviderKind::Openai, Some(OpenaiApi::Responses)) => Some(endpoint::OPENAI_RESPONSES),
            (ProviderKind::Openai, _) => Some(endpoint::OPENAI_CHAT),
            (ProviderKind::Ollama, _) => Some(endpoint::OLLAMA_CHAT),
            (ProviderKind::Candle | ProviderKind::Scripted, _) => None,
        }
    }

    /// Whether the server belongs to the API's own vendor.
    pub(crate) fn is_vendor(&self) -> bool {
        self.place().is_some_and(|place| {
            Endpoint::parse(self.base_url.as_deref(), place)
                .is_ok_and(|endpoint| endpoint.is_vendor())
        })
    }

    /// Whether the server offers the models of its vendor, whose windows and features are known.
    pub(crate) fn has_vendor_models(&self) -> bool {
        match self.kind {
            ProviderKind::Claude | ProviderKind::Openai => self.is_vendor(),
            ProviderKind::Ollama | ProviderKind::Candle | ProviderKind::Scripted => false,
        }
    }

    /// Returns the reason why the provider has no embeddings, and the fix; `None` if it may have them. For a
    /// model in this process, only an inspection of the model shows that.
    #[must_use]
    pub fn lack_of_embeddings(&self) -> Option<String> {
        let kind = self.kind.as_str();
        match self.kind {
            ProviderKind::Candle => None,
            _ if !self.kind.has_embeddings() => Some(format!(
                "`type = \"{kind}\"` has no embeddings: name a provider of type `openai`, `ollama` or `candle`"
            )),
            _ if self.embedding_model.is_none() => Some(
                "it has no `embedding_model`: name the model that creates \
                    embeddings"
                    .to_owned(),
            ),
            _ => None,
        }
    }

    /// The server that gets the key, as `https://HOST[:PORT]`: stored keys are for one server. `None` for a provider
    /// without a server, and for an invalid `base_url`.
    #[must_use]
    pub fn key_server(&self) -> Option<String> {
        let endpoint = Endpoint::parse(self.base_url.as_deref(), self.place()?).ok()?;
        Some(endpoint.origin())
    }

    /// The host of the server; `None` without a server, and for an invalid `base_url`.
    pub(crate) fn host(&self) -> Option<String> {
        let endpoint = Endpoint::parse(self.base_url.as_deref(), self.place()?).ok()?;
        endpoint.url().host_str().map(str::to_owned)
    }

    /// Whether a provider takes images: as configured, otherwise whether the server is the vendor's. Local models
    /// rarely do.
    pub(crate) fn takes_images(&self) -> bool {
        self.images.unwrap_or_else(|| self.has_vendor_models())
    }

    /// Whether the model calls tools.
    pub(crate) fn uses_tools(&self) -> bool {
        self.tool_use.unwrap_or(true)
    }

    /// The environment variable with the key for [`crate::build_provider()`]: `api_key_env`, or the vendor's own variable for
    /// the vendor's server. Any other server gets no key unless a variable is named.
    #[must_use]
    pub fn key_env(&self) -> Option<&str> {
        match (self.kind, &self.api_key_env) {
            (ProviderKind::Candle | ProviderKind::Scripted, _) => None,
            (_, Some(variable)) => Some(variable),
            (kind, None) => kind.vendor_key_env().filter(|_| self.is_vendor()),
        }
    }
}

/// Retry of requests to providers (`[llm.retry]`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct RetryConfig {
    /// The maximum number of attempts of a request, including the first. Without a value, attempts continue until
    /// `budget_secs` are used, and there are 4 if each response begins and breaks off.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub max_attempts: Option<u32>,
    /// Seconds that all attempts and waits of one request may take together before the response begins.
    pub budget_secs: u64,
    /// Seconds to wait for a connection.
    #[schemars(range(min = 1))]
    pub connect_timeout_secs: u64,
    /// Seconds without a byte after which a request fails.
    #[schemars(range(min = 1))]
    pub read_timeout_secs: u64,
}

impl Default for RetryConfig {
    fn default() -> Self {
        Self {
            max_attempts: None,
            budget_secs: 60,
            connect_timeout_secs: 10,
            read_timeout_secs: 300,
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn parse(toml: &str) -> ProviderConfig {
        toml::from_str(toml).unwrap()
    }

    /// Proves LLM-2 for the destinations of a key.
    #[test]
    fn key_is_sent_only_to_its_destination() {
        let base = r#"name = "a"
type = "openai"
model = "m"
"#;
        for (rest, expect) in [
            ("", Some("OPENAI_API_KEY")),
            (
                "base_url = \"https://api.openai.com/v1\"",
                Some("OPENAI_API_KEY"),
            ),
            ("base_url = \"http://localhost:8080\"", None),
            (
                "base_url = \"http://localhost:8080\"\napi_key_env = \"K\"",
                Some("K"),
            ),
        ] {
            assert_eq!(parse(&format!("{base}{rest}")).key_env(), expect, "{rest}");
        }
        for (kind, rest, expect) in [
            ("claude", "", Some("ANTHROPIC_API_KEY")),
            ("anthropic", "", Some("ANTHROPIC_API_KEY")),
            ("claude", "base_url = \"http://localhost:8080\"", None),
            ("openai", "api = \"responses\"", Some("OPENAI_API_KEY")),
            (
                "openai",
                "api = \"responses\"\nbase_url = \"http://h\"",
                None,
            ),
            ("ollama", "", None),
            ("ollama", "api_key_env = \"K\"", Some("K")),
        ] {
            let text = format!("name = \"a\"\ntype = \"{kind}\"\nmodel = \"m\"\n{rest}");
            assert_eq!(parse(&text).key_env(), expect, "{text}");
        }
    }

    /// Proves CLI-9: a stored key is for one scheme, host and port.
    #[test]
    fn key_server_is_the_origin_of_the_endpoint() {
        for (kind, rest, expect) in [
            ("claude", "", Some("https://api.anthropic.com")),
            (
                "openai",
                "api = \"responses\"",
                Some("https://api.openai.com"),
            ),
            (
                "openai",
                "base_url = \"https://h/a/v1/\"",
                Some("https://h"),
            ),
            (
                "openai",
                "base_url = \"http://H:8080\"",
                Some("http://h:8080"),
            ),
            ("ollama", "", Some("http://127.0.0.1:11434")),
            ("openai", "base_url = \"h\"", None),
            ("candle", "", None),
        ] {
            let text = format!("name = \"a\"\ntype = \"{kind}\"\nmodel = \"m\"\n{rest}");
            assert_eq!(parse(&text).key_server().as_deref(), expect, "{text}");
        }
    }

    /// Proves LLM-12.
    #[test]
    fn unknown_values_list_the_allowed_ones() {
        for (text, kind, expect) in [
            ("xhigh", ProviderKind::Openai, Ok(Effort::Xhigh)),
            ("none", ProviderKind::Claude, Ok(Effort::None)),
            (
                "minimal",
                ProviderKind::Claude,
                Err("use one of none, low, medium, high, xhigh, max"),
            ),
            (
                "max",
                ProviderKind::Ollama,
                Err("use one of none, low, medium, high"),
            ),
            (
                "hihg",
                ProviderKind::Openai,
                Err("\"hihg\" is not possible"),
            ),
            ("low", ProviderKind::Candle, Err("has no effect")),
        ] {
            match (kind.parse_effort(text), expect) {
                (Ok(found), Ok(expect)) => assert_eq!(found, expect),
                (Err(found), Err(expect)) => assert!(found.contains(expect), "{found}"),
                (found, _) => panic!("{text}: {found:?}"),
            }
        }
        for effort in Effort::ALL {
            assert_eq!(serde_json::to_value(effort).unwrap(), effort.as_str());
        }
    }
}

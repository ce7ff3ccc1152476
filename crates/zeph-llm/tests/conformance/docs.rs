//! Examples of the documentation, which must be valid.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use zeph_llm::scripted::Scenario;
use zeph_llm::{ProviderConfig, ProviderKind, RetryConfig};

#[derive(Deserialize)]
struct File {
    llm: Llm,
}

#[derive(Deserialize)]
struct Llm {
    default: String,
    #[serde(default)]
    fallback: Vec<String>,
    embed_provider: Option<String>,
    providers: Vec<ProviderConfig>,
}

/// The TOML blocks of a page in `docs/`.
fn blocks(page: &str, language: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(page);
    let text = std::fs::read_to_string(path).unwrap();
    let fence = format!("```{language}\n");
    let blocks = text.split(&fence).skip(1);
    blocks
        .map(|block| block.split("```").next().unwrap().to_owned())
        .collect()
}

/// Proves LLM-2 for the examples of `docs/providers.md`.
#[test]
fn every_block_of_the_providers_page_is_a_valid_configuration() {
    let mut kinds = Vec::new();
    for block in blocks("providers.md", "toml") {
        let file: File = toml::from_str(&block).unwrap_or_else(|error| panic!("{error}\n{block}"));
        let names: Vec<_> = file.llm.providers.iter().map(|it| &it.name).collect();
        let asked: Vec<_> = std::iter::once(&file.llm.default)
            .chain(&file.llm.fallback)
            .chain(&file.llm.embed_provider)
            .collect();
        assert_eq!(asked, names, "{block}");
        for provider in &file.llm.providers {
            provider.validate().unwrap();
            kinds.push((provider.kind, provider.key_env().map(str::to_owned)));
        }
    }
    let key = |name: &str| Some(name.to_owned());
    let expect = [
        (ProviderKind::Claude, key("ANTHROPIC_API_KEY")),
        (ProviderKind::Openai, key("OPENAI_API_KEY")),
        (ProviderKind::Openai, key("OPENAI_API_KEY")),
        (ProviderKind::Ollama, None),
        (ProviderKind::Candle, None),
        (ProviderKind::Openai, None),
        (ProviderKind::Openai, key("VLLM_KEY")),
        (ProviderKind::Openai, None),
        (ProviderKind::Openai, key("OPENROUTER_API_KEY")),
        (ProviderKind::Openai, key("GROQ_API_KEY")),
        (ProviderKind::Scripted, None),
        (ProviderKind::Claude, key("ANTHROPIC_API_KEY")),
        (ProviderKind::Ollama, None),
        (ProviderKind::Claude, key("ANTHROPIC_API_KEY")),
        (ProviderKind::Ollama, None),
        (ProviderKind::Openai, None),
    ];
    assert_eq!(kinds, expect);
}

/// Proves LLM-5a: the documented defaults are the actual defaults.
#[test]
fn documented_retry_defaults_are_the_defaults() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/providers.md");
    let text = std::fs::read_to_string(page).unwrap();
    let defaults = serde_json::to_value(RetryConfig::default()).unwrap();
    assert!(text.contains("| `max_attempts` | none |"));
    for (key, value) in defaults.as_object().unwrap() {
        assert!(
            text.contains(&format!("| `{key}` | {value} |")),
            "{key} = {value}"
        );
    }
}

/// Proves LLM-9 for the example of `docs/scripted-provider.md`.
#[test]
fn documented_scenario_is_valid() {
    let blocks = blocks("scripted-provider.md", "toml scenario");
    let scenario = Scenario::from_toml(&blocks[0], BTreeMap::new()).unwrap();
    assert_eq!(scenario.steps.len(), 3);
}

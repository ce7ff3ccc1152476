//! The prices of a provider: as configured, or as the vendors publish them (`prices.toml`).

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::config::{ProviderConfig, ProviderKind};
use crate::usage::Prices;

/// The vendors' list prices.
const TABLE: &str = include_str!("prices.toml");

impl ProviderConfig {
    /// The prices of the provider: as configured, otherwise zero on this machine, otherwise the list price of the
    /// vendor's own server. `None` if they are not known.
    #[must_use]
    pub fn known_prices(&self) -> Option<Prices> {
        match self.kind {
            _ if self.prices.is_some() => self.prices,
            ProviderKind::Scripted | ProviderKind::Ollama | ProviderKind::Candle => {
                Some(Prices::default())
            }
            ProviderKind::Claude | ProviderKind::Openai => self
                .has_vendor_models()
                .then(|| listed(self.kind.as_str(), &self.model))
                .flatten(),
        }
    }

    /// The prices of its embeddings: zero on this machine, otherwise the list price of the vendor's own server,
    /// otherwise the price of input tokens. `None` if they are not known.
    #[must_use]
    pub fn known_prices_of_embeddings(&self) -> Option<Prices> {
        let model = self.embedding_model.as_deref()?;
        let listed = || listed(self.kind.as_str(), model).filter(|_| self.is_vendor());
        match self.kind {
            ProviderKind::Openai => listed().or(self.prices),
            _ => self.known_prices(),
        }
    }
}

/// The list price of a vendor's model.
fn listed(vendor: &str, model: &str) -> Option<Prices> {
    static PRICES: LazyLock<BTreeMap<String, BTreeMap<String, Prices>>> =
        LazyLock::new(|| toml::from_str(TABLE).unwrap_or_default());
    let models = PRICES.get(vendor)?;
    let dated = || {
        let mut names = models.iter();
        names.find(|(name, _)| model.strip_prefix(name.as_str()).is_some_and(is_version))
    };
    models
        .get_key_value(model)
        .or_else(dated)
        .map(|(_, prices)| *prices)
}

/// Whether `rest`, the text after a model's name, is a version: `-20250929`, `-2025-08-07`, `-latest`.
fn is_version(rest: &str) -> bool {
    let date = |rest: &str| {
        let digits: String = rest.split('-').collect();
        digits.len() == 8 && digits.bytes().all(|byte| byte.is_ascii_digit())
    };
    rest.strip_prefix('-')
        .is_some_and(|rest| rest == "latest" || date(rest))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use super::*;

    /// Proves LLM-11: the vendors with a known price.
    #[test]
    fn known_price_requires_the_vendor_server() {
        let config = |toml: &str| -> ProviderConfig {
            toml::from_str(&format!("name = 'a'\n{toml}")).unwrap()
        };
        let check = |toml: &str, expect: Option<f64>| {
            let found = config(toml).known_prices();
            assert_eq!(found.map(|prices| prices.input.dollars()), expect, "{toml}");
        };
        let claude = |model: &str| format!("type = 'claude'\nmodel = '{model}'");
        let openai = |model: &str| format!("type = 'openai'\nmodel = '{model}'");
        check(&claude("claude-sonnet-4-5"), Some(3.0));
        check(&claude("claude-sonnet-4-5-20250929"), Some(3.0));
        check(&claude("claude-3-7-sonnet-latest"), Some(3.0));
        check(&claude("claude-opus-4-5"), Some(5.0));
        check(&claude("claude-opus-4-20250514"), Some(15.0));
        check(&claude("claude-opus-4-6"), None);
        check(&claude("gpt-5"), None);
        check(&openai("gpt-5"), Some(1.25));
        check(&openai("gpt-5-2025-08-07"), Some(1.25));
        check(&openai("gpt-5-mini"), Some(0.25));
        check(&openai("gpt-5-pro"), None);
        check(&openai("gpt-4o-2024-08-06"), Some(2.5));
        check(&openai("gpt-4o-2024-05-13"), Some(5.0));
        check(&openai("gpt-4o-audio-preview"), None);
        check(&openai("gpt-5-2025-08-071"), None);
        let elsewhere = format!("{}\nbase_url = 'http://127.0.0.1:1'", openai("gpt-5"));
        check(&elsewhere, None);
        check(
            &format!("{elsewhere}\nprices = {{ input = 7, output = 1 }}"),
            Some(7.0),
        );
        check("type = 'ollama'\nmodel = 'gpt-5'", Some(0.0));
        let scripted = "type = 'scripted'\nscenario = 'x'";
        check(scripted, Some(0.0));
        check(
            &format!("{scripted}\nprices = {{ input = 1, output = 2 }}"),
            Some(1.0),
        );
        let wrong = |prices: &str| {
            let text = format!("name = 'a'\ntype = 'ollama'\nmodel = 'm'\nprices = {prices}");
            toml::from_str::<ProviderConfig>(&text)
                .unwrap_err()
                .to_string()
        };
        assert!(wrong("{ input = -1, output = 0 }").contains("expected US dollars"));
        assert!(wrong("{ input = nan, output = 0 }").contains("expected US dollars"));
        assert!(wrong("{ input = 1 }").contains("output"));
    }

    #[test]
    fn price_table_is_complete() {
        let table: BTreeMap<String, BTreeMap<String, Prices>> = toml::from_str(TABLE).unwrap();
        for (vendor, models) in &table {
            for (model, prices) in models {
                // An embedding model has no output tokens.
                let answers = !model.contains("embedding");
                assert_eq!(prices.output > prices.input, answers, "{vendor} {model}");
                let cached = prices.cached_input;
                assert!(cached.is_none_or(|it| it < prices.input), "{model}");
                let written = prices.cache_write;
                assert!(written.is_none_or(|it| it > prices.input), "{model}");
                assert_eq!(listed(vendor, model), Some(*prices), "{model}");
            }
        }
        assert_eq!(table.keys().collect::<Vec<_>>(), ["claude", "openai"]);
    }
}

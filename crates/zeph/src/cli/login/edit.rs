//! The entry of a provider in the text of a configuration file. A pure function.

use toml_edit::{DocumentMut, TomlError, Value};
use zeph_llm::ProviderConfig;

use crate::config::add_to_list;

/// An edit that was not made.
#[derive(Debug, thiserror::Error)]
pub(super) enum EditError {
    /// The file is not TOML.
    #[error("it is not valid TOML: {0}")]
    Invalid(#[from] TomlError),
    /// `llm.providers` has another type.
    #[error("`llm.providers` is not a list of tables")]
    NotAList,
}

/// The text with `provider` added to `[[llm.providers]]`. Comments and other keys stay.
///
/// # Errors
/// [`EditError`] if the text is not TOML, or the list cannot be edited.
pub(super) fn with_provider(text: &str, provider: &ProviderConfig) -> Result<String, EditError> {
    let mut document = text.parse::<DocumentMut>()?;
    match add_to_list(&mut document, "llm", "providers", keys(provider)) {
        true => Ok(document.to_string()),
        false => Err(EditError::NotAList),
    }
}

/// The keys of a provider that are written.
fn keys(provider: &ProviderConfig) -> Vec<(&'static str, Value)> {
    let mut keys = vec![
        ("name", Value::from(provider.name.as_str())),
        ("type", Value::from(provider.kind.as_str())),
        ("model", Value::from(provider.model.as_str())),
    ];
    if let Some(base_url) = &provider.base_url {
        keys.push(("base_url", Value::from(base_url.as_str())));
    }
    let flags = [("tool_use", provider.tool_use), ("images", provider.images)];
    let set = flags
        .into_iter()
        .filter_map(|(key, flag)| Some((key, Value::from(flag?))));
    keys.extend(set);
    keys
}

#[cfg(test)]
mod tests {
    use zeph_llm::ProviderKind;

    use super::*;

    /// Proves CLI-9: comments and other keys stay.
    #[test]
    fn provider_is_added_and_comments_stay() {
        let provider = ProviderConfig {
            model: "m".to_owned(),
            base_url: Some("http://127.0.0.1:8080".to_owned()),
            tool_use: Some(false),
            ..ProviderConfig::new("local", ProviderKind::Openai)
        };
        let entry = "[[llm.providers]]\nname = \"local\"\ntype = \"openai\"\nmodel = \"m\"\nbase_url = \"http://127.0.0.1:8080\"\ntool_use = false\n";
        assert_eq!(with_provider("", &provider).unwrap().trim_start(), entry);
        let text =
            "# mine\n[llm] # models\nfallback = [] # none\n\n[agent] # last\nmax_reflections = 2\n";
        let new = with_provider(text, &provider).unwrap();
        assert!(new.contains(entry), "{new}");
        for line in text.lines() {
            assert!(new.contains(line), "{line} in {new}");
        }
        toml::from_str::<toml::Table>(&new).unwrap();
        let invalid = with_provider("[[", &provider);
        assert!(matches!(invalid, Err(EditError::Invalid(_))));
        let other = with_provider("llm = 3", &provider);
        assert!(matches!(other, Err(EditError::NotAList)));
    }
}

//! The window of a model, and the window that its server reports.

use std::sync::Arc;
use std::time::Duration;

use reqwest::Url;
use serde_json::{Value, json};
use tokio::sync::OnceCell;

use super::RemoteProvider;
use super::wire::Wire;

/// The time limit of all requests for a window.
const TIME_LIMIT: Duration = Duration::from_secs(2);
/// Smaller windows are errors of the server: the definitions of the tools alone are longer.
const MIN_WINDOW: usize = 512;
/// The largest window that an Ollama server gets without configuration: it reserves memory for all of it.
const MAX_RESERVED_WINDOW: usize = 131_072;

/// The source of the window of a model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowSource {
    /// The entry in the list.
    List,
    /// The entry in the list, otherwise `/props` of llama.cpp.
    ListOrProps,
    /// `/api/show` of Ollama.
    Show,
}

/// The window of a model: the configured one, otherwise the reported one, otherwise a default.
#[derive(Debug, Clone)]
pub(crate) struct Window {
    default: usize,
    /// The response of the server; `None` before the first request.
    reported: Arc<OnceCell<Option<usize>>>,
}

impl Window {
    /// A window that is known: no server is asked for it.
    pub(crate) fn fixed(tokens: usize) -> Self {
        Self {
            default: tokens,
            reported: Arc::new(OnceCell::new_with(Some(None))),
        }
    }

    /// A window that the server may report.
    pub(crate) fn reported_or(default: usize) -> Self {
        Self {
            default,
            reported: Arc::default(),
        }
    }

    /// The window in tokens, as known so far.
    pub(crate) fn tokens(&self) -> usize {
        let reported = self.reported.get().copied().flatten();
        reported.unwrap_or(self.default)
    }
}

impl<W: Wire> RemoteProvider<W> {
    /// Asks the server once for the window of the model, if it is not known. A server that does not respond in time,
    /// or not with a window, is not asked again.
    pub(super) async fn ask_window(&self) {
        let ask = async || {
            let reported = tokio::time::timeout(TIME_LIMIT, self.reported_window()).await;
            let reported = reported.unwrap_or_default();
            tracing::debug!(provider = %self.name, ?reported, "the server reports the window");
            reported
        };
        self.limits.window.reported.get_or_init(ask).await;
    }

    async fn reported_window(&self) -> Option<usize> {
        if W::MODELS.window == WindowSource::Show {
            let url = self.next_to_responses("show", None);
            let shown = self.ask(url, Some(json!({ "model": self.model }))).await;
            return window_of_show(&shown.ok()?);
        }
        let listed = self.list_models().await.unwrap_or_default();
        let entry = listed.iter().find(|model| model.name == self.model);
        // A server with one model takes any name.
        let entry = entry.or(listed.first().filter(|_| listed.len() == 1));
        let window = entry.and_then(|model| model.context_window);
        match W::MODELS.window {
            WindowSource::ListOrProps if window.is_none() => {
                let props = self.ask(self.props_url(), None).await.ok()?;
                window_at(&props, "/default_generation_settings/n_ctx")
            }
            _ => window,
        }
    }

    /// The URL of the properties of a llama.cpp server, which have no prefix.
    fn props_url(&self) -> Url {
        let mut url = self.next_to_responses("", None);
        let prefix = format!("{}/", W::PLACE.prefix);
        let base = url.path().strip_suffix(&prefix).unwrap_or("/");
        let whole = format!("{base}props");
        url.set_path(&whole);
        url
    }
}

/// The window in an entry of a list, by the names that servers use.
pub(super) fn window_of_entry(entry: &Value) -> Option<usize> {
    [
        "/max_model_len",
        "/context_window",
        "/context_length",
        "/max_context_length",
        "/max_input_tokens",
    ]
    .into_iter()
    .find_map(|name| window_at(entry, name))
}

fn window_at(value: &Value, pointer: &str) -> Option<usize> {
    let tokens = value.pointer(pointer)?.as_u64()?;
    usize::try_from(tokens)
        .ok()
        .filter(|tokens| *tokens >= MIN_WINDOW)
}

/// The window in Ollama's description of a model: its parameter `num_ctx`, otherwise the length it was trained for.
fn window_of_show(shown: &Value) -> Option<usize> {
    let parameters = shown.get("parameters").and_then(Value::as_str);
    let set = parameters.unwrap_or_default().lines().find_map(|line| {
        let value = line.trim().strip_prefix("num_ctx")?;
        value
            .trim()
            .parse()
            .ok()
            .filter(|tokens| *tokens >= MIN_WINDOW)
    });
    let info = shown.get("model_info").and_then(Value::as_object);
    let trained = || {
        let mut lengths = info?
            .iter()
            .filter(|(key, _)| key.ends_with(".context_length"));
        let tokens = usize::try_from(lengths.next()?.1.as_u64()?).ok()?;
        Some(tokens.min(MAX_RESERVED_WINDOW)).filter(|tokens| *tokens >= MIN_WINDOW)
    };
    set.or_else(trained)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves LLM-13.
    #[test]
    fn window_of_an_ollama_model_is_limited() {
        let info = |length: usize| json!({"general.x": 1, "qwen3.context_length": length});
        for (shown, expect) in [
            (json!({"model_info": info(40_960)}), Some(40_960)),
            (
                json!({"model_info": info(1 << 20)}),
                Some(MAX_RESERVED_WINDOW),
            ),
            (
                json!({"model_info": info(40_960), "parameters": "stop \"x\"\nnum_ctx    8192"}),
                Some(8192),
            ),
            (json!({"parameters": ""}), None),
            (json!({}), None),
        ] {
            assert_eq!(window_of_show(&shown), expect, "{shown}");
        }
    }
}

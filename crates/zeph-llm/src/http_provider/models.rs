//! The models of a server.

use reqwest::Url;
use reqwest::header::{ACCEPT, HeaderValue};
use serde_json::Value;

use super::error_mapping::{self, Failure};
use super::excerpt::excerpt;
use super::window::{WindowSource, window_of_entry};
use super::wire::Wire;
use super::{RemoteProvider, read_capped};
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::ServerModel;

/// The maximum number of bytes of a list.
const MAX_LIST_BYTES: usize = 8 << 20;
/// The location of the list of models next to the path of responses, and the source of a window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ModelsApi {
    /// The path after the prefix: `models`.
    pub(crate) path: &'static str,
    /// The query of the request.
    pub(crate) query: Option<&'static str>,
    /// The source of a window.
    pub(crate) window: WindowSource,
}

impl<W: Wire> RemoteProvider<W> {
    /// The models of the server.
    pub(super) async fn list_models(&self) -> Result<Vec<ServerModel>, LlmError> {
        let url = self.next_to_responses(W::MODELS.path, W::MODELS.query);
        let shown = without_query(&url);
        let list = self.ask(url, None).await?;
        read_list(&list).ok_or_else(|| {
            let message = format!("{shown} did not return a list of models. Check `base_url`.");
            self.error(Failure::new(LlmErrorKind::Protocol, message))
        })
    }

    /// The URL of a path with the prefix of responses.
    pub(super) fn next_to_responses(&self, path: &str, query: Option<&str>) -> Url {
        let mut url = self.endpoint.url().clone();
        let base = url.path().strip_suffix(W::PLACE.path).unwrap_or("/");
        let whole = format!("{base}{path}");
        url.set_path(&whole);
        if url.query().is_none() {
            url.set_query(query);
        }
        url
    }

    /// Sends a request without retries, and reads the JSON of the response. A request with a `body` is a `POST`.
    pub(super) async fn ask(&self, url: Url, body: Option<Value>) -> Result<Value, LlmError> {
        let shown = without_query(&url);
        let target = error_mapping::Target {
            url: &shown,
            ..self.target()
        };
        let mut headers = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let client = self.client().await?;
        let request = match body {
            None => client.get(url),
            Some(body) => client.post(url).body(body.to_string()),
        };
        let response = request.headers(headers).send().await;
        let response =
            response.map_err(|error| self.error(error_mapping::from_transport(error, target)))?;
        if !response.status().is_success() {
            return Err(self.refusal(response, target).await);
        }
        let bytes = read_capped(response, MAX_LIST_BYTES).await;
        serde_json::from_slice(&bytes).map_err(|error| {
            let message = format!("{shown} did not return JSON: {error}. Check `base_url`.");
            self.error(Failure::new(LlmErrorKind::Protocol, message))
        })
    }
}

fn without_query(url: &Url) -> String {
    let mut bare = url.clone();
    bare.set_query(None);
    bare.into()
}

/// The models of a list: `{"data": [{"id": …}]}`, or `{"models": [{"name": …}]}` of Ollama.
fn read_list(list: &Value) -> Option<Vec<ServerModel>> {
    let entries = list.get("data").or(list.get("models")).unwrap_or(list);
    let models = entries.as_array()?.iter().filter_map(|entry| {
        let name = entry.get("id").or(entry.get("name"))?.as_str()?;
        Some(ServerModel {
            name: excerpt(name),
            context_window: window_of_entry(entry),
        })
    });
    Some(models.collect())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use serde_json::json;

    use super::*;

    /// Proves LLM-13.
    #[test]
    fn lists_of_servers_are_read() {
        let check = |list: Value, expect: &[(&str, Option<usize>)]| {
            let found = read_list(&list).unwrap();
            let found: Vec<_> = found
                .iter()
                .map(|model| (model.name.as_str(), model.context_window))
                .collect();
            assert_eq!(found, expect);
        };
        check(json!({"object": "list", "data": []}), &[]);
        check(
            json!({"data": [{"id": "a", "max_model_len": 8192}, {"id": "b"}, {"no": 1}]}),
            &[("a", Some(8192)), ("b", None)],
        );
        check(
            json!({"data": [{"id": "a", "context_length": 32768}, {"id": "b", "context_window": 0}]}),
            &[("a", Some(32768)), ("b", None)],
        );
        check(
            json!({"models": [{"name": "q:8b", "size": 1}]}),
            &[("q:8b", None)],
        );
        check(
            json!([{"id": "a", "context_length": 4096}]),
            &[("a", Some(4096))],
        );
        assert_eq!(read_list(&json!({"error": "no"})), None);
    }
}

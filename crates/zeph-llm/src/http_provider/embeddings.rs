//! Embeddings of texts from a server, in batches with the retries of other requests.

use bytes::Bytes;
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue};
use reqwest::{Response, Url};
use serde::Serialize;

use super::RemoteProvider;
use super::error_mapping::{Failure, RequestKind, Target, from_transport};
use super::excerpt::excerpt;
use super::wire::Wire;
use crate::config::ProviderConfig;
use crate::error::{LlmError, LlmErrorKind};
use crate::provider::{EmbeddingModel, Embeddings};
use crate::retry::Retries;
use crate::usage::Prices;

/// The most texts of one request: a number that common servers accept by default.
const MAX_TEXTS: usize = 32;
/// The most bytes of the texts of one request; a single text may exceed it.
const MAX_BYTES: usize = 128 << 10;
/// The maximum number of bytes of a response, ten times the size of a full batch.
const MAX_RESPONSE_BYTES: usize = 32 << 20;
/// The maximum length of an embedding.
const MAX_NUMBERS: usize = 1 << 16;

/// The embeddings API of a server. All known ones use the same request, `{model, input}`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct EmbeddingsApi {
    /// The API's name for display.
    pub(crate) name: &'static str,
    /// The path that replaces the path of responses: `embeddings`.
    pub(crate) path: &'static str,
    /// Parses a response: the embeddings in the order of the texts, and the number of tokens.
    pub(crate) read: fn(&[u8]) -> Result<Embeddings, String>,
}

/// The source of a provider's embeddings.
#[derive(Debug)]
pub(super) struct Source {
    api: EmbeddingsApi,
    url: Url,
    shown: String,
    pub(super) model: EmbeddingModel,
}

impl Source {
    /// The configured source; `None` without an embedding model.
    pub(super) fn of<W: Wire>(
        config: &ProviderConfig,
        url: &Url,
        prices: Option<Prices>,
    ) -> Option<Self> {
        let api = W::EMBEDDINGS?;
        let name = config.embedding_model.as_deref()?.trim();
        let mut url = url.clone();
        let before = url.path().strip_suffix(W::PLACE.path)?.to_owned();
        url.set_path(&format!("{before}{}", api.path));
        let mut shown = url.clone();
        shown.set_query(None);
        Some(Self {
            model: EmbeddingModel {
                name: name.to_owned(),
                key: format!("{shown} {name}"),
                prices,
            },
            api,
            url,
            shown: shown.into(),
        })
    }
}

#[derive(Serialize)]
struct EmbeddingsRequest<'a> {
    model: &'a str,
    input: &'a [&'a str],
}

impl<W: Wire> RemoteProvider<W> {
    /// The embeddings of all texts.
    pub(super) async fn vectors(
        &self,
        source: &Source,
        texts: &[&str],
    ) -> Result<Embeddings, LlmError> {
        let mut all = Embeddings::default();
        let mut rest = texts;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch(rest));
            let made = self.batch(source, batch).await?;
            all.vectors.extend(made.vectors);
            all.usage.add(made.usage);
            rest = after;
        }
        check(&all.vectors, texts.len())
            .map_err(|message| self.error(source.protocol(&message)))?;
        Ok(all)
    }

    async fn batch(&self, source: &Source, texts: &[&str]) -> Result<Embeddings, LlmError> {
        let request = EmbeddingsRequest {
            model: &source.model.name,
            input: texts,
        };
        let body = serde_json::to_vec(&request)
            .map_err(|error| self.error(source.protocol(&error.to_string())))?;
        let body = Bytes::from(body);
        let mut retries = Retries::begin(self.retry);
        loop {
            let response = match self.once(source, body.clone()).await {
                Ok(response) => response,
                Err(error) => {
                    retries
                        .wait(error, "It is sent again.", &mut |_| ())
                        .await?;
                    continue;
                }
            };
            let read = (source.api.read)(&response).and_then(|made| {
                check(&made.vectors, texts.len())?;
                Ok(made)
            });
            return read.map_err(|message| {
                let start = excerpt(&String::from_utf8_lossy(&response));
                self.error(source.protocol(&format!("{message}: {start}")))
            });
        }
    }

    /// Sends a request once, and reads the response.
    async fn once(&self, source: &Source, body: Bytes) -> Result<Vec<u8>, LlmError> {
        let target = self.target_of(source);
        let mut headers: HeaderMap = self.headers.clone();
        headers.insert(ACCEPT, HeaderValue::from_static("application/json"));
        let mut response = self.send(source.url.clone(), headers, body, target).await?;
        let mut answer = Vec::new();
        while let Some(bytes) = self.more(&mut response, target).await? {
            if answer.len() + bytes.len() > MAX_RESPONSE_BYTES {
                let message = format!("more than {MAX_RESPONSE_BYTES} bytes");
                return Err(self.error(source.protocol(&message)));
            }
            answer.extend_from_slice(&bytes);
        }
        Ok(answer)
    }

    async fn more(
        &self,
        response: &mut Response,
        target: Target<'_>,
    ) -> Result<Option<Bytes>, LlmError> {
        let chunk = response.chunk().await;
        chunk.map_err(|error| self.error(from_transport(error, target)))
    }

    fn target_of<'a>(&'a self, source: &'a Source) -> Target<'a> {
        Target {
            url: &source.shown,
            model: &source.model.name,
            api: source.api.name,
            key_env: self.key_env.as_deref(),
            purpose: RequestKind::Embeddings,
        }
    }
}

impl Source {
    fn protocol(&self, message: &str) -> Failure {
        let message = format!(
            "{} returned no embeddings: {message}. Check that `embedding_model` names a model that \
             creates embeddings.",
            self.shown
        );
        Failure::new(LlmErrorKind::Protocol, message)
    }
}

/// How many of `texts`, from the first, go into one request: at least one.
fn batch(texts: &[&str]) -> usize {
    let mut bytes = 0;
    let fits = texts.iter().take(MAX_TEXTS).take_while(|text| {
        bytes += text.len();
        bytes <= MAX_BYTES
    });
    fits.count().max(1)
}

/// Checks that there is an embedding for each text, all of one length and with finite numbers.
fn check(vectors: &[Vec<f32>], texts: usize) -> Result<(), String> {
    if vectors.len() != texts {
        return Err(format!("{} embeddings for {texts} texts", vectors.len()));
    }
    let length = vectors.first().map_or(0, Vec::len);
    if texts > 0 && !(1..=MAX_NUMBERS).contains(&length) {
        return Err(format!("a vector of {length} numbers"));
    }
    if vectors.iter().any(|vector| vector.len() != length) {
        return Err("vectors of different lengths".to_owned());
    }
    if vectors.iter().flatten().any(|number| !number.is_finite()) {
        return Err("a vector with a number that is not finite".to_owned());
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded() {
        let long = "x".repeat(MAX_BYTES);
        for (texts, expect) in [
            (vec!["a"], 1),
            (vec!["a"; MAX_TEXTS], MAX_TEXTS),
            (vec!["a"; MAX_TEXTS + 1], MAX_TEXTS),
            (vec![long.as_str(); 2], 1),
            (vec!["a", long.as_str()], 1),
        ] {
            assert_eq!(batch(&texts), expect);
        }
    }

    #[test]
    fn embeddings_are_checked() {
        for (vectors, texts, fits) in [
            (vec![], 0, true),
            (vec![vec![1.0, 0.0], vec![0.0, 0.0]], 2, true),
            (vec![vec![1.0]], 2, false),
            (vec![vec![1.0], vec![1.0, 2.0]], 2, false),
            (vec![vec![]], 1, false),
            (vec![vec![f32::INFINITY]], 1, false),
            (vec![vec![0.0; MAX_NUMBERS + 1]], 1, false),
        ] {
            assert_eq!(check(&vectors, texts).is_ok(), fits, "{texts}");
        }
    }
}

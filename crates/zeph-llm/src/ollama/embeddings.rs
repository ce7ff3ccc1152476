//! Ollama's embeddings. Format: <https://docs.ollama.com/api/embed>. Text beyond the model's window does not affect
//! its embedding.

use serde::Deserialize;

use crate::http_provider::embeddings::EmbeddingsApi;
use crate::provider::Embeddings;
use crate::usage::Usage;

/// The embeddings API.
pub(crate) const EMBEDDINGS: EmbeddingsApi = EmbeddingsApi {
    name: "the embeddings API of Ollama",
    path: "embed",
    read,
};

#[derive(Deserialize)]
struct Answer {
    embeddings: Vec<Vec<f32>>,
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    prompt_eval_count: Option<u64>,
}

fn read(body: &[u8]) -> Result<Embeddings, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    Ok(Embeddings {
        vectors: answer.embeddings,
        usage: Usage {
            input_tokens: answer.prompt_eval_count.unwrap_or(0),
            ..Usage::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn responses_are_parsed() {
        let check = |body: &str, expect: Option<(Vec<Vec<f32>>, u64)>| {
            let found = read(body.as_bytes()).ok();
            let found = found.map(|made| (made.vectors, made.usage.input_tokens));
            assert_eq!(found, expect, "{body}");
        };
        check(
            r#"{"model":"m","embeddings":[[0.5,1],[2,3]],"prompt_eval_count":8}"#,
            Some((vec![vec![0.5, 1.0], vec![2.0, 3.0]], 8)),
        );
        check(r#"{"embeddings":[]}"#, Some((vec![], 0)));
        check(r#"{"error":"model not found"}"#, None);
    }
}

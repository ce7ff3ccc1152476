//! OpenAI's embeddings, which every compatible server has at the same place.
//!
//! Format: <https://platform.openai.com/docs/api-reference/embeddings/create>.

use serde::Deserialize;

use crate::http_provider::embeddings::EmbeddingsApi;
use crate::provider::Embeddings;
use crate::usage::Usage;

/// The embeddings API.
pub(crate) const EMBEDDINGS: EmbeddingsApi = EmbeddingsApi {
    name: "the embeddings API of OpenAI",
    path: "embeddings",
    read,
};

#[derive(Deserialize)]
struct Answer {
    data: Vec<Item>,
    #[serde(default, deserialize_with = "crate::http_provider::lenient::optional")]
    usage: Option<Counted>,
}

#[derive(Deserialize)]
struct Item {
    /// The number of the text; some servers omit it and preserve the order.
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Counted {
    #[serde(
        default,
        deserialize_with = "crate::http_provider::lenient::token_count"
    )]
    prompt_tokens: Option<u64>,
}

fn read(body: &[u8]) -> Result<Embeddings, String> {
    let answer: Answer = serde_json::from_slice(body).map_err(|error| error.to_string())?;
    let tokens = answer.usage.and_then(|usage| usage.prompt_tokens);
    let items = answer.data.into_iter().enumerate();
    let mut items: Vec<(usize, Vec<f32>)> = items
        .map(|(at, item)| (item.index.unwrap_or(at), item.embedding))
        .collect();
    items.sort_by_key(|(index, _)| *index);
    if items
        .iter()
        .enumerate()
        .any(|(at, (index, _))| at != *index)
    {
        return Err("the vectors are not numbered from 0".to_owned());
    }
    let vectors = items.into_iter().map(|(_, vector)| vector);
    Ok(Embeddings {
        vectors: vectors.collect(),
        usage: Usage {
            input_tokens: tokens.unwrap_or(0),
            ..Usage::default()
        },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embeddings_are_in_the_order_of_the_texts() {
        let check = |body: &str, expect: Option<(Vec<Vec<f32>>, u64)>| {
            let found = read(body.as_bytes()).ok();
            let found = found.map(|made| (made.vectors, made.usage.input_tokens));
            assert_eq!(found, expect, "{body}");
        };
        check(
            r#"{"data":[{"index":1,"embedding":[2]},{"index":0,"embedding":[1.5e0]}],"usage":{"prompt_tokens":7,"total_tokens":7}}"#,
            Some((vec![vec![1.5], vec![2.0]], 7)),
        );
        check(
            r#"{"data":[{"embedding":[1]},{"embedding":[2]}]}"#,
            Some((vec![vec![1.0], vec![2.0]], 0)),
        );
        check(r#"{"data":[],"usage":null}"#, Some((vec![], 0)));
        check(
            r#"{"data":[{"index":1,"embedding":[2]},{"index":1,"embedding":[1]}]}"#,
            None,
        );
        check(r#"{"data":[{"index":0,"embedding":[null]}]}"#, None);
        check(r#"{"data":[{"index":0,"embedding":"AACAPw=="}]}"#, None);
        check(r#"{"error":{"message":"no"}}"#, None);
        check("", None);
    }
}

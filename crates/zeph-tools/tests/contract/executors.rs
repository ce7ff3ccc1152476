//! The executor traits, their wrappers and the chain.

use std::sync::Arc;

use serde_json::json;
use zeph_tools::{
    Annotations, CallContext, CompositeExecutor, DynExecutor, ErasedToolExecutor, ToolExecutor,
    TrustLevel,
};

use crate::fakes::{Recorder, call};

/// Proves EXE-4, EXE-5.
#[tokio::test]
async fn erased_executor_forwards_every_method() {
    let recorder = Recorder::new("a", Annotations::READ).demanding();
    let erased: Arc<dyn ErasedToolExecutor> = Arc::new(recorder.clone());
    let executor = DynExecutor(Arc::new(DynExecutor(erased)));
    let cx = CallContext::headless();
    let params = json!({"path": "p"});

    assert!(
        executor
            .execute_tool_call(&call("a", params.clone()), &cx)
            .await
            .unwrap()
            .is_some()
    );
    assert!(
        executor
            .execute_tool_call_confirmed(&call("a", params), &cx)
            .await
            .unwrap()
            .is_some()
    );
    assert_eq!(executor.tool_definitions().len(), 1);
    executor.set_skill_env(Some([("K".to_owned(), "v".to_owned())].into()));
    executor.set_effective_trust(TrustLevel::Untrusted);
    assert!(executor.is_tool_retryable("a"));
    assert!(!executor.is_tool_retryable("b"));
    assert!(executor.requires_confirmation(&call("a", json!({}))));
    assert!(
        executor
            .execute_tool_call(&call("b", json!({})), &cx)
            .await
            .unwrap()
            .is_none()
    );

    assert_eq!(
        recorder.log(),
        [
            "normal a {\"path\":\"p\"}",
            "confirmed a {\"path\":\"p\"}",
            "env Some({\"K\": \"v\"})",
            "trust untrusted",
            "retryable a",
            "retryable b",
            "requires_confirmation a",
        ]
    );
}

/// Proves EXE-6.
#[tokio::test]
async fn first_owner_handles_the_call_and_duplicate_ids_are_an_error() {
    let first = Recorder::new("a", Annotations::READ);
    let second = Recorder::new("b", Annotations::READ).aliased(&["bee"]);
    let chain = CompositeExecutor::new(vec![
        ("first", Arc::new(first.clone())),
        ("second", Arc::new(second.clone())),
    ])
    .unwrap();
    let cx = CallContext::headless();
    let output = chain
        .execute_tool_call(&call("b", json!({})), &cx)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.summary, "ran b");
    assert!(first.log().is_empty());

    let clash = |other: Recorder| {
        CompositeExecutor::new(vec![
            ("one", Arc::new(second.clone())),
            ("two", Arc::new(other)),
        ])
        .err()
        .map(|error| error.to_string())
        .unwrap()
    };
    let message = clash(Recorder::new("b", Annotations::READ));
    assert!(message.contains("\"b\"") && message.contains("one") && message.contains("two"));
    assert!(clash(Recorder::new("bee", Annotations::READ)).contains("\"bee\""));
}

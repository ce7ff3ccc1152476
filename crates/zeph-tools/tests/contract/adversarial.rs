//! The adversarial gate, in which a model judges.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::gate::llm_judge::{
    AdversarialGate, AdversarialPolicyConfig, JudgeError, PolicyJudge, Question,
};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    Annotations, AuditTrail, CallContext, LayeredExecutor, NoEvents, Origin, ToolError,
    ToolErrorCategory as Category, ToolExecutor, UserDecision,
};

use crate::fakes::{Audit, Recorder, call};

/// The behaviour of a judge.
enum Does {
    Says(&'static str),
    Fails,
    Hangs,
}

/// A judge that records its system prompts.
struct Judge {
    does: Does,
    asked: Mutex<Vec<String>>,
}

#[async_trait]
impl PolicyJudge for Judge {
    fn name(&self) -> String {
        "fake".to_owned()
    }

    async fn judge(&self, question: &Question) -> Result<String, JudgeError> {
        self.asked.lock().unwrap().push(question.system.clone());
        match self.does {
            Does::Says(answer) => Ok(answer.to_owned()),
            Does::Fails => Err(JudgeError::Failed("no".to_owned())),
            Does::Hangs => std::future::pending().await,
        }
    }
}

struct World {
    recorder: Recorder,
    audit: Arc<Audit>,
    judge: Arc<Judge>,
    stack: LayeredExecutor,
}

impl World {
    fn new(does: Does, fail_open: bool, groups: &[&[&str]]) -> Self {
        let recorder = Recorder::new("a", Annotations::MUTATE);
        let audit = Arc::new(Audit::default());
        let judge = Arc::new(Judge {
            does,
            asked: Mutex::default(),
        });
        let texts = |group: &&[&str]| group.iter().map(|&text| text.to_owned()).collect();
        let gate = AdversarialGate {
            config: AdversarialPolicyConfig {
                fail_open,
                ..AdversarialPolicyConfig::default()
            },
            groups: groups.iter().map(texts).collect(),
            directory: "/p".to_owned(),
            judge: Ok(Arc::clone(&judge) as _),
        };
        let stack = stack::build(StackParts {
            executors: vec![("fake", Arc::new(recorder.clone()))],
            audit: AuditTrail::new(vec![Arc::clone(&audit) as _], false),
            adversarial: Some(gate),
            ..StackParts::default()
        })
        .unwrap();
        Self {
            recorder,
            audit,
            judge,
            stack,
        }
    }

    fn asked(&self) -> usize {
        self.judge.asked.lock().unwrap().len()
    }

    fn decisions(&self) -> Vec<Option<String>> {
        let entries = self.audit.entries.lock().unwrap();
        let decision = |entry: &zeph_tools::AuditEntry| entry.adversarial_policy_decision.clone();
        entries.iter().map(decision).collect()
    }
}

fn asking() -> CallContext {
    // A call that the user typed, so that the confirmed path needs no approval.
    CallContext::new(
        CancellationToken::new(),
        Arc::new(NoEvents),
        UserDecision::CanAsk,
    )
    .with_origin(Origin::User)
}

/// Proves EXE-20.
#[test]
fn adversarial_gate_runs_before_confirmation() {
    let world = World::new(Does::Says("ALLOW"), false, &[&["x"]]);
    let names = world.stack.layer_names();
    let place = |wanted| names.iter().position(|name| *name == wanted);
    let gates = ["known", "adversarial", "permission"].map(place);
    assert!(
        gates.iter().all(Option::is_some) && gates.is_sorted(),
        "{names:?}"
    );
}

/// Proves PERM-20: a call that needs approval is judged once; other arguments or another call are judged
/// again.
#[tokio::test]
async fn confirmed_call_is_not_judged_again() {
    let world = World::new(Does::Says("ALLOW"), false, &[&["x"]]);
    let cx = asking();
    let first = call("a", json!({"path": "p"}));
    let error = world
        .stack
        .execute_tool_call(&first, &cx)
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::ConfirmationRequired);
    assert_eq!((world.asked(), world.recorder.log().len()), (1, 0));
    world
        .stack
        .execute_tool_call_confirmed(&first, &cx)
        .await
        .unwrap();
    assert_eq!((world.asked(), world.recorder.log().len()), (1, 1));

    let other = call("a", json!({"path": "q"}));
    world
        .stack
        .execute_tool_call_confirmed(&other, &cx)
        .await
        .unwrap();
    assert_eq!(world.asked(), 2, "other arguments are judged again");
    // Another call with the same id and arguments.
    world
        .stack
        .execute_tool_call_confirmed(&first, &asking())
        .await
        .unwrap();
    assert_eq!(world.asked(), 3);
    assert_eq!(world.decisions(), vec![Some("allow".to_owned()); 3]);
}

/// Proves PERM-20: a denial applies to both paths, and each group of policies must allow the call.
#[tokio::test]
async fn denied_call_is_denied_on_both_paths() {
    let world = World::new(Does::Says("DENY"), true, &[&["alpha", "beta"], &["gamma"]]);
    let first = call("a", json!({"path": "p"}));
    for confirmed in [false, true] {
        let cx = asking();
        let result = match confirmed {
            false => world.stack.execute_tool_call(&first, &cx).await,
            true => world.stack.execute_tool_call_confirmed(&first, &cx).await,
        };
        assert_eq!(result.unwrap_err().to_string(), "policy denied this call");
    }
    assert_eq!(world.asked(), 2, "a denial ends it");
    assert!(world.recorder.log().is_empty());

    let world = World::new(
        Does::Says("ALLOW"),
        false,
        &[&["alpha", "beta"], &["gamma"]],
    );
    world
        .stack
        .execute_tool_call_confirmed(&first, &asking())
        .await
        .unwrap();
    let asked = world.judge.asked.lock().unwrap().clone();
    assert!(asked[0].contains("\n1. alpha\n2. beta\n") && !asked[0].contains("gamma"));
    assert!(asked[1].contains("\n1. gamma\n") && !asked[1].contains("beta"));
}

/// Proves PERM-20: a timeout, a failure, no policies.
#[tokio::test(start_paused = true)]
async fn missing_verdict_is_decided_by_the_setting() {
    type Groups = &'static [&'static [&'static str]];
    type Case = (fn() -> Does, Groups, &'static str);
    let cases: [Case; 4] = [
        (|| Does::Hangs, &[&["x"]], "timeout"),
        (|| Does::Fails, &[&["x"]], "error"),
        (|| Does::Says("maybe"), &[&["x"]], "no_answer"),
        (|| Does::Says("ALLOW"), &[], "unavailable"),
    ];
    for (does, groups, why) in cases {
        let one = call("a", json!({"path": "p"}));
        let world = World::new(does(), false, groups);
        let result = world
            .stack
            .execute_tool_call_confirmed(&one, &asking())
            .await;
        assert!(
            matches!(result, Err(ToolError::PolicyBlocked { .. })),
            "{why}"
        );
        assert!(world.recorder.log().is_empty(), "{why}");
        assert_eq!(
            world.decisions(),
            [Some(format!("deny (fail_closed: {why})"))]
        );

        let world = World::new(does(), true, groups);
        world
            .stack
            .execute_tool_call_confirmed(&one, &asking())
            .await
            .unwrap();
        assert_eq!(world.recorder.log().len(), 1, "{why}");
        assert_eq!(
            world.decisions(),
            [Some(format!("allow (fail_open: {why})"))]
        );
    }
}

/// Proves PERM-20: a cancellation ends the judgement, regardless of `fail_open`.
#[tokio::test(start_paused = true)]
async fn cancellation_ends_the_judgement() {
    let world = World::new(Does::Hangs, true, &[&["x"]]);
    let cx = asking();
    let cancel = cx.cancel.clone();
    tokio::spawn(async move {
        tokio::time::sleep(Duration::from_millis(10)).await;
        cancel.cancel();
    });
    let begun = tokio::time::Instant::now();
    let one = call("a", json!({"path": "p"}));
    let error = world
        .stack
        .execute_tool_call_confirmed(&one, &cx)
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(begun.elapsed() < Duration::from_secs(1));
    assert!(world.recorder.log().is_empty());
    assert_eq!(world.decisions(), [None]);
}

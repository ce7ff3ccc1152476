//! The stack of layers.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};

use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::cache::{ResultCacheConfig, ResultCaches};
use zeph_tools::gate::rule::Place;
use zeph_tools::gate::{
    Action, PathResolver, PatternKind, PermissionRule, Rule, RuleOrigin, RuleSet, ToolRules,
};
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    Annotations, ApprovedBy, AuditResult, AuditTrail, CallContext, DynExecutor, ErasedToolExecutor,
    EventSink, LayeredExecutor, Mode, NoEvents, Origin, Permissions, Phase, ToolCall, ToolError,
    ToolErrorCategory as Category, ToolEvent, ToolExecutor, TrustLevel, UserDecision,
};

use zeph_tools::overflow::OverflowConfig;

use crate::fakes::{Audit, Kept, Recorder, call};

fn build(executor: &Recorder, audit: &Arc<Audit>, mode: Mode) -> LayeredExecutor {
    audited(
        executor,
        AuditTrail::new(vec![Arc::clone(audit) as _], false),
        mode,
    )
}

fn audited(executor: &Recorder, audit: AuditTrail, mode: Mode) -> LayeredExecutor {
    stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry: Default::default(),
        executors: vec![("fake", Arc::new(executor.clone()))],
        audit,
        cache: Some(Arc::new(ResultCaches::new(
            &ResultCacheConfig::default(),
            None,
        ))),
        overflow: Some((Arc::new(Kept::default()), OverflowConfig::default())),
        permissions: Permissions::of(mode),
        ..StackParts::default()
    })
    .unwrap()
}

fn asking() -> CallContext {
    CallContext::new(
        CancellationToken::new(),
        Arc::new(NoEvents),
        UserDecision::CanAsk,
    )
}

/// Proves EXE-20.
#[test]
fn layer_order_is_fixed() {
    let stack = build(
        &Recorder::new("a", Annotations::READ),
        &Arc::default(),
        Mode::Ask,
    );
    assert_eq!(
        stack.layer_names(),
        [
            "audit",
            "reputation",
            "known",
            "permission",
            "cache",
            "retry",
            "overflow",
            "redact"
        ]
    );
}

/// Proves EXE-2, EXE-3, EXE-8, EXE-8a, EXE-10, EXE-11.
#[tokio::test]
async fn executed_call_is_checked_and_audited_once() {
    let recorder = Recorder::new("a", Annotations::READ).aliased(&["alias"]);
    let audit = Arc::new(Audit::default());
    let stack = build(&recorder, &audit, Mode::Ask);
    let cx = asking();
    let call = ToolCall {
        caller_id: Some("ide".to_owned()),
        phase: Phase::Verifier,
        ..call("alias", json!({"file_path": "p", "count": "3"}))
    };
    let output = stack.execute_tool_call(&call, &cx).await.unwrap().unwrap();
    assert_eq!(recorder.log(), ["normal a {\"count\":3,\"path\":\"p\"}"]);
    assert_eq!(output.summary, "ran a");
    assert!(output.display().contains("`file_path` was read as `path`"));
    assert_eq!(output.metadata.data_size_bytes, 5);
    assert!(output.raw_response.is_none() && output.locations.is_empty());
    assert!(output.metadata.timestamp > 1_700_000_000_000);

    let entries = audit.entries.lock().unwrap();
    let [entry] = entries.as_slice() else {
        panic!("{entries:?}")
    };
    assert_eq!(entry.tool, "a");
    assert_eq!(entry.call, json!({"count": 3, "path": "p"}));
    assert_eq!(entry.result, AuditResult::Success);
    assert_eq!(entry.result_size, 5);
    assert_eq!(entry.caller_id.as_deref(), Some("ide"));
    assert_eq!(entry.phase, Phase::Verifier);
    assert_eq!(entry.attempts, 1);
    assert_eq!(entry.repairs.len(), 2);
}

/// Proves EXE-9, EXE-21, EXE-22.
#[tokio::test]
async fn refused_or_failed_call_is_audited() {
    let audit = Arc::new(Audit::default());
    let recorder = Recorder::new("read", Annotations::READ);
    let stack = build(&recorder, &audit, Mode::Ask);
    let cx = CallContext::headless;

    let error = stack
        .execute_tool_call(&call("raed", json!({})), &cx())
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::ToolNotFound);
    assert!(error.to_string().contains("did you mean read?"), "{error}");
    let error = stack
        .execute_tool_call(&call("read", json!({"path": 1})), &cx())
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::TypeMismatch);
    assert!(recorder.log().is_empty());

    let failing = Recorder::new("read", Annotations::READ).failing();
    let stack = build(&failing, &audit, Mode::Ask);
    let error = stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "it broke");
    let forbidding = Recorder::new("read", Annotations::READ).forbidding();
    let stack = build(&forbidding, &audit, Mode::Ask);
    let error = stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx())
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::PolicyBlocked);

    let entries = audit.entries.lock().unwrap();
    let seen: Vec<_> = entries
        .iter()
        .map(|entry| {
            (
                entry.tool.as_str(),
                entry.result,
                entry.error_category,
                entry.attempts,
            )
        })
        .collect();
    assert_eq!(
        seen,
        [
            ("raed", AuditResult::Error, Some("tool_not_found"), 0),
            ("read", AuditResult::Error, Some("type_mismatch"), 0),
            ("read", AuditResult::Error, Some("permanent_failure"), 1),
            ("read", AuditResult::Error, Some("policy_blocked"), 1),
        ]
    );
}

/// Proves PERM-2.
#[tokio::test]
async fn question_and_confirmed_call_have_one_entry() {
    let audit = Arc::new(Audit::default());
    let recorder = Recorder::new("write", Annotations::MUTATE);
    let stack = build(&recorder, &audit, Mode::Ask);
    let call = call("write", json!({"path": "p", "content": "secret text"}));
    assert!(stack.requires_confirmation(&call));

    let cx = asking();
    let error = stack.execute_tool_call(&call, &cx).await.unwrap_err();
    let ToolError::ConfirmationRequired(question) = error else {
        panic!("{error}")
    };
    assert!(audit.entries.lock().unwrap().is_empty());
    assert!(recorder.log().is_empty());

    let agreed = cx.with_approval(question.digest);
    stack
        .execute_tool_call_confirmed(&call, &agreed)
        .await
        .unwrap();
    assert_eq!(recorder.log().len(), 1);
    assert!(recorder.log()[0].starts_with("confirmed write"));
    {
        let entries = audit.entries.lock().unwrap();
        let [entry] = entries.as_slice() else {
            panic!("{entries:?}")
        };
        assert_eq!(entry.approved_by, ApprovedBy::User);
        assert_eq!(entry.call, json!({"path": "p", "content": "[11 bytes]"}));
    }

    let cx = asking();
    let no = cx.with_answer(UserDecision::No(Some("use the other file".to_owned())));
    let error = stack.execute_tool_call(&call, &no).await.unwrap_err();
    assert_eq!(error.category(), Category::PolicyBlocked);
    assert!(error.to_string().contains("use the other file"));

    let error = stack
        .execute_tool_call(&call, &CallContext::headless())
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::ConfirmationRequired);
    assert!(error.to_string().contains("--yes"), "{error}");

    assert_eq!(recorder.log().len(), 1, "a refused call ran");
    let entries = audit.entries.lock().unwrap();
    let results: Vec<_> = entries.iter().map(|entry| entry.result).collect();
    assert_eq!(
        results,
        [
            AuditResult::Success,
            AuditResult::Blocked,
            AuditResult::Blocked
        ]
    );
}

#[tokio::test]
async fn confirmed_path_does_not_bypass_a_denial() {
    let audit = Arc::new(Audit::default());
    let recorder = Recorder::new("bash", Annotations::ANYTHING);
    let stack = build(&recorder, &audit, Mode::Plan);
    let call = call("bash", json!({"path": "p"}));
    for confirmed in [false, true] {
        let cx = asking();
        let result = if confirmed {
            stack.execute_tool_call_confirmed(&call, &cx).await
        } else {
            stack.execute_tool_call(&call, &cx).await
        };
        assert_eq!(result.unwrap_err().category(), Category::PolicyBlocked);
    }
    assert!(recorder.log().is_empty());
    assert_eq!(audit.entries.lock().unwrap().len(), 2);
}

/// Proves EXE-13.
#[tokio::test]
async fn cancelled_call_does_not_run_and_is_audited() {
    let audit = Arc::new(Audit::default());
    let recorder = Recorder::new("read", Annotations::READ);
    let stack = build(&recorder, &audit, Mode::Ask);
    let cx = asking();
    cx.cancel.cancel();
    let error = stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx)
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(recorder.log().is_empty());
    let cx = asking().with_answer(UserDecision::Refused("too many".to_owned()));
    let error = stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx)
        .await
        .unwrap_err();
    assert_eq!(error.category(), Category::PolicyBlocked);
    assert!(recorder.log().is_empty());
    let results: Vec<_> = audit
        .entries
        .lock()
        .unwrap()
        .iter()
        .map(|e| e.result)
        .collect();
    assert_eq!(results, [AuditResult::Cancelled, AuditResult::Blocked]);
}

#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl EventSink for Notices {
    fn emit(&self, event: ToolEvent) {
        if let ToolEvent::Warning { text, .. } = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

#[tokio::test]
async fn unwritable_audit_log_is_reported() {
    let audit = Arc::new(Audit {
        broken: true,
        ..Audit::default()
    });
    let stack = build(&Recorder::new("read", Annotations::READ), &audit, Mode::Ask);
    let notices = Arc::new(Notices::default());
    let cx = CallContext::new(
        CancellationToken::new(),
        Arc::clone(&notices) as _,
        UserDecision::Nobody,
    );
    stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx)
        .await
        .unwrap();
    assert_eq!(
        *notices.0.lock().unwrap(),
        [
            "the audit entry of read was not written: the audit log cannot be written: the disk is full"
        ]
    );
}

/// Proves OUT-51: a failing sink does not prevent the entry in others. If entries are required, a call that
/// cannot be audited does not run, and a result that could not be audited afterwards is withheld.
#[tokio::test]
async fn required_entries_come_before_the_call() {
    let reads = || Recorder::new("read", Annotations::READ);
    let warned = |recorder: Recorder, audits: Vec<Arc<Audit>>, required: bool| async move {
        let sinks = audits.into_iter().map(|audit| audit as _).collect();
        let stack = audited(&recorder, AuditTrail::new(sinks, required), Mode::Ask);
        let notices = Arc::new(Notices::default());
        let cx = CallContext::new(
            CancellationToken::new(),
            Arc::clone(&notices) as _,
            UserDecision::Nobody,
        );
        let result = stack
            .execute_tool_call(&call("read", json!({"path": "p"})), &cx)
            .await;
        let warnings = notices.0.lock().unwrap().len();
        (
            result.map_err(|error| error.category()),
            recorder.log().len(),
            warnings,
        )
    };
    let broken = || {
        Arc::new(Audit {
            broken: true,
            ..Audit::default()
        })
    };
    let good = Arc::new(Audit::default());
    let (result, ran, warnings) = warned(reads(), vec![broken(), Arc::clone(&good)], false).await;
    assert!(result.is_ok() && ran == 1 && warnings == 1);
    assert_eq!(good.entries.lock().unwrap().len(), 1);
    assert!(
        good.reserved.lock().unwrap().is_empty(),
        "it was not requested"
    );

    let (result, ran, warnings) = warned(reads(), vec![Arc::clone(&good), broken()], true).await;
    assert_eq!(result.unwrap_err(), Category::PolicyBlocked);
    assert_eq!((ran, warnings), (0, 1), "reported once, and not run");
    {
        let entries = good.entries.lock().unwrap();
        assert_eq!(entries[1].result, AuditResult::Blocked);
        assert_eq!(entries[1].error_category, Some("policy_blocked"));
    }

    // A call that a remote side refused has run too.
    for recorder in [reads(), reads().forbidding()] {
        let fills_up = Arc::new(Audit {
            fills_up: true,
            ..Audit::default()
        });
        let (result, ran, warnings) = warned(recorder, vec![fills_up], true).await;
        assert_eq!(result.unwrap_err(), Category::PermanentFailure);
        assert_eq!((ran, warnings), (1, 1));
    }

    let (result, ran, warnings) = warned(reads(), vec![Arc::clone(&good)], true).await;
    assert!(result.is_ok() && ran == 1 && warnings == 0);
    assert_eq!(good.reserved.lock().unwrap().len(), 2);
}

/// Proves PERM-7a: only the approved arguments run; without approval only a command that the user typed.
#[tokio::test]
async fn approval_covers_only_the_shown_arguments() {
    let audit = Arc::new(Audit::default());
    let recorder = Recorder::new("write", Annotations::MUTATE);
    let stack = build(&recorder, &audit, Mode::Ask);
    let shown = call("write", json!({"path": "p", "content": "shown"}));
    let cx = asking();
    let error = stack.execute_tool_call(&shown, &cx).await.unwrap_err();
    let ToolError::ConfirmationRequired(question) = error else {
        panic!("{error}")
    };
    let agreed = cx.with_approval(question.digest);
    for params in [
        json!({"path": "p", "content": "other"}),
        json!({"path": "q", "content": "shown"}),
    ] {
        let other = call("write", params);
        let error = stack
            .execute_tool_call_confirmed(&other, &agreed)
            .await
            .unwrap_err();
        assert_eq!(error.category(), Category::PolicyBlocked, "{error}");
    }
    let unapproved = stack.execute_tool_call_confirmed(&shown, &asking()).await;
    assert_eq!(unapproved.unwrap_err().category(), Category::PolicyBlocked);
    assert!(recorder.log().is_empty());
    // Arguments with another key order or a repaired key are equal.
    let same = call("write", json!({"content": "shown", "path": "p"}));
    stack
        .execute_tool_call_confirmed(&same, &agreed)
        .await
        .unwrap();
    let typed = asking().with_origin(Origin::User);
    stack
        .execute_tool_call_confirmed(&shown, &typed)
        .await
        .unwrap();
    assert_eq!(recorder.log().len(), 2);
}

/// Proves EXE-4, EXE-5, PERM-31: the executor's demand for confirmation applies in every mode and with every
/// rule. Only the confirmed path runs.
#[tokio::test]
async fn executor_demand_is_honoured_by_the_permission_gate() {
    let places = PathResolver::without_sandbox(Path::new("/"));
    let written = PermissionRule {
        pattern: "*".to_owned(),
        action: Action::Allow,
        matches: Vec::new(),
        not_matches: Vec::new(),
    };
    let origin = RuleOrigin {
        key: "tools.permissions.fake[0]".to_owned(),
        place: Place::Said("the test".to_owned()),
    };
    let rule = Rule::new(PatternKind::Text, written, origin, &places).unwrap();
    let allow = ToolRules {
        rules: vec![rule],
        listed: true,
    };
    let allow = Arc::new(RuleSet::new(BTreeMap::from([("fake".to_owned(), allow)])));
    let check = async |nature: Annotations, mode: Mode, rules: bool, demands: bool, asks: bool| {
        let audit = Arc::new(Audit::default());
        let mut recorder = Recorder::new("fake", nature);
        if demands {
            recorder = recorder.demanding();
        }
        let mut permissions = Permissions::of(mode);
        if rules {
            permissions.rules = Arc::clone(&allow);
        }
        let erased: Arc<dyn ErasedToolExecutor> = Arc::new(recorder.clone());
        let stack = stack::build(StackParts {
            executors: vec![("fake", Arc::new(DynExecutor(erased)))],
            audit: AuditTrail::new(vec![Arc::clone(&audit) as _], false),
            permissions,
            ..StackParts::default()
        });
        let stack = stack.unwrap();
        let call = call("fake", json!({"path": "p"}));
        let what = format!("{mode:?} rules {rules} demands {demands}");
        let cx = asking();
        let first = stack.execute_tool_call(&call, &cx).await;
        let ran = |way: &str| {
            let log = recorder.log();
            log.iter().filter(|line| line.starts_with(way)).count()
        };
        if !asks {
            first.unwrap();
            assert_eq!((ran("normal"), ran("confirmed")), (1, 0), "{what}");
            return;
        }
        let Err(ToolError::ConfirmationRequired(question)) = first else {
            panic!("{what}: {first:?}")
        };
        assert_eq!((ran("normal"), ran("confirmed")), (0, 0), "{what}");
        let agreed = cx.with_approval(question.digest);
        stack
            .execute_tool_call_confirmed(&call, &agreed)
            .await
            .unwrap();
        assert_eq!((ran("normal"), ran("confirmed")), (0, 1), "{what}");
        let entry = audit.entries.lock().unwrap().pop().unwrap();
        assert_eq!(entry.result, AuditResult::Success, "{what}");
        // No user can be asked: the call is refused, and the hint names the flag.
        let alone = CallContext::new(
            CancellationToken::new(),
            Arc::new(NoEvents),
            UserDecision::Nobody,
        );
        let refused = stack.execute_tool_call(&call, &alone).await.unwrap_err();
        assert!(refused.to_string().contains("--yes"), "{what}: {refused}");
        // The user says no.
        let no = cx.with_answer(UserDecision::No(None));
        let refused = stack.execute_tool_call(&call, &no).await.unwrap_err();
        assert_eq!(refused.category(), Category::PolicyBlocked, "{what}");
        assert_eq!((ran("normal"), ran("confirmed")), (0, 1), "{what}");
        // The run is unattended: the confirmation is skipped, and the call takes the confirmed path.
        let mut unattended = call.clone();
        unattended.phase = Phase::Autonomous;
        stack.execute_tool_call(&unattended, &alone).await.unwrap();
        let last = recorder.log().pop().unwrap();
        assert!(
            !last.is_empty() && ran("normal") + ran("confirmed") == 2,
            "{what}"
        );
    };
    let (read, mutate) = (Annotations::READ, Annotations::MUTATE);
    for mode in [Mode::Ask, Mode::AutoEdit, Mode::Full] {
        check(read, mode, false, false, false).await;
        check(read, mode, false, true, true).await;
        check(read, mode, true, true, true).await;
        check(mutate, mode, true, true, true).await;
    }
    check(read, Mode::Plan, false, true, true).await;
    check(mutate, Mode::Full, false, false, false).await;
    check(mutate, Mode::Full, true, false, false).await;
    check(mutate, Mode::Full, false, true, true).await;
    check(mutate, Mode::AutoEdit, false, true, true).await;
}

/// Proves PERM-30: the trust level reaches every executor through all wrappers.
#[tokio::test]
async fn trust_reaches_every_executor() {
    let recorders = [
        Recorder::new("a", Annotations::READ),
        Recorder::new("b", Annotations::MUTATE),
        Recorder::new("c", Annotations::ANYTHING),
    ];
    let wrapped = |at: usize| -> Arc<dyn ErasedToolExecutor> {
        Arc::new(DynExecutor(Arc::new(recorders[at].clone())))
    };
    let stack = stack::build(StackParts {
        executors: vec![("a", wrapped(0)), ("b", wrapped(1)), ("c", wrapped(2))],
        ..StackParts::default()
    });
    let stack = stack.unwrap();
    for level in [
        TrustLevel::Untrusted,
        TrustLevel::Provisional,
        TrustLevel::Trusted,
    ] {
        stack.set_effective_trust(level);
        for recorder in &recorders {
            let last = recorder.log().pop();
            let expect = format!("trust {}", level.as_str());
            assert_eq!(last, Some(expect), "{}", recorder.def.id);
        }
    }
}

/// Proves PERM-30: the level reaches the layers and the audit trail.
#[tokio::test]
async fn trust_level_applies_to_later_calls() {
    let audit = Arc::new(Audit::default());
    let web = Annotations {
        open_world: true,
        ..Annotations::READ
    };
    let recorder = Recorder::new("fetch", web);
    let stack = build(&recorder, &audit, Mode::Full);
    let call = call("fetch", json!({"path": "p"}));
    for (level, runs) in [
        (TrustLevel::Trusted, true),
        (TrustLevel::Untrusted, false),
        (TrustLevel::Provisional, true),
        (TrustLevel::Untrusted, false),
    ] {
        stack.set_effective_trust(level);
        let result = stack
            .execute_tool_call(&call, &CallContext::headless())
            .await;
        assert_eq!(result.is_ok(), runs, "{level:?} {result:?}");
        let entries = audit.entries.lock().unwrap();
        assert_eq!(entries.last().unwrap().trust, level);
    }
    let logged = recorder.log();
    let logged = logged.iter().rfind(|line| line.starts_with("trust"));
    assert_eq!(logged.map(String::as_str), Some("trust untrusted"));
}

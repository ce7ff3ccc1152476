//! The `retry` layer in the whole stack, with a paused clock.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use zeph_tools::cache::{ResultCacheConfig, ResultCaches};
use zeph_tools::retry::ToolRetryConfig;
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    Annotations, AuditResult, AuditTrail, CallContext, EventSink, ExecutorResult, LayeredExecutor,
    Mode, NoEvents, Permissions, SkillEnv, ToolCall, ToolDef, ToolError,
    ToolErrorCategory as Category, ToolEvent, ToolExecutor, ToolOutput, TrustLevel, UserDecision,
    format_for_llm,
};

use crate::fakes::{Audit, Recorder, call};

/// An executor with these failures before success, which counts its executions.
#[derive(Clone)]
pub struct Faulty {
    def: ToolDef,
    retryable: bool,
    faults: Arc<Mutex<VecDeque<ToolError>>>,
    runs: Arc<Mutex<Vec<&'static str>>>,
}

impl Faulty {
    pub fn new(id: &'static str, annotations: Annotations, faults: Vec<ToolError>) -> Self {
        Self {
            def: Recorder::new(id, annotations).def,
            retryable: true,
            faults: Arc::new(Mutex::new(faults.into())),
            runs: Arc::default(),
        }
    }

    fn run(&self, how: &'static str) -> ExecutorResult {
        self.runs.lock().unwrap().push(how);
        match self.faults.lock().unwrap().pop_front() {
            Some(fault) => Err(fault),
            None => Ok(Some(ToolOutput::text("done"))),
        }
    }
}

impl ToolExecutor for Faulty {
    async fn execute_tool_call(&self, _: &ToolCall, _: &CallContext) -> ExecutorResult {
        self.run("normal")
    }

    async fn execute_tool_call_confirmed(&self, _: &ToolCall, _: &CallContext) -> ExecutorResult {
        self.run("confirmed")
    }

    fn tool_definitions(&self) -> Vec<ToolDef> {
        vec![self.def.clone()]
    }

    fn set_skill_env(&self, _: Option<SkillEnv>) {}

    fn set_effective_trust(&self, _: TrustLevel) {}

    fn is_tool_retryable(&self, _: &str) -> bool {
        self.retryable
    }

    fn requires_confirmation(&self, _: &ToolCall) -> bool {
        false
    }
}

/// Records notices.
#[derive(Default)]
struct Notices(Mutex<Vec<String>>);

impl EventSink for Notices {
    fn emit(&self, event: ToolEvent) {
        if let ToolEvent::Notice { text, .. } = event {
            self.0.lock().unwrap().push(text);
        }
    }
}

fn stack_of(executor: &Faulty, audit: &Arc<Audit>, retry: ToolRetryConfig) -> LayeredExecutor {
    let caches = ResultCaches::new(&ResultCacheConfig::default(), None);
    stack::build(StackParts {
        watchers: Vec::new(),
        secrets: Arc::default(),
        retry,
        executors: vec![("fake", Arc::new(executor.clone()))],
        audit: AuditTrail::new(vec![Arc::clone(audit) as _], false),
        cache: Some(Arc::new(caches)),
        overflow: None,
        permissions: Permissions::of(Mode::Ask),
        ..StackParts::default()
    })
    .unwrap()
}

pub fn server() -> ToolError {
    ToolError::Failed {
        category: Category::ServerError,
        message: "it answers\n503".to_owned(),
    }
}

fn busy(secs: u64) -> ToolError {
    ToolError::Deferred {
        category: Category::RateLimited,
        message: "it answers 429".to_owned(),
        retry_after: Duration::from_secs(secs),
    }
}

/// Proves ERR-20: retries are reported and counted, one entry is written, and the failure is not returned.
#[tokio::test(start_paused = true)]
async fn transient_failure_is_retried() {
    let faulty = Faulty::new("read", Annotations::READ, vec![server(), busy(20)]);
    let audit = Arc::new(Audit::default());
    let stack = stack_of(&faulty, &audit, ToolRetryConfig::default());
    let notices = Arc::new(Notices::default());
    let events = Arc::clone(&notices) as _;
    let cx = CallContext::new(CancellationToken::new(), events, UserDecision::Nobody);
    let start = Instant::now();
    let output = stack
        .execute_tool_call(&call("read", json!({"path": "p"})), &cx)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(output.summary, "done");
    let took = start.elapsed();
    let (least, most) = (Duration::from_secs(20), Duration::from_millis(20_501));
    assert!((least..most).contains(&took), "{took:?}");
    let notices = notices.0.lock().unwrap();
    assert_eq!(notices.len(), 2, "{notices:?}");
    assert!(notices[0].starts_with("retrying read in 0."), "{notices:?}");
    assert!(
        notices[0].ends_with(" s (attempt 2 of 3): it answers 503"),
        "{notices:?}"
    );
    let expect = "retrying read in 20.0 s (attempt 3 of 3): it answers 429; the server requests a wait of 20 s";
    assert_eq!(notices[1], expect);
    let entries = audit.entries.lock().unwrap();
    assert_eq!(entries.len(), 1, "{entries:?}");
    assert_eq!(entries[0].attempts, 3);
    assert_eq!(entries[0].result, AuditResult::Success);
}

/// Proves ERR-20, ERR-6: the result is the last failure, with the number of attempts.
#[tokio::test(start_paused = true)]
async fn last_failure_has_the_number_of_attempts() {
    let faults = vec![busy(1), busy(1), server(), server()];
    let faulty = Faulty::new("read", Annotations::READ, faults);
    let audit = Arc::new(Audit::default());
    let stack = stack_of(&faulty, &audit, ToolRetryConfig::default());
    let error = stack
        .execute_tool_call(
            &call("read", json!({"path": "p"})),
            &CallContext::headless(),
        )
        .await
        .unwrap_err();
    assert_eq!(
        format_for_llm(&error),
        "[tool_error]\ncategory: server_error\nerror: it answers 503 (tried 3 times)\n\
         suggestion: The service failed. Try again later, or use another way.\nretryable: true"
    );
    assert_eq!(faulty.runs.lock().unwrap().len(), 3);
    let entries = audit.entries.lock().unwrap();
    assert_eq!(entries[0].attempts, 3);
    assert_eq!(entries[0].error_category, Some("server_error"));
}

/// Proves ERR-20, ERR-22: failures that are not retried.
#[tokio::test(start_paused = true)]
async fn permanent_failures_are_not_retried() {
    let check = async |fault: ToolError, retryable: bool, retry: ToolRetryConfig, said: &str| {
        let mut faulty = Faulty::new("read", Annotations::READ, vec![fault]);
        faulty.retryable = retryable;
        let audit = Arc::new(Audit::default());
        let stack = stack_of(&faulty, &audit, retry);
        let start = Instant::now();
        let error = stack
            .execute_tool_call(
                &call("read", json!({"path": "p"})),
                &CallContext::headless(),
            )
            .await
            .unwrap_err();
        assert_eq!(error.to_string(), said);
        assert_eq!(faulty.runs.lock().unwrap().len(), 1, "{said}");
        assert_eq!(start.elapsed(), Duration::ZERO, "{said}");
        assert_eq!(audit.entries.lock().unwrap()[0].attempts, 1);
    };
    let config = ToolRetryConfig::default;
    check(server(), false, config(), "it answers\n503").await;
    check(ToolError::permanent("gone"), true, config(), "gone").await;
    check(ToolError::invalid("edit"), true, config(), "edit").await;
    let never = ToolRetryConfig {
        max_attempts: 0,
        ..config()
    };
    check(server(), true, never.clone(), "it answers\n503").await;
    let late = "it answers 429; the server requests a wait of 90 s";
    check(busy(90), true, never, late).await;
    let late = format!(
        "{late} (no retry now, because it would exceed the 30 s of `[tools.retry] budget_secs`; \
         try again in 90 s)"
    );
    check(busy(90), true, config(), &late).await;
    let spent = ToolRetryConfig {
        budget_secs: 0,
        ..config()
    };
    let said = "it answers\n503 (the 0 s of `[tools.retry] budget_secs` are used up)";
    check(server(), true, spent, said).await;
}

/// Proves EXE-20, ERR-20: if disabled, the layer is not in the stack.
#[test]
fn layer_is_absent_without_retries() {
    let faulty = Faulty::new("read", Annotations::READ, Vec::new());
    let config = ToolRetryConfig {
        max_attempts: 0,
        ..ToolRetryConfig::default()
    };
    let stack = stack_of(&faulty, &Arc::default(), config);
    assert!(!stack.layer_names().contains(&"retry"));
}

/// Proves ERR-20, EXE-13: a cancellation ends the wait immediately.
#[tokio::test(start_paused = true)]
async fn cancellation_ends_the_wait() {
    let faulty = Faulty::new("read", Annotations::READ, vec![busy(20)]);
    let audit = Arc::new(Audit::default());
    let stack = stack_of(&faulty, &audit, ToolRetryConfig::default());
    let cancel = CancellationToken::new();
    let cx = CallContext::new(cancel.clone(), Arc::new(NoEvents), UserDecision::Nobody);
    let start = Instant::now();
    let call = call("read", json!({"path": "p"}));
    let stop = async {
        tokio::time::sleep(Duration::from_secs(3)).await;
        cancel.cancel();
    };
    let (result, ()) = tokio::join!(stack.execute_tool_call(&call, &cx), stop);
    let error = result.unwrap_err();
    assert_eq!(error.category(), Category::Cancelled);
    assert!(error.to_string().contains("it answers 429"), "{error}");
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    assert_eq!(faulty.runs.lock().unwrap().len(), 1);
    let entries = audit.entries.lock().unwrap();
    assert_eq!(entries[0].result, AuditResult::Cancelled);
}

/// Proves ERR-20, EXE-3: the user is asked once; retries stay on the confirmed path.
#[tokio::test(start_paused = true)]
async fn retry_asks_no_question() {
    let open = Annotations {
        open_world: true,
        ..Annotations::READ
    };
    let faulty = Faulty::new("read", open, vec![server(), server()]);
    let audit = Arc::new(Audit::default());
    let stack = stack_of(&faulty, &audit, ToolRetryConfig::default());
    let cx = CallContext::new(
        CancellationToken::new(),
        Arc::new(NoEvents),
        UserDecision::CanAsk,
    );
    let call = call("read", json!({"path": "p"}));
    let error = stack.execute_tool_call(&call, &cx).await.unwrap_err();
    let ToolError::ConfirmationRequired(question) = error else {
        panic!("{error}")
    };
    let cx = cx.with_approval(question.digest);
    stack.execute_tool_call_confirmed(&call, &cx).await.unwrap();
    assert_eq!(*faulty.runs.lock().unwrap(), ["confirmed"; 3]);
    let entries = audit.entries.lock().unwrap();
    assert_eq!((entries.len(), entries[0].attempts), (1, 3));
}

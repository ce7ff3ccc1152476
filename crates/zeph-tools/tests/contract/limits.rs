//! Limits of calls in the whole stack.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use serde_json::json;
use tokio_util::sync::CancellationToken;
use zeph_tools::gate::CallLimits;
use zeph_tools::gate::anomaly::{AnomalyConfig, AnomalyDetector};
use zeph_tools::gate::quota::{BatchQuota, CallCounter, CountError, Quota, QuotaResult};
use zeph_tools::gate::utility::{UtilityConfig, UtilityScorer};
use zeph_tools::retry::ToolRetryConfig;
use zeph_tools::stack::{self, StackParts};
use zeph_tools::{
    Annotations, AuditTrail, CallContext, ErasedToolExecutor, LayeredExecutor, NoEvents, ToolError,
    ToolExecutor, UserDecision,
};

use crate::fakes::{Audit, Recorder, call};
use crate::retry::{Faulty, server};

/// A quota counter in memory.
#[derive(Default)]
struct Counter(AtomicU64);

#[async_trait]
impl CallCounter for Counter {
    async fn take(&self, _: &str, calls: u64, max: u64) -> Result<QuotaResult, CountError> {
        let used = self.0.load(Ordering::Relaxed);
        if used + calls > max {
            return Ok(QuotaResult::Exceeds { used });
        }
        self.0.store(used + calls, Ordering::Relaxed);
        Ok(QuotaResult::Fits { used: used + calls })
    }

    async fn used(&self, _: &str) -> Result<u64, CountError> {
        Ok(self.0.load(Ordering::Relaxed))
    }
}

fn limited(executor: Arc<dyn ErasedToolExecutor>, max: u64) -> (LayeredExecutor, Arc<Counter>) {
    let counter = Arc::new(Counter::default());
    let stack = stack::build(StackParts {
        executors: vec![("fake", executor)],
        audit: AuditTrail::new(vec![Arc::new(Audit::default())], false),
        limits: CallLimits {
            quota: Some(Quota {
                max,
                counter: Arc::clone(&counter) as _,
            }),
            anomalies: Some(Arc::new(AnomalyDetector::new(AnomalyConfig::default()))),
            utility: Some(Arc::new(UtilityScorer::new(UtilityConfig::default()))),
            ..CallLimits::default()
        },
        retry: ToolRetryConfig::default(),
        ..StackParts::default()
    });
    (stack.unwrap(), counter)
}

/// Proves EXE-20.
#[test]
fn order_of_limit_layers_is_fixed() {
    let (stack, _) = limited(Arc::new(Recorder::new("a", Annotations::READ)), 1);
    assert_eq!(
        stack.layer_names(),
        [
            "audit",
            "reputation",
            "known",
            "quota",
            "anomaly",
            "permission",
            "utility",
            "retry",
            "redact"
        ]
    );
}

/// Proves D-11: retries are not counted.
#[tokio::test(start_paused = true)]
async fn retried_call_is_counted_once() {
    let faulty = Faulty::new("read", Annotations::READ, vec![server(), server()]);
    let (stack, counter) = limited(Arc::new(faulty), 1);
    let made = stack
        .execute_tool_call(
            &call("read", json!({"path": "p"})),
            &CallContext::headless(),
        )
        .await;
    assert_eq!(made.unwrap().unwrap().summary, "done");
    assert_eq!(counter.0.load(Ordering::Relaxed), 1);
}

/// Proves D-11: the confirmed path is not counted again, and calls of one response share a reservation.
#[tokio::test]
async fn confirmed_call_is_counted_once() {
    let recorder = Recorder::new("edit", Annotations::MUTATE);
    let (stack, counter) = limited(Arc::new(recorder.clone()), 2);
    let seats = Arc::new(BatchQuota::of(2));
    for _ in 0..2 {
        let call = call("edit", json!({"path": "p"}));
        let cx = CallContext::new(
            CancellationToken::new(),
            Arc::new(NoEvents),
            UserDecision::CanAsk,
        )
        .with_batch_quota(Arc::clone(&seats));
        let asked = stack.execute_tool_call(&call, &cx).await.unwrap_err();
        let ToolError::ConfirmationRequired(question) = asked else {
            panic!("{asked}")
        };
        assert_eq!(
            counter.0.load(Ordering::Relaxed),
            2,
            "both are counted together"
        );
        let cx = cx.with_approval(question.digest);
        stack.execute_tool_call_confirmed(&call, &cx).await.unwrap();
    }
    assert_eq!(counter.0.load(Ordering::Relaxed), 2);
    assert_eq!(recorder.log().len(), 2);
    // Each single call is a separate batch, regardless of its id.
    let refused = stack
        .execute_tool_call(
            &call("edit", json!({"path": "p"})),
            &CallContext::headless(),
        )
        .await;
    assert!(matches!(
        refused,
        Err(ToolError::QuotaBlocked {
            used: 2,
            max: 2,
            asked: 1
        })
    ));
}

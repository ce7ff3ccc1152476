//! The last export at the end of the process: it has a limit, and none follows a failure.

use std::time::{Duration, Instant};

use super::collector::{Behaviour, Collector};
use super::export::home;
use crate::rig::{OpenAi, Reply, wait_for};

/// The limit of the last export, as documented.
const LAST_FLUSH: Duration = Duration::from_millis(1500);
/// The limit of a request. A process that waits for a request takes as long.
const REQUEST_LIMIT: Duration = Duration::from_secs(5);

/// Proves OPS-5: the process ends after the limit of the last export, although the collector holds the request longer.
#[test]
fn last_export_has_a_limit() {
    let (server, collector) = (
        OpenAi::replies([Reply::text("hi")]),
        Collector::start(Behaviour::Hangs),
    );
    let home = home(&server, &collector);
    let running = home.zeph(["-p", "go"]).start();
    // The first data of such a short run is sent at its end.
    let begun = wait_for("the last export", || {
        (!collector.received().is_empty()).then(Instant::now)
    });
    let output = running.wait().code(0);
    let took = begun.elapsed();
    assert_eq!(output.stdout, "hi\n");
    assert!(took < REQUEST_LIMIT, "{took:?}");
    assert!(took > LAST_FLUSH / 2, "{took:?}");
}

/// Proves OPS-5: after a failed request, the process sends nothing at its end.
#[test]
fn last_export_is_omitted_after_a_failure() {
    let collector = Collector::start(Behaviour::Fails);
    let (told, logged) = std::sync::mpsc::channel::<()>();
    let logged = std::sync::Mutex::new(logged);
    let server = OpenAi::start(move |n, _| {
        if n == 1 {
            // The turn continues when the failure is in the log.
            logged.lock().unwrap().recv().unwrap();
        }
        match n {
            0 => Reply::calls("a", &[("read", serde_json::json!({ "path": "none" }))]),
            _ => Reply::text("hi"),
        }
    });
    let home = home(&server, &collector);
    let run = home.zeph(["-p", "go"]).env("OTEL_BSP_SCHEDULE_DELAY", "20");
    let running = run.start();
    let log = home.home().join(".local/state/zeph/zeph.log");
    wait_for("the failure", || {
        let log = std::fs::read_to_string(&log).unwrap_or_default();
        log.contains("cannot be sent").then_some(())
    });
    told.send(()).unwrap();
    running.wait().code(0);
    assert!(!collector.bodies("/v1/traces").is_empty());
    // Metrics are sent every minute, and at the end.
    assert_eq!(collector.bodies("/v1/metrics").len(), 0);
}

//! The commands and the configuration of docs/monitoring.md, in the order of the page.

use crate::rig::{Home, follow};

pub(crate) const PAGE: &str = include_str!("../../docs/monitoring.md");

/// Proves OPS-4: the steps of the page about logs.
#[test]
fn steps_about_logs_work() {
    let home = Home::new();
    let outputs = follow(&home, PAGE, "\n## Logs\n", str::to_owned);
    assert_eq!(outputs[1], "1\n");
    let last = &outputs[outputs.len() - 2];
    let record: serde_json::Value = serde_json::from_str(last).expect(last);
    assert_eq!(record["level"], "ERROR", "{record}");
    assert!(outputs.last().unwrap().starts_with("ok "), "{outputs:?}");
}

//! The commands and the configuration of docs/monitoring.md, in the order of the page.

use crate::rig::{Home, Zeph};

const PAGE: &str = include_str!("../../docs/monitoring.md");

/// The blocks of a section: the language of each and its text.
fn blocks(section: &str) -> Vec<(&'static str, &'static str)> {
    let start = PAGE.find(section).expect(section) + section.len();
    let rest = &PAGE[start..];
    let end = rest.find("\n## ").unwrap_or(rest.len());
    let blocks = rest[..end].split("```").skip(1).step_by(2);
    blocks.filter_map(|block| block.split_once('\n')).collect()
}

/// Runs a line through a shell in which `zeph` is the built binary. Returns the output.
#[track_caller]
fn run(home: &Home, line: &str) -> String {
    let script = format!("zeph() {{ \"$BIN\" \"$@\"; }}; BIN=$0; {line}");
    let output = Zeph::through_bash(home, &script).code(0);
    output.stdout.clone()
}

/// Runs the commands of a section with its configuration, in which `change` replaces values of the machine. Returns the output
/// of each line.
#[track_caller]
pub(crate) fn follow(home: &Home, section: &str, change: impl Fn(&str) -> String) -> Vec<String> {
    let mut outputs = Vec::new();
    for (language, text) in blocks(section) {
        match language {
            "toml" => home.more_config(&change(text)),
            "sh" => outputs.extend(text.lines().map(|line| run(home, line))),
            _ => {}
        }
    }
    outputs
}

/// Proves OPS-4: the steps of the page about logs.
#[test]
fn steps_about_logs_work() {
    let home = Home::new();
    let outputs = follow(&home, "\n## Logs\n", str::to_owned);
    assert_eq!(outputs[1], "1\n");
    let last = &outputs[outputs.len() - 2];
    let record: serde_json::Value = serde_json::from_str(last).expect(last);
    assert_eq!(record["level"], "ERROR", "{record}");
    assert!(outputs.last().unwrap().starts_with("ok "), "{outputs:?}");
}

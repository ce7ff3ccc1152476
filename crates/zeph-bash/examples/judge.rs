//! Decides about commands before they run.
#![allow(clippy::print_stdout)]

use zeph_bash::{ShellPolicy, Verdict, WorkingDirState};

fn main() {
    let policy = ShellPolicy::default();
    let start = WorkingDirState {
        cwd: "/home/alice/project".into(),
        ..Default::default()
    };
    for command in [
        "cargo test | tail",
        "V=1 sudo rm x",
        "sh -c 'sudo rm x'",
        "$TOOL --version",
    ] {
        let decision = match policy.decide(command, &start) {
            Verdict::Allow => "allowed",
            Verdict::Ask { .. } => "needs a question",
            Verdict::Block { .. } => "blocked",
        };
        println!("{command}: {decision}");
    }
}

// Prints:
// cargo test | tail: allowed
// V=1 sudo rm x: blocked
// sh -c 'sudo rm x': blocked
// $TOOL --version: needs a question

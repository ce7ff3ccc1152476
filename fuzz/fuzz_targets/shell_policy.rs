//! The blocklist: any text is decided in bounded time, a mention is not a hit, and a wrapper hides nothing.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use zeph_tools::shell::ShellPolicy;
use zeph_tools::shell::policy::{WorkingDirState, Verdict};

static POLICY: LazyLock<ShellPolicy> = LazyLock::new(ShellPolicy::default);
static START: LazyLock<WorkingDirState> = LazyLock::new(|| WorkingDirState {
    cwd: "/home/alice/project".into(),
    home: Some("/home/alice".into()),
    roots: vec!["/home/alice/project".into()],
    ..WorkingDirState::default()
});

fn decide(command: &str) -> Verdict {
    POLICY.decide(command, &START)
}

fuzz_target!(|text: &str| {
    if text.len() > 4096 {
        return;
    }
    let verdict = decide(text);
    let Verdict::Block { what } = &verdict else {
        return;
    };
    // A shell would parse such a text as an option.
    if text.starts_with(['-', '+']) {
        return;
    }
    let quoted = text.replace('\'', "'\\''");
    if !text.contains('\0') {
        let mention = decide(&format!("echo '{quoted}'"));
        assert_eq!(mention, Verdict::Allow, "a mention is a hit: {text:?}");
    }
    let mut wrapped = vec![
        format!("bash -c '{quoted}'"),
        format!("timeout 5 sh -c '{quoted}'"),
    ];
    if !what.contains("cannot be read") {
        wrapped.extend([
            format!("( {text}\n)"),
            format!("{{ {text}\n}}"),
            format!("if true; then {text}\nfi"),
            format!("f() {{ {text}\n}}; f"),
            format!("true && {{ {text}\n}} | cat"),
        ]);
    }
    for command in wrapped {
        assert_ne!(
            decide(&command),
            Verdict::Allow,
            "hidden by a wrapping: {command:?}"
        );
    }
});

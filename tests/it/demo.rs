//! `zeph demo`: real tools on a real project, and no remaining files.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use rustix::process::Signal;

use crate::rig::{Home, Zeph, assert_has, is_running};

const FAILING: &str = "pages::tests::a_rest_needs_a_page_of_its_own";

/// The demo with the machine's toolchain.
#[allow(
    clippy::disallowed_methods,
    reason = "the toolchain that builds the tests is used"
)]
fn demo(home: &Home, args: &[&str]) -> Zeph {
    let zeph = home.zeph(["demo"]).args(args.iter().copied());
    ["RUSTUP_HOME", "RUSTUP_TOOLCHAIN"]
        .into_iter()
        .fold(zeph, |zeph, name| match std::env::var(name) {
            Ok(value) => zeph.env(name, &value),
            Err(_) => zeph,
        })
}

/// The demo with a shell script as `cargo`, which prints a version like the real one.
fn demo_with_cargo(home: &Home, script: &str) -> Zeph {
    let version = "if [ \"$1\" = --version ]; then echo cargo 1.0; exit 0; fi";
    demo_with_program(home, &format!("{version}\n{script}"))
}

fn demo_with_program(home: &Home, script: &str) -> Zeph {
    let programs = home.root().join("programs");
    fs::create_dir(&programs).unwrap();
    let cargo = programs.join("cargo");
    fs::write(&cargo, format!("#!/bin/sh\n{script}\n")).unwrap();
    fs::set_permissions(&cargo, fs::Permissions::from_mode(0o755)).unwrap();
    home.zeph(["demo"])
        .env("PATH", &format!("{}:/usr/bin:/bin", programs.display()))
}

/// All files below a directory, with their contents.
fn tree(directory: &Path) -> Vec<(PathBuf, Option<Vec<u8>>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_owned()];
    while let Some(directory) = pending.pop() {
        for entry in fs::read_dir(&directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                pending.push(path.clone());
                found.push((path, None));
            } else {
                let content = fs::read(&path).unwrap();
                found.push((path, Some(content)));
            }
        }
    }
    found.sort();
    found
}

#[track_caller]
fn assert_nothing_left(home: &Home) {
    for directory in [home.tmp(), home.data(), home.project()] {
        assert_eq!(tree(&directory), [], "{}", directory.display());
    }
}

/// Proves LLM-9 for the demo: it says that the model is scripted. Proves CLI-3 for it: without a terminal the
/// output has no colours and no control characters.
#[test]
fn failing_test_is_fixed_and_nothing_remains() {
    let home = Home::new();
    // If the demo read any of these files, it would end with a configuration error or not edit.
    home.config("this is not TOML [");
    let before = tree(&home.home());
    let output = demo(&home, &[])
        .env("ZEPH_TOOLS_MODE", "plan")
        .env("NO_COLOR", "1")
        .code(0);
    let text = &output.stdout;
    assert_has(
        text,
        &[
            "The text of the model is scripted",
            "The tools, the permission checks",
            "(scripted) ",
        ],
    );
    let place = |word: &str| {
        text.find(word)
            .unwrap_or_else(|| panic!("{word:?} is not in:\n{text}"))
    };
    let parts = [
        "A test in this project fails",
        "tool    bash: cargo test",
        "the demo allows",
        FAILING,
        "[exit code: 101]",
        "tool    grep: ",
        "tool    read: src/pages.rs",
        "tool    edit: src/pages.rs",
        "+        self.total.div_ceil(self.per_page)",
        "test result: ok. 4 passed",
        "Running the tests again",
        "The bug is fixed",
        "zeph login",
    ];
    let places: Vec<usize> = parts.into_iter().map(place).collect();
    assert!(places.is_sorted(), "{places:?} in:\n{text}");
    assert_eq!(
        text.matches("test result: ok. 4 passed").count(),
        2,
        "{text}"
    );
    assert!(
        !text.chars().any(|c| c.is_control() && c != '\n'),
        "{text:?}"
    );
    assert_eq!(output.stderr, "");
    assert_eq!(tree(&home.home()), before);
    assert_nothing_left(&home);
}

#[test]
fn quiet_mode_prints_only_the_verdict() {
    let home = Home::new();
    let output = demo(&home, &["--quiet"]).code(0);
    assert_eq!(output.stdout.lines().count(), 1, "{output}");
    assert!(
        output
            .stdout
            .starts_with("The bug is fixed: all 4 tests pass"),
        "{output}"
    );
}

#[test]
fn retained_project_is_never_overwritten() {
    let home = Home::new();
    demo(&home, &["--keep", "sample"])
        .code(0)
        .prints(&["The project is in", "sample"]);
    let pages = home.read("sample/src/pages.rs");
    assert_has(&pages, &["self.total.div_ceil(self.per_page)"]);
    assert!(!home.has("sample/target"));
    assert_eq!(tree(&home.tmp()), []);
    let before = tree(&home.project());
    demo(&home, &["--keep", "sample"])
        .code(1)
        .says(&["sample: it exists already"]);
    assert_eq!(tree(&home.project()), before);
}

#[test]
fn missing_cargo_is_reported() {
    let home = Home::new();
    let nowhere = home.root().join("nowhere").display().to_string();
    let output = home.zeph(["demo"]).env("PATH", &nowhere).code(1);
    assert_has(&output.stderr, &["cargo is not on PATH", "rustup.rs"]);
    assert_eq!(output.stdout, "");
    assert_nothing_left(&home);
}

#[test]
fn cargo_that_does_not_test_fails_the_demo() {
    let home = Home::new();
    let script = "echo 'test result: ok. 4 passed; 0 failed'";
    let output = demo_with_cargo(&home, script).code(1);
    assert_has(&output.stderr, &["the demo failed", "step 2 of 6", FAILING]);
    assert!(!output.stdout.contains("fixed:"), "{output}");
    assert_nothing_left(&home);
}

/// The scripted model accepts this cargo, the demo's own check does not.
#[test]
fn verdict_is_that_of_the_last_run() {
    let home = Home::new();
    let script = format!(
        "echo x >> \"$CARGO_HOME/runs\"\n\
         case $(wc -l < \"$CARGO_HOME/runs\") in\n\
         *1) echo '{FAILING} ... FAILED: 21 items, 10 on a page. 3 passed; 1 failed'; exit 101;;\n\
         *2) echo '{FAILING} ... ok'; echo 'test result: ok. 4 passed; 0 failed';;\n\
         *) echo 'test result: ok. 4 passed; 0 failed'; exit 3;;\n\
         esac"
    );
    let output = demo_with_cargo(&home, &script).code(1);
    assert_has(&output.stdout, &["Running the tests again"]);
    assert_has(&output.stderr, &["the bug is not fixed", "exit code 3"]);
    assert!(!output.stdout.contains("fixed:"), "{output}");
    assert_nothing_left(&home);
}

/// Proves CLI-3 for the demo: an interruption ends it with exit code 130.
#[test]
fn interrupted_demo_removes_its_folder() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = Home::new();
        let mark = format!("54{}", std::process::id());
        let mut running = demo_with_cargo(&home, &format!("echo begun; exec sleep {mark}")).start();
        running.until_line("-> the demo allows");
        crate::rig::wait_for("cargo", || {
            is_running(&format!("sleep\0{mark}")).then_some(())
        });
        running.signal(signal);
        running.wait().code(130).says(&["interrupted"]);
        assert!(!is_running(&format!("sleep\0{mark}")));
        assert_nothing_left(&home);
    }
}

/// Proves CLI-3 for the demo: a cargo without a toolchain is an error that says how to fix it.
#[test]
fn cargo_without_toolchain_is_explained() {
    let home = Home::new();
    let script = "echo 'error: rustup could not choose a version of cargo to run' >&2; exit 1";
    demo_with_program(&home, script).code(1).says(&[
        "a working cargo",
        "could not choose a version",
        "rustup default stable",
    ]);
    assert_nothing_left(&home);
}

#[test]
fn flags_without_effect_are_refused() {
    let home = Home::new();
    let check = |flag: &str, value: &str| {
        home.zeph([flag, value, "demo"])
            .code(2)
            .says(&[flag, "has no effect"]);
    };
    check("--config", "x.toml");
    check("--provider", "x");
    check("--model", "x");
    assert_nothing_left(&home);
}

/// Proves PERM-5 for the demo: the permission mode applies.
#[test]
fn permission_mode_applies_to_the_demo() {
    let home = Home::new();
    let output = home.zeph(["--mode", "plan", "demo"]).code(1);
    assert_has(&output.stderr, &["step 2 of 6", "plan mode"]);
    assert_nothing_left(&home);
}

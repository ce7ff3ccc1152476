//! Lets the linker keep one copy of functions with the same instructions, in release builds.
//!
//! That takes some 5 % off the binary. It is an option of lld (`--icf=all`), which is what the
//! toolchain links with on this target; where another linker is set, a probe fails and the binary is
//! only larger. What it asks in return, that no code tells functions apart by their address, Rust
//! does not promise anyway.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script is told everything by its environment, and asks the compiler"
)]

use std::path::Path;
use std::process::{Command, Stdio};

const TARGET: &str = "x86_64-unknown-linux-gnu";
const FOLD: &str = "-Wl,--icf=all";

fn main() {
    println!("cargo::rerun-if-changed=crates/zeph/build.rs");
    let told = |name: &str| std::env::var(name).unwrap_or_default();
    if told("PROFILE") == "release" && told("TARGET") == TARGET && folds(&told) {
        println!("cargo::rustc-link-arg-bins={FOLD}");
    }
}

/// Whether the linker of this build takes the option: a program of one line is linked with it.
fn folds(told: &impl Fn(&str) -> String) -> bool {
    let source = Path::new(&told("OUT_DIR")).join("probe.rs");
    if std::fs::write(&source, "fn main() {}").is_err() {
        return false;
    }
    let mut probe = Command::new(told("RUSTC"));
    probe.args(["--target", TARGET, "-C", &format!("link-arg={FOLD}"), "-o"]);
    probe.arg(source.with_extension("bin")).arg(&source);
    let linker = told("RUSTC_LINKER");
    if !linker.is_empty() {
        probe.arg(format!("-Clinker={linker}"));
    }
    let flags = told("CARGO_ENCODED_RUSTFLAGS");
    probe.args(flags.split('\u{1f}').filter(|flag| !flag.is_empty()));
    probe.stdout(Stdio::null()).stderr(Stdio::null());
    probe.status().is_ok_and(|status| status.success())
}

//! Linker option of release builds that merges functions with identical instructions, for a smaller binary.
//!
//! The option (`--icf=all`) reduces the binary by about 5 %. It belongs to lld, the default linker of the toolchain
//! on this target. If another linker is set, a probe fails and the binary is only larger. The option requires that no
//! code distinguishes functions by their addresses. Rust does not promise distinct addresses anyway.

#![allow(
    clippy::disallowed_methods,
    reason = "a build script reads its input from the environment, and runs the compiler"
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

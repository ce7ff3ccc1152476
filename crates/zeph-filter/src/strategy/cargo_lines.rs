//! Progress lines of cargo: a verb that ends in column 12, and its object.

/// The kind of a progress line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Progress {
    /// The start of a program with tests, examples or benchmarks.
    Program,
    /// The end of the build.
    Finished,
    /// A step of the build.
    Step,
}

/// Verbs of steps. A package, a number of packages, or a registry follows the verb.
const STEPS: &[&str] = &[
    "Compiling",
    "Checking",
    "Downloading",
    "Downloaded",
    "Updating",
    "Locking",
    "Adding",
    "Blocking",
    "Fresh",
    "Dirty",
    "Documenting",
    "Building",
    "Unpacking",
    "Scraping",
    "Vendoring",
    "Scanning",
];

/// The kind of the line, if it is a progress line of cargo.
pub(super) fn progress(text: &str) -> Option<Progress> {
    let bytes = text.as_bytes();
    let ends = |byte: &u8| byte.is_ascii_lowercase();
    if bytes.get(12) != Some(&b' ') || !bytes.get(11).is_some_and(ends) {
        return None;
    }
    let indent = text.bytes().take_while(|byte| *byte == b' ').count();
    if !(1..=9).contains(&indent) {
        return None;
    }
    let rest = &text[indent..];
    let verb = rest.split(' ').next()?;
    if indent + verb.len() != 12 || verb.len() == rest.len() {
        return None;
    }
    match verb {
        // With `--verbose` cargo also names the compiler and build scripts.
        "Running" if rest.contains(" --crate-name ") || rest.ends_with("/build-script-build`") => {
            Some(Progress::Step)
        }
        "Running" | "Doc-tests" => Some(Progress::Program),
        "Finished" => Some(Progress::Finished),
        _ if STEPS.contains(&verb) => Some(Progress::Step),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verbs_end_in_column_twelve() {
        let check = |text, expect| assert_eq!(progress(text), expect, "{text}");
        check("   Compiling serde v1.0.0", Some(Progress::Step));
        check(
            "     Running tests/a.rs (target/a)",
            Some(Progress::Program),
        );
        check("   Doc-tests shop", Some(Progress::Program));
        check("    Finished `dev` profile in 1s", Some(Progress::Finished));
        check("     Running `target/debug/shop`", Some(Progress::Program));
        check(
            "     Running `/bin/rustc --crate-name shop src/lib.rs`",
            Some(Progress::Step),
        );
        check("  Compiling serde v1.0.0", None);
        check("Compiling serde v1.0.0", None);
        check("   Compiling", None);
        check("       thread x", None);
        check("", None);
    }
}

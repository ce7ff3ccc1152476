//! The examples of the library crates: each runs, prints what its last comment says, and is short.
//!
//! The comment is `// Prints:` with the lines of the output. Before it may be `// Arguments:`, in which `SERVER` is the
//! address of a model on loopback, and `// Reads:` with the lines of standard input.

mod model;

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::features::Features;
use crate::project::{Project, verdict};

/// Examples with a promised maximum of lines, without comments, blank lines and allowances for the lints of this
/// workspace.
const MAX_LINES: &[(&str, usize)] = &[("greet", 20), ("shorten", 10), ("agent", 60)];

/// Builds and runs all examples.
///
/// # Errors
/// An example fails, prints something else, or is too long.
pub(crate) fn run(project: &Project, features: Features) -> Result<()> {
    let build = project.cargo("build --quiet --examples");
    build.args(features.args()).run()?;
    let folder = project.target_dir()?.join("debug/examples");
    let mut findings = Vec::new();
    let mut count = 0;
    for file in project.text_files()? {
        if !is_example(&file.path) {
            continue;
        }
        let name = Path::new(&file.path).file_stem().unwrap_or_default();
        let name = name.to_string_lossy();
        let expected = Expected::of(&file.text);
        let found = check(&folder.join(&*name), &expected);
        if let Err(error) = found {
            findings.push(format!("{}: {error:#}", file.path));
        }
        findings.extend(too_long(&file.path, &name, &file.text));
        count += 1;
    }
    verdict("examples", &findings)?;
    println!("{count} examples print what they promise");
    Ok(())
}

/// Whether the file is an example of a crate.
pub(crate) fn is_example(path: &str) -> bool {
    path.starts_with("crates/") && path.contains("/examples/") && path.ends_with(".rs")
}

/// The input and output that the comments of an example promise.
#[derive(Debug, Default, PartialEq, Eq)]
struct Expected {
    arguments: Vec<String>,
    reads: String,
    prints: String,
}

impl Expected {
    fn of(text: &str) -> Self {
        let mut expected = Self::default();
        let mut into: Option<fn(&mut Self) -> &mut String> = None;
        for line in text.lines() {
            match (line, into) {
                ("// Reads:", _) => into = Some(|it| &mut it.reads),
                ("// Prints:", _) => into = Some(|it| &mut it.prints),
                (line, None) => {
                    if let Some(arguments) = line.strip_prefix("// Arguments: ") {
                        expected.arguments =
                            arguments.split_whitespace().map(str::to_owned).collect();
                    }
                }
                (line, Some(part)) => {
                    let line = line.strip_prefix("//").unwrap_or(line);
                    let part = part(&mut expected);
                    part.push_str(line.strip_prefix(' ').unwrap_or(line));
                    part.push('\n');
                }
            }
        }
        expected
    }
}

/// Runs one example.
fn check(program: &Path, expected: &Expected) -> Result<()> {
    let model = model::start()?;
    let arguments = expected.arguments.iter();
    let mut child = Command::new(program)
        .args(arguments.map(|argument| argument.replace("SERVER", &model)))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .with_context(|| program.display().to_string())?;
    let stdin = child.stdin.take().context("no standard input")?;
    std::io::Write::write_all(&mut { stdin }, expected.reads.as_bytes())?;
    let output = child.wait_with_output()?;
    let printed = String::from_utf8_lossy(&output.stdout);
    ensure!(output.status.success(), "{}", output.status);
    ensure!(
        printed == expected.prints,
        "it printed\n{printed}\ninstead of\n{}",
        expected.prints
    );
    Ok(())
}

/// The fault of an example that has more lines than promised.
fn too_long(path: &str, name: &str, text: &str) -> Option<String> {
    let (_, max) = MAX_LINES.iter().find(|(example, _)| *example == name)?;
    let is_code = |line: &&str| {
        let line = line.trim_start();
        !line.is_empty() && !line.starts_with("//") && !line.starts_with("#![allow(clippy::")
    };
    let lines = text.lines().filter(is_code).count();
    (lines > *max).then(|| format!("{path}: {lines} lines of code, {max} are promised"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-7: an example that prints something else is an error, and so is one that is too long.
    #[test]
    fn promises_of_an_example_are_read_and_checked() {
        let text = "fn main() {}\n\n// Arguments: SERVER b\n// Reads:\n// one\n// Prints:\n// two\n//\n// three\n";
        let expected = Expected::of(text);
        assert_eq!(expected.arguments, ["SERVER", "b"]);
        assert_eq!(expected.reads, "one\n");
        assert_eq!(expected.prints, "two\n\nthree\n");

        let echo = |prints: &str| Expected {
            arguments: vec!["hello".to_owned()],
            reads: String::new(),
            prints: prints.to_owned(),
        };
        check(Path::new("/bin/echo"), &echo("hello\n")).unwrap();
        check(Path::new("/bin/echo"), &echo("other\n")).unwrap_err();
        check(Path::new("/bin/false"), &echo("")).unwrap_err();

        let long = "//! A\n\n".to_owned() + &"a();\n".repeat(11);
        assert!(too_long("p", "shorten", &long).is_some());
        assert!(too_long("p", "shorten", &long[..long.len() - 5]).is_none());
        assert!(too_long("p", "other", &long).is_none());
    }
}

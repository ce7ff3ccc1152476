//! The steps of a page of the documentation: its blocks of shell commands and configuration.

use super::{Home, Zeph};

/// The blocks between the heading `section` and the next one of its level: the language of each and its text.
fn blocks(page: &'static str, section: &str) -> Vec<(&'static str, &'static str)> {
    let start = page.find(section).expect(section) + section.len();
    let rest = &page[start..];
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
pub(crate) fn follow(
    home: &Home,
    page: &'static str,
    section: &str,
    change: impl Fn(&str) -> String,
) -> Vec<String> {
    let mut outputs = Vec::new();
    for (language, text) in blocks(page, section) {
        match language {
            "toml" => home.more_config(&change(text)),
            "sh" => {
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                outputs.extend(lines.map(|line| run(home, &change(line))));
            }
            _ => {}
        }
    }
    outputs
}

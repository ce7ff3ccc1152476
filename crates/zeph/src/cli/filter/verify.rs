//! `zeph filter verify`: the tests of the rules.

use std::fmt::Write as _;
use std::path::Path;

use zeph_tools::filter::{RuleReport, RuleSet, TestFailure, parse_rules, verify};

use super::super::{Exit, print};
use crate::assemble::{UserRules, read_rules_file};
use crate::config::{Environment, Loaded};
use crate::exit::usage;
use crate::output::sanitize::clean;
use crate::output::stderr_line_unless;

/// Runs the tests of all rules, or of those of `file`. It fails if a test fails or if a rule cannot be used.
///
/// Untrusted rules of a project are not a failure: they are reported and not run.
pub(super) fn run(
    loaded: &Loaded,
    env: &Environment,
    file: Option<&Path>,
    quiet: bool,
) -> anyhow::Result<Exit> {
    let (reports, warnings) = match file {
        Some(file) => {
            let name = file.display().to_string();
            let text = read_rules_file(file)
                .map_err(|error| usage(format!("{name} cannot be read: {error}")))?;
            let (rules, warnings) = parse_rules(&name, &text);
            let own: Vec<String> = rules.iter().map(|rule| rule.name.clone()).collect();
            let mut reports = verify(&RuleSet::new(rules));
            reports.retain(|report| own.contains(&report.rule));
            (reports, warnings)
        }
        None => {
            let mut added = UserRules::load(loaded, env);
            let warnings = std::mem::take(&mut added.warnings);
            for line in added.not_used() {
                stderr_line_unless(quiet, &format!("warning: {line}"));
            }
            (verify(&added.book()), warnings)
        }
    };
    let mut text = String::new();
    for warning in &warnings {
        let _ = writeln!(text, "{warning}");
    }
    for report in &reports {
        tell(&mut text, report);
    }
    let tests: usize = reports.iter().map(|report| report.tests).sum();
    let failed: usize = reports.iter().map(|report| report.failures.len()).sum();
    let _ = writeln!(
        text,
        "{} rules, {tests} tests, {failed} failed{}",
        reports.len(),
        match warnings.len() {
            0 => String::new(),
            skipped => format!(", {skipped} not used"),
        }
    );
    print(&clean(&text))?;
    Ok(match failed + warnings.len() {
        0 => Exit::Done,
        _ => Exit::Failed,
    })
}

fn tell(text: &mut String, report: &RuleReport) {
    if report.tests == 0 {
        let _ = writeln!(text, "{}: no tests", report.rule);
    }
    for failure in &report.failures {
        let TestFailure {
            number,
            test,
            other_rule,
            got,
        } = failure;
        let _ = writeln!(
            text,
            "{}: test {number} ({}) failed",
            report.rule, test.command
        );
        match other_rule {
            Some(Some(other)) => {
                let _ = writeln!(text, "  the rule `{other}` is for this command");
            }
            Some(None) => {
                let _ = writeln!(text, "  no rule is for this command");
            }
            None => {}
        }
        let _ = writeln!(text, "  expected:\n{}", indented(&test.expected));
        let _ = writeln!(text, "  read:\n{}", indented(got));
    }
}

fn indented(text: &str) -> String {
    let lines: Vec<String> = text
        .trim_end()
        .lines()
        .map(|line| format!("    {line}"))
        .collect();
    lines.join("\n")
}

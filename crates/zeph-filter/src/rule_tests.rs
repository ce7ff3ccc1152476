//! Runs the tests in rule files.

use super::pipeline::FilterPipeline;
use super::plan::Plan;
use super::rule::RuleTest;
use super::rulebook::RuleSet;

/// The maximum length of the output of a test in characters.
const MAX_CHARS: usize = 50_000;

/// The results of the tests of one rule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct RuleReport {
    /// The name of the rule.
    pub rule: String,
    /// The number of its tests.
    pub tests: usize,
    /// The failed tests.
    pub failures: Vec<TestFailure>,
}

/// A failed test.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TestFailure {
    /// The position of the test in the rule, from 1.
    pub number: usize,
    /// The test.
    pub test: RuleTest,
    /// The rule that was selected for the command, if it is a different one.
    pub other_rule: Option<Option<String>>,
    /// The actual filtered output.
    pub got: String,
}

/// Runs the tests of all enabled rules.
#[must_use]
pub fn verify(book: &RuleSet) -> Vec<RuleReport> {
    let filters = FilterPipeline::new(book.clone());
    let enabled = book.rules().filter(|rule| rule.enabled);
    let report = |name: &String, tests: &[RuleTest]| RuleReport {
        rule: name.clone(),
        tests: tests.len(),
        failures: (1..)
            .zip(tests)
            .filter_map(|(number, test)| run(&filters, name, number, test))
            .collect(),
    };
    enabled
        .map(|rule| report(&rule.name, &rule.tests))
        .collect()
}

fn run(
    filters: &FilterPipeline,
    name: &str,
    number: usize,
    test: &RuleTest,
) -> Option<TestFailure> {
    let found = match filters.plan(&test.command) {
        Plan::Rule(rule) => Some(rule.name.clone()),
        Plan::Plain | Plan::InFull | Plan::Unknown => None,
    };
    let mut run = filters.start(&test.command, MAX_CHARS);
    run.push(&test.input);
    let got = run.finish(Some(test.exit_code)).text;
    let other_rule = (found.as_deref() != Some(name)).then_some(found);
    let passed = other_rule.is_none() && got == test.expected.trim_end_matches('\n');
    (!passed).then(|| TestFailure {
        number,
        test: test.clone(),
        other_rule,
        got,
    })
}

#[cfg(test)]
mod tests {
    use super::super::parse_rules::parse_rules;
    use super::*;

    const RULES: &str = r#"
        [[rules]]
        name = "acme"
        match = { exact = "acme build" }
        strategy = { type = "strip_noise", patterns = ["^step"] }
        [[rules.tests]]
        command = "acme build"
        input = "step 1\nstep 2 of the build, in which something long is said that nobody will ever want to read at all\ndone\n"
        expected = "done"
        [[rules.tests]]
        command = "acme build"
        input = "done\n"
        expected = "step"
        [[rules.tests]]
        command = "other build"
        input = "done\n"
        expected = "done"
    "#;

    /// Proves OUT-5.
    #[test]
    fn rule_tests_pass_or_report_the_result() {
        let (rules, warnings) = parse_rules("test", RULES);
        assert_eq!(warnings, []);
        let reports = verify(&RuleSet::new(rules));
        let report = reports.iter().find(|report| report.rule == "acme").unwrap();
        assert_eq!(report.tests, 3);
        let failed: Vec<_> = report
            .failures
            .iter()
            .map(|failure| (failure.number, failure.got.as_str()))
            .collect();
        assert_eq!(failed, [(2, "done"), (3, "done")]);
        assert_eq!(report.failures[0].other_rule, None);
        assert_eq!(report.failures[1].other_rule, Some(None));
    }
}

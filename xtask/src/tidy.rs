//! `cargo xtask tidy`: project rules that the compiler does not check. `cargo test -p xtask` checks them too.

mod cycles;
mod edges;
mod manifests;
mod modules;
mod source;
mod test_names;
mod vocabulary;
mod words;

use anyhow::Result;

use crate::project::{Project, verdict};

/// Checks the rules. `lowers_counts` first writes the lower counts of denied terms.
pub(crate) fn run(project: &Project, lowers_counts: bool) -> Result<()> {
    if lowers_counts {
        vocabulary::lower_counts(project, &project.text_files()?)?;
    }
    let report = check(project)?;
    for warning in &report.warnings {
        println!("warning: {warning}");
    }
    verdict("tidy", &report.findings)
}

/// Violations of the rules, and warnings.
#[derive(Default)]
struct Report {
    findings: Vec<String>,
    warnings: Vec<String>,
}

fn check(project: &Project) -> Result<Report> {
    let mut report = Report::default();
    let files = project.text_files()?;
    for file in &files {
        report
            .findings
            .extend(words::findings(&file.path, &file.text));
        if file.path.ends_with(".rs") {
            report
                .findings
                .extend(source::header(&file.path, &file.text));
            match source::size(&file.path, &file.text) {
                source::Size::Fits => {}
                source::Size::Large(what) => report.warnings.push(what),
                source::Size::TooLarge(what) => report.findings.push(what),
            }
        }
    }
    report.findings.extend(modules::orphans(project, &files)?);
    report
        .findings
        .extend(manifests::findings(project, &files)?);
    report.findings.extend(cycles::findings(project, &files)?);
    report.findings.extend(edges::findings(project)?);
    report
        .findings
        .extend(vocabulary::findings(project, &files)?);
    Ok(report)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn workspace_is_tidy() {
        let report = check(&Project::locate().unwrap()).unwrap();
        assert!(report.findings.is_empty(), "{}", report.findings.join("\n"));
    }
}

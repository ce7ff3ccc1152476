//! The book: `docs/SUMMARY.md` lists each page once, and each page renders as it does on a forge.

use std::collections::BTreeSet;

use super::links;

/// The path of the table of contents.
pub(super) const SUMMARY: &str = "docs/SUMMARY.md";

/// The pages that the table of contents does not list, or lists twice. `pages` are the paths of all pages. The check of
/// links finds pages that do not exist.
pub(super) fn findings<'a>(summary: &str, pages: impl Iterator<Item = &'a str>) -> Vec<String> {
    let mut findings = Vec::new();
    let mut listed = BTreeSet::new();
    for part in summary.split("](").skip(1) {
        let target = part.split(')').next().unwrap_or_default();
        if !listed.insert(target) {
            findings.push(format!("{SUMMARY}: `{target}` is listed twice"));
        }
    }
    for page in pages.filter(|page| *page != SUMMARY) {
        let name = page.strip_prefix("docs/").unwrap_or(page);
        if !listed.contains(name) {
            findings.push(format!("{SUMMARY}: `{name}` is not listed"));
        }
    }
    findings
}

/// The parts of the page `path` that are wrong in the rendered book: links to files outside of the book, blocks of code
/// without a language, and a first line that is not the title.
pub(super) fn page_findings(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("# ") {
        findings.push(format!("{path}: the first line is not a title (`# …`)"));
    }
    for (number, target) in links::targets(text) {
        let file = target.split('#').next().unwrap_or_default();
        if file.is_empty() || links::has_scheme(&target) {
            continue;
        }
        if links::resolve(path, file).is_some_and(|file| !file.starts_with("docs/")) {
            findings.push(format!(
                "{path}:{number}: `{target}` is not in the book; name the file instead of linking to it"
            ));
        }
    }
    let fences = text
        .lines()
        .enumerate()
        .filter(|(_, line)| line.trim_start().starts_with("```"));
    for (at, _) in fences.step_by(2).filter(|(_, line)| line.trim() == "```") {
        findings.push(format!(
            "{path}:{}: the block has no language; plain text is `text`",
            at + 1
        ));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Proves PKG-5: a page that is not in the table of contents is an error.
    #[test]
    fn table_of_contents_lists_each_page_once() {
        let check = |summary: &str, expect: &[&str]| {
            let pages = ["docs/SUMMARY.md", "docs/a.md", "docs/b.md"];
            assert_eq!(findings(summary, pages.into_iter()), expect);
        };
        check("- [A](a.md)\n- [B](b.md)\n", &[]);
        check("- [A](a.md)\n", &["docs/SUMMARY.md: `b.md` is not listed"]);
        check(
            "- [A](a.md)\n- [B](b.md)\n- [A](a.md)\n",
            &["docs/SUMMARY.md: `a.md` is listed twice"],
        );
    }

    /// Proves PKG-5: links out of the book and blocks without a language are errors.
    #[test]
    fn page_that_renders_wrongly_is_found() {
        let check = |text: &str, expect: &[&str]| {
            assert_eq!(page_findings("docs/a.md", text), expect, "{text}");
        };
        check("# A\n[b](b.md#c) [d](#e) [f](https://example.org)\n", &[]);
        check("# A\n```text\n```\n\n```sh\n```\n", &[]);
        check("A\n", &["docs/a.md: the first line is not a title (`# …`)"]);
        check(
            "# A\n[b](../B.md)\n",
            &["docs/a.md:2: `../B.md` is not in the book; name the file instead of linking to it"],
        );
        check(
            "# A\n```text\n```\n```\n```\n",
            &["docs/a.md:4: the block has no language; plain text is `text`"],
        );
    }
}

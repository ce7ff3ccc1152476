//! The book: `docs/SUMMARY.md` lists each page once.

use std::collections::BTreeSet;

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
}

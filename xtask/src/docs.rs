//! `cargo xtask docs`: the API documentation builds without warnings, and the book is complete: no broken link, each page
//! in the table of contents, an entry for each message, and the current text of each shown file. On request, it draws the
//! pictures of the terminal and updates the shown files.

mod book;
mod includes;
mod links;
mod messages;

use std::collections::HashMap;

use anyhow::{Result, anyhow};
use xshell::cmd;

use crate::features::Features;
use crate::project::{Project, TextFile, verdict};

/// Checks the documentation. With `pictures`, the pictures of the terminal are drawn again first, and the files that
/// pages show are copied into them.
pub(crate) fn run(project: &Project, pictures: bool) -> Result<()> {
    if pictures {
        draw_pictures(project)?;
        update_includes(project)?;
    }
    verdict("docs", &check(project)?)?;
    build_book(project)?;
    let doc = project.cargo("doc --no-deps").args(Features::All.args());
    Ok(doc.env("RUSTDOCFLAGS", "-D warnings").run()?)
}

/// Runs the tests that compare the pictures, which write them instead.
fn draw_pictures(project: &Project) -> Result<()> {
    let tests = project.cargo("test -p zeph --test it pictures::");
    Ok(tests.env("ZEPH_PICTURES", "write").run()?)
}

/// Copies the files that pages show into them.
fn update_includes(project: &Project) -> Result<()> {
    let files = project.text_files()?;
    for page in files.iter().filter(|file| is_documentation(file)) {
        let updated = includes::updated(&page.text, |path| text_of(&files, path));
        let updated = updated.map_err(|error| anyhow!("{}: {error}", page.path))?;
        if updated != page.text {
            std::fs::write(project.root.join(&page.path), updated)?;
            println!("updated {}", page.path);
        }
    }
    Ok(())
}

/// Builds the book if mdBook is installed.
fn build_book(project: &Project) -> Result<()> {
    let sh = &project.sh;
    if cmd!(sh, "mdbook --version")
        .quiet()
        .ignore_stdout()
        .ignore_stderr()
        .run()
        .is_err()
    {
        println!("the book is checked but not rendered: mdbook is not installed");
        return Ok(());
    }
    let folder = project.target_dir()?.join("book");
    Ok(cmd!(sh, "mdbook build --dest-dir {folder}").run()?)
}

fn text_of<'a>(files: &'a [TextFile], path: &str) -> Option<&'a str> {
    let file = files.iter().find(|file| file.path == path)?;
    Some(&file.text)
}

fn check(project: &Project) -> Result<Vec<String>> {
    let files = project.text_files()?;
    let texts: HashMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let exists = |path: &str| texts.contains_key(path) || project.root.join(path).exists();
    let text_of = |path: &str| texts.get(path).copied();
    let mut findings = Vec::new();
    for file in files.iter().filter(|file| is_documentation(file)) {
        findings.extend(links::findings(&file.path, &file.text, exists, text_of));
        match includes::updated(&file.text, text_of) {
            Ok(text) if text == file.text => {}
            Ok(_) => findings.push(format!(
                "{}: a shown file has changed; `cargo xtask docs --pictures` updates the page",
                file.path
            )),
            Err(error) => findings.push(format!("{}: {error}", file.path)),
        }
    }
    let is_page = |file: &&TextFile| file.path.starts_with("docs/") && file.path.ends_with(".md");
    let pages: Vec<&TextFile> = files.iter().filter(is_page).collect();
    for page in pages.iter().filter(|page| page.path != book::SUMMARY) {
        findings.extend(book::page_findings(&page.path, &page.text));
    }
    let summary = text_of(book::SUMMARY).unwrap_or_default();
    let paths = pages.iter().map(|page| page.path.as_str());
    findings.extend(book::findings(summary, paths));
    let troubleshooting = text_of(messages::PAGE).unwrap_or_default();
    findings.extend(messages::findings(troubleshooting, &files));
    Ok(findings)
}

fn is_documentation(file: &TextFile) -> bool {
    let in_crate = file.path.starts_with("crates/") && file.path.ends_with("/README.md");
    let at_root = !file.path.contains('/') && file.path.ends_with(".md");
    let below = ["docs/", "specs/"]
        .iter()
        .any(|dir| file.path.starts_with(dir));
    in_crate || at_root || (below && file.path.ends_with(".md"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn documentation_has_no_broken_link() {
        let findings = check(&Project::locate().unwrap()).unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}

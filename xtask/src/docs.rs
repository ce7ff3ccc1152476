//! `cargo xtask docs`: the API documentation builds without warnings, and the Markdown files have no broken
//! links. It draws the pictures of the terminal on request.

mod links;

use std::collections::HashMap;

use anyhow::Result;

use crate::project::{Project, TextFile, verdict};

/// Checks the documentation. With `pictures`, the pictures of the terminal are drawn again first.
pub(crate) fn run(project: &Project, pictures: bool) -> Result<()> {
    if pictures {
        draw_pictures(project)?;
    }
    verdict("links", &check(project)?)?;
    let doc = project.cargo("doc --workspace --no-deps");
    Ok(doc.env("RUSTDOCFLAGS", "-D warnings").run()?)
}

/// Runs the tests that compare the pictures, which write them instead.
fn draw_pictures(project: &Project) -> Result<()> {
    let tests = project.cargo("test -p zeph --test it pictures::");
    Ok(tests.env("ZEPH_PICTURES", "write").run()?)
}

fn check(project: &Project) -> Result<Vec<String>> {
    let files = project.text_files()?;
    let texts: HashMap<&str, &str> = files
        .iter()
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    let exists = |path: &str| texts.contains_key(path) || project.root.join(path).exists();
    let text_of = |path: &str| texts.get(path).copied();
    Ok(files
        .iter()
        .filter(|file| is_documentation(file))
        .flat_map(|file| links::findings(&file.path, &file.text, exists, text_of))
        .collect())
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
    fn no_link_of_the_documentation_leads_nowhere() {
        let findings = check(&Project::locate().unwrap()).unwrap();
        assert!(findings.is_empty(), "{}", findings.join("\n"));
    }
}

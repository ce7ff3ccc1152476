//! Forgotten files: each `.rs` file of a crate must be a target or declared by a reachable module.
//!
//! A file without a `mod` declaration is not compiled, so its tests silently do not run.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use anyhow::Result;

use crate::project::{Project, TextFile};

pub(super) fn orphans(project: &Project, files: &[TextFile]) -> Result<Vec<String>> {
    let mut roots = Vec::new();
    let targets = project
        .packages()
        .filter_map(|package| package["targets"].as_array())
        .flatten();
    for path in targets.filter_map(|target| target["src_path"].as_str()) {
        roots.push(project.relative(Path::new(path))?);
    }
    let sources: HashMap<&str, &str> = files
        .iter()
        .filter(|file| file.path.ends_with(".rs") && !file.path.starts_with("fuzz/"))
        .map(|file| (file.path.as_str(), file.text.as_str()))
        .collect();
    Ok(unreachable(&roots, &sources)
        .into_iter()
        .map(|path| format!("{path}: no `mod` declares it, so it is not compiled"))
        .collect())
}

/// The sources that no chain of `mod` declarations reaches, sorted.
fn unreachable<'a>(roots: &[String], sources: &HashMap<&'a str, &str>) -> Vec<&'a str> {
    let mut reached: HashSet<String> = roots.iter().cloned().collect();
    let mut pending = roots.to_vec();
    while let Some(path) = pending.pop() {
        let Some(text) = sources.get(path.as_str()) else {
            continue;
        };
        let is_root = roots.contains(&path);
        for child in children(&path, is_root, text) {
            if sources.contains_key(child.as_str()) && reached.insert(child.clone()) {
                pending.push(child);
            }
        }
    }
    let mut missed: Vec<&str> = sources
        .keys()
        .copied()
        .filter(|path| !reached.contains(*path))
        .collect();
    missed.sort_unstable();
    missed
}

/// The files that the declarations of the module in `path` may refer to.
fn children(path: &str, is_root: bool, text: &str) -> Vec<String> {
    let (dir, name) = path.rsplit_once('/').unwrap_or(("", path));
    let stem = name.strip_suffix(".rs").unwrap_or(name);
    let join = |a: &str, b: &str| {
        if a.is_empty() {
            b.to_owned()
        } else {
            format!("{a}/{b}")
        }
    };
    let below = if is_root || stem == "mod" {
        dir.to_owned()
    } else {
        join(dir, stem)
    };
    let mut children = Vec::new();
    let mut named_path = None;
    for line in text.lines().map(str::trim) {
        if let Some(named) = line.strip_prefix("#[path = \"") {
            named_path = named.split('"').next();
        } else if let Some(module) = declared(line) {
            match named_path.take() {
                Some(file) => children.push(join(dir, file)),
                None => {
                    children.push(join(&below, &format!("{module}.rs")));
                    children.push(join(&below, &format!("{module}/mod.rs")));
                }
            }
        }
    }
    children
}

/// The module that a line declares with `mod name;`.
fn declared(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix("pub") {
        Some(rest) if rest.starts_with('(') => rest.split_once(')')?.1.trim_start(),
        Some(rest) => rest.trim_start(),
        None => line,
    };
    let name = rest.strip_prefix("mod ")?.split(';').next()?;
    let is_name = !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_');
    (is_name && rest.contains(';')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_declarations_are_parsed() {
        let check = |line: &str, expect: Option<&str>| assert_eq!(declared(line), expect, "{line}");
        check("mod a;", Some("a"));
        check("pub mod a;", Some("a"));
        check("pub(crate) mod a_b; // why", Some("a_b"));
        check("pub(in crate::x) mod a;", Some("a"));
        check("mod a {", None);
        check("// mod a;", None);
        check("mod a", None);
        check("mod ;", None);
        check("pub(", None);
        check("model;", None);
        check("", None);
    }

    #[test]
    fn unreachable_files_are_found() {
        let check = |files: &[(&'static str, &str)], expect: &[&str]| {
            let sources = files.iter().copied().collect();
            let roots = ["src/lib.rs".to_owned(), "tests/it/main.rs".to_owned()];
            assert_eq!(unreachable(&roots, &sources), expect, "{files:?}");
        };
        check(
            &[
                ("src/lib.rs", "mod a;\nmod b;"),
                ("src/a.rs", ""),
                ("src/b/mod.rs", ""),
            ],
            &[],
        );
        check(
            &[
                ("src/lib.rs", "mod a;"),
                ("src/a.rs", "mod b;"),
                ("src/a/b.rs", ""),
            ],
            &[],
        );
        check(
            &[
                ("src/lib.rs", "mod a;"),
                ("src/a/mod.rs", "mod b;"),
                ("src/a/b.rs", ""),
            ],
            &[],
        );
        check(
            &[
                ("src/lib.rs", "#[path = \"x.rs\"]\nmod a;"),
                ("src/x.rs", ""),
            ],
            &[],
        );
        check(&[("src/lib.rs", ""), ("src/a.rs", "")], &["src/a.rs"]);
        check(
            &[("src/lib.rs", "// mod a;"), ("src/a.rs", "")],
            &["src/a.rs"],
        );
        check(
            &[
                ("tests/it/main.rs", "mod a;"),
                ("tests/it/a.rs", ""),
                ("tests/it/b.rs", ""),
            ],
            &["tests/it/b.rs"],
        );
        check(&[("tests/stray.rs", "")], &["tests/stray.rs"]);
        // Two modules that declare each other but are not reachable.
        check(
            &[
                ("src/lib.rs", ""),
                ("src/a.rs", "mod b;"),
                ("src/a/b.rs", ""),
            ],
            &["src/a.rs", "src/a/b.rs"],
        );
        // A cycle terminates.
        check(&[("src/lib.rs", "mod lib;")], &[]);
    }
}

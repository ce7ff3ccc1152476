//! Import cycles: the top-level modules of a crate must not import each other in a circle.
//!
//! A top-level module is a file or a folder in the source directory of the crate. Files in one folder may import each
//! other. Tests are not checked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::Result;

use super::source;
use crate::project::{Project, TextFile};

/// For each module, the modules that it imports, with one importing file each.
type Imports = BTreeMap<String, BTreeMap<String, String>>;

/// One finding for each group of modules that import each other in a circle.
pub(super) fn findings(project: &Project, files: &[TextFile]) -> Result<Vec<String>> {
    let mut findings = Vec::new();
    let targets = project
        .packages()
        .filter_map(|package| package["targets"].as_array())
        .flatten();
    for target in targets {
        let is_crate = ["lib", "bin"]
            .iter()
            .any(|kind| target["kind"][0].as_str() == Some(kind));
        let Some(root) = target["src_path"].as_str().filter(|_| is_crate) else {
            continue;
        };
        let root = project.relative(Path::new(root))?;
        let Some((dir, root_name)) = root.rsplit_once('/') else {
            continue;
        };
        let sources: Vec<(&str, &str)> = files
            .iter()
            .filter_map(|file| {
                let below = file.path.strip_prefix(dir)?.strip_prefix('/')?;
                let is_source = below.ends_with(".rs") && !source::is_test_file(below);
                is_source.then_some((below, file.text.as_str()))
            })
            .collect();
        for circle in circles(&imports(root_name, &sources)) {
            findings.push(format!("{dir}: import cycle: {circle}"));
        }
    }
    Ok(findings)
}

/// The imports between the top-level modules of a crate.
fn imports(root: &str, sources: &[(&str, &str)]) -> Imports {
    let modules: BTreeSet<&str> = sources
        .iter()
        .filter(|(path, _)| *path != root)
        .map(|(path, _)| module(path))
        .collect();
    let root_text = sources.iter().find(|(path, _)| *path == root);
    let exports = root_text.map_or_else(BTreeMap::new, |(_, text)| exports(text, &modules));
    let mut imports = Imports::new();
    for (path, text) in sources.iter().filter(|(path, _)| *path != root) {
        let from = module(path);
        for name in crate_names(&code(text), depth(path)) {
            let to = exports.get(name.as_str()).copied().unwrap_or(&name);
            if to != from && modules.contains(to) {
                let of_module = imports.entry(from.to_owned()).or_default();
                of_module
                    .entry(to.to_owned())
                    .or_insert_with(|| (*path).to_owned());
            }
        }
    }
    imports
}

/// The top-level module of a file.
fn module(path: &str) -> &str {
    let first = path.split('/').next().unwrap_or(path);
    first.strip_suffix(".rs").unwrap_or(first)
}

/// The number of `super` that lead from the module of a file to the root of the crate.
fn depth(path: &str) -> usize {
    let parts = path.split('/').count();
    if path.ends_with("/mod.rs") {
        parts - 1
    } else {
        parts
    }
}

/// The code of a file without its comments and its test module.
fn code(text: &str) -> String {
    let lines = text.lines().take(source::non_test_lines(text));
    let lines = lines.filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The names that the root of a crate exports from its modules, with the module of each.
fn exports<'m>(root: &str, modules: &BTreeSet<&'m str>) -> BTreeMap<String, &'m str> {
    let code = code(root);
    let mut exports = BTreeMap::new();
    for statement in code.split(';') {
        let Some((_, tree)) = statement.rsplit_once("use ") else {
            continue;
        };
        for path in leaves(tree) {
            let path = path
                .trim_start_matches("crate::")
                .trim_start_matches("self::");
            let first = path.split("::").next().unwrap_or_default();
            let last = path.rsplit("::").next().unwrap_or_default();
            let name = last.rsplit(" as ").next().unwrap_or(last).trim();
            if let Some(module) = modules.get(first) {
                exports.insert(name.to_owned(), *module);
            }
        }
    }
    exports
}

/// The paths of a `use` tree: `a::{b, c::d}` are `a::b` and `a::c::d`.
fn leaves(tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((before, rest)) = tree.split_once('{') else {
        return vec![tree.to_owned()];
    };
    let inner = rest.strip_suffix('}').unwrap_or(rest);
    let below = elements(inner).into_iter().flat_map(leaves);
    below
        .map(|path| format!("{}{path}", before.trim()))
        .collect()
}

/// The elements of a list, split at the commas that are in no inner braces.
fn elements(list: &str) -> Vec<&str> {
    let mut elements = Vec::new();
    let (mut open, mut start) = (0_usize, 0);
    for (at, byte) in list.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open = open.saturating_sub(1),
            b',' if open == 0 => {
                elements.push(&list[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    elements.push(&list[start..]);
    elements.retain(|element| !element.trim().is_empty());
    elements
}

/// The first names of the paths that begin at the root of the crate; `depth` times `super` is the root.
fn crate_names(code: &str, depth: usize) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for root in ["crate::".to_owned(), "super::".repeat(depth)] {
        for (at, _) in code.match_indices(&root) {
            let is_inner = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
            if code[..at].ends_with(is_inner) {
                continue;
            }
            let rest = &code[at + root.len()..];
            match rest.strip_prefix('{').and_then(|list| closed(list)) {
                Some(list) => names.extend(elements(list).into_iter().filter_map(first_name)),
                None => names.extend(first_name(rest)),
            }
        }
    }
    names
}

/// The text up to the brace that closes it.
fn closed(text: &str) -> Option<&str> {
    let mut open = 1_usize;
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'{' => open += 1,
            b'}' => open -= 1,
            _ => {}
        }
        if open == 0 {
            return Some(&text[..at]);
        }
    }
    None
}

/// The identifier at the start of a path.
fn first_name(path: &str) -> Option<String> {
    let path = path.trim_start();
    let end = path.find(|c: char| !c.is_alphanumeric() && c != '_');
    let name = &path[..end.unwrap_or(path.len())];
    (!name.is_empty() && name != "super").then(|| name.to_owned())
}

/// The groups of modules that reach each other, each as its imports.
fn circles(imports: &Imports) -> Vec<String> {
    let mut circles = Vec::new();
    let mut listed: BTreeSet<&str> = BTreeSet::new();
    for module in imports.keys() {
        let mut group = reachable(imports, module);
        group.retain(|other| reachable(imports, other).contains(module.as_str()));
        if group.is_empty() || !listed.insert(module) {
            continue;
        }
        listed.extend(&group);
        let edges = imports.iter().flat_map(|(from, all)| {
            let all = all.iter();
            all.map(move |(to, file)| (from.as_str(), to.as_str(), file))
        });
        let edges = edges.filter(|(from, to, _)| group.contains(from) && group.contains(to));
        let edges = edges.map(|(_, to, file)| format!("{file} imports {to}"));
        circles.push(edges.collect::<Vec<_>>().join(", "));
    }
    circles
}

/// The modules that a module imports directly or through others.
fn reachable<'i>(imports: &'i Imports, from: &str) -> BTreeSet<&'i str> {
    let mut reached = BTreeSet::new();
    let mut pending = vec![from];
    while let Some(module) = pending.pop() {
        for to in imports.get(module).into_iter().flat_map(BTreeMap::keys) {
            if reached.insert(to.as_str()) {
                pending.push(to);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn module_cycles_are_found() {
        let check = |sources: &[(&str, &str)], expect: &[&str]| {
            assert_eq!(circles(&imports("lib.rs", sources)), expect, "{sources:?}");
        };
        check(&[("a.rs", "use crate::b::B;"), ("b.rs", "")], &[]);
        check(
            &[("a.rs", "use crate::b::B;"), ("b.rs", "use super::a;")],
            &["a.rs imports b, b.rs imports a"],
        );
        check(
            &[
                ("a/mod.rs", "use crate::{\n    c::{D, E},\n    b,\n};"),
                ("a/x.rs", "use super::super::b::X;"),
                ("b.rs", "fn f() { crate::c::g() }"),
                ("c.rs", "use super::a::A;"),
            ],
            &["a/mod.rs imports b, a/mod.rs imports c, b.rs imports c, c.rs imports a"],
        );
        // Files of one folder import each other, and a name from elsewhere may be the name of a module.
        check(
            &[
                ("a/x.rs", "use super::y; use std::b::C;"),
                ("a/y.rs", "use super::x;"),
                ("b.rs", "use crate::a::x;"),
            ],
            &[],
        );
        // The root exports names of modules.
        check(
            &[
                ("lib.rs", "mod a;\npub use b::{B, c::D as E};"),
                ("a.rs", "use crate::E;"),
                ("b/mod.rs", "use crate::a;"),
            ],
            &["a.rs imports b, b/mod.rs imports a"],
        );
        // Tests and comments do not count.
        let tests = "// crate::a\n#[cfg(test)]\nmod tests {\n    use crate::a;\n}\n";
        check(&[("a.rs", "use crate::b;"), ("b.rs", tests)], &[]);
    }
}
